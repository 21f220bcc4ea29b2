/** `relevo drain, uncordon, freeze, unfreeze`: what an operator asks the controller for. */
import { z } from "zod";
import { formatDuration, parseDuration } from "../../kernel/units.ts";
import { explanationView, poolView, unfrozenView } from "../../server/views.ts";
import { connect, poolKeyOf } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { EXIT, type ExitCode, HeldError, UsageError } from "../exit.ts";
import { renderDocument } from "../output.ts";
import { howToThaw } from "../thaw.ts";

export interface ReasonOptions extends GlobalOptions {
  readonly reason: string;
}

/** Exit code 4 when it is recorded and waits, because the pool is frozen. */
export async function drain(context: CliContext, instance: string, options: ReasonOptions): Promise<ExitCode> {
  const client = connect(context, options);
  const result = await client.post(
    `/v1/instances/${encodeURIComponent(instance)}/drain`,
    { by: context.user, why: options.reason },
    z.object({ evidence: z.string() }),
  );
  const { pool: of } = await client.get(`/v1/explain?subject=${encodeURIComponent(instance)}`, explanationView);
  const pool = await client.get(`/v1/pools/${of}`, poolView);
  context.out(
    renderDocument({ instance, ...result, frozen: pool.freeze }, options.output) ??
      `${instance} will make way (evidence ${result.evidence}); see npx relevo explain ${instance}\n`,
  );
  if (pool.freeze)
    throw new HeldError("pool_frozen", `${instance} waits: pool ${pool.pool} is frozen until ${pool.freeze.until}.`, {
      found: pool.freeze.why,
      todo: howToThaw(pool.pool, pool.freeze),
    });
  return EXIT.done;
}

export async function uncordon(context: CliContext, node: string, options: GlobalOptions): Promise<ExitCode> {
  const client = connect(context, options);
  await client.post(`/v1/nodes/${encodeURIComponent(node)}/uncordon`, { by: context.user }, z.object({ node: z.string() }));
  context.out(renderDocument({ node, uncordoned: true }, options.output) ?? `${node} may be scheduled on again\n`);
  return EXIT.done;
}

export interface FreezeOptions extends ReasonOptions {
  readonly for: string;
  readonly all?: boolean;
}

const MAX_FREEZE_MS = 30 * 24 * 3_600_000;

export async function freeze(context: CliContext, pool: string | undefined, options: FreezeOptions): Promise<ExitCode> {
  const target = targetOf(pool, options);
  const duration = parseDuration(options.for);
  if (duration === undefined || duration === 0 || duration > MAX_FREEZE_MS)
    throw new UsageError("duration_invalid", "--for is not valid.", {
      found: options.for,
      allowed: `a duration such as 2h, at most ${formatDuration(MAX_FREEZE_MS)}`,
    });
  const client = connect(context, options);
  const body = { pool: target, for: options.for, why: options.reason, by: context.user };
  const { pools, until } = await client.post("/v1/freeze", body, z.object({ pools: z.array(z.string()), until: z.string() }));
  context.out(
    renderDocument({ pools, until }, options.output) ??
      `frozen until ${until}: ${pools.join(", ") || "no pool"}; traffic, health checks and accepted deadlines go on\n`,
  );
  return EXIT.done;
}

export async function unfreeze(
  context: CliContext,
  pool: string | undefined,
  options: GlobalOptions & { readonly all?: boolean },
): Promise<ExitCode> {
  const client = connect(context, options);
  const body = { pool: targetOf(pool, options), by: context.user };
  const { pools, stillFrozen } = await client.post("/v1/unfreeze", body, unfrozenView);
  const frozen = new Map(stillFrozen.map((each) => [each.pool, each]));
  const free = pools.filter((each) => !frozen.has(each));
  context.out(renderDocument({ pools, stillFrozen }, options.output) ?? `decides again: ${free.join(", ") || "no pool"}\n`);
  const [first] = stillFrozen;
  if (first)
    throw new HeldError("pool_frozen", `${[...frozen.keys()].join(", ")} is frozen by a ConfigMap, which only its writer lifts.`, {
      found: first.why,
      todo: `delete or change ${first.by}`,
    });
  return EXIT.done;
}

/** Null means all. */
function targetOf(pool: string | undefined, { all, namespace }: { readonly all?: boolean; readonly namespace: string }): string | null {
  if ((pool === undefined) === (all !== true))
    throw new UsageError("pool_or_all", "Name a pool, or say --all.", { found: pool === undefined ? "neither" : "both" });
  return pool === undefined ? null : poolKeyOf(pool, namespace);
}
