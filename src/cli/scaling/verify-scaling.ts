/**
 * `relevo verify scaling POOL`: whether its scaler works, by its effect (K9): first nothing is put in, and nothing may move; then a tagged backlog, on which more
 * instances must serve and which must be gone within the stated window. What was put in is taken back whatever happens. Exit code 0 only when it is accepted.
 */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { formatInstant } from "../../kernel/clock.ts";
import { formatDuration } from "../../kernel/units.ts";
import { nodeView, poolView } from "../../server/views.ts";
import { type ControllerClient, connect, poolKeyOf } from "../client.ts";
import type { CliContext } from "../context.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { renderDocument } from "../output.ts";
import { type Claim, levelOf } from "../verify/report.ts";
import { endedOf, hindrancesOf, lookAt, type ScaleLook } from "./look.ts";
import { assertReportCanBeWritten, clearWork, openTaggedWork, payloadOf, type TaggedOptions, type TaggedWork } from "./tagged-work.ts";
import { nothingShownBy, type ScalingTrial, scalingClaims } from "./verify-report.ts";

export interface VerifyScalingOptions extends TaggedOptions {
  /** As many as the policy needs for two instances more when absent. */
  readonly jobs?: number;
  /** The window, and how long the control lasts, in ms. */
  readonly within: number;
  readonly control: number;
  /** Where the report goes too. */
  readonly report?: string;
}

const POLL_MS = 200;
/** One look alone sees nothing move. */
const LEAST_LOOKS = 3;

export async function verifyScaling(context: CliContext, name: string, options: VerifyScalingOptions): Promise<ExitCode> {
  const client = connect(context, options);
  const pool = poolKeyOf(name, options.namespace);
  assertReportCanBeWritten(context, options.report);
  const payload = payloadOf(context, "--payload", options.payload);
  const work = await openTaggedWork(context, client, pool, options, "verify");
  const level = levelOf(await client.list("/v1/nodes", nodeView));
  const hindrances = hindrancesOf(await client.get(`/v1/pools/${pool}`, poolView));
  const trial = hindrances.length > 0 ? null : await tryIt(context, client, { pool, work, payload, options });
  const nothing = trial === null ? hindrances : nothingShownBy(trial);
  const claims = trial === null || nothing.length > 0 ? [] : scalingClaims(trial);
  const verdict = nothing.length > 0 ? "nothing shown" : claims.every(({ held }) => held) ? "accepted" : "not accepted";
  const report = {
    pool,
    at: formatInstant(context.clock.now()),
    level,
    windowMs: options.within,
    controlMs: options.control,
    verdict,
    nothingShown: nothing,
    jobs: trial?.jobs ?? 0,
    claims,
  };
  if (options.report !== undefined) writeFileSync(resolve(context.cwd, options.report), `${JSON.stringify(report, null, 2)}\n`);
  context.out(renderDocument(report, options.output) ?? textOf(report));
  if (nothing.length > 0) return EXIT.refused;
  return verdict === "accepted" ? EXIT.done : EXIT.failed;
}

interface Trying {
  readonly pool: string;
  readonly work: TaggedWork;
  readonly payload: unknown;
  readonly options: VerifyScalingOptions;
}

async function tryIt(context: CliContext, client: ControllerClient, { pool, work, payload, options }: Trying): Promise<ScalingTrial> {
  const { clock, signal } = context;
  const control: ScaleLook[] = [];
  const none = await work.feed.counts();
  const end = clock.monotonic() + options.control;
  for (; clock.monotonic() < end || control.length < LEAST_LOOKS; await clock.sleep(POLL_MS, signal))
    control.push(await lookAt(client, pool, none, clock));
  const jobs = options.jobs ?? jobsFor(work, control.at(-1)?.desired ?? 0);
  const looks: ScaleLook[] = [];
  const injectedAt = clock.monotonic();
  let cleared = { removed: 0, left: 0 };
  // A size that changed without it shows nothing: then nothing is put in.
  if (nothingShownBy({ control, looks, injectedAt, jobs, cleared }).length > 0) return { control, looks, injectedAt, jobs: 0, cleared };
  try {
    await work.feed.add(Array.from({ length: jobs }, () => payload));
    context.err(`${jobs} jobs were put in; the window is ${formatDuration(options.within)}\n`);
    while (clock.monotonic() < injectedAt + options.within) {
      const look = await lookAt(client, pool, await work.feed.counts(), clock);
      looks.push(look);
      if (endedOf(look.jobs) >= jobs && looks.some(({ serving }) => serving > (control.at(-1)?.serving ?? 0))) break;
      await clock.sleep(POLL_MS, signal);
    }
  } finally {
    // Also when the user has had enough, or the controller went away.
    cleared = await clearWork(work, context);
    context.err(`${cleared.removed} of them were taken back, ${cleared.left} are left\n`);
  }
  return { control, looks, injectedAt, jobs, cleared };
}

/** Enough for two instances more, beyond the tolerance. */
function jobsFor({ followed: { target, max, tolerance } }: TaggedWork, desired: number): number {
  return Math.max(1, Math.ceil(target * Math.min(max, desired + 2) * (1 + tolerance)));
}

function textOf({
  pool,
  level,
  windowMs,
  controlMs,
  verdict,
  nothingShown,
  claims,
}: {
  readonly pool: string;
  readonly level: string;
  readonly windowMs: number;
  readonly controlMs: number;
  readonly verdict: string;
  readonly nothingShown: readonly string[];
  readonly claims: readonly Claim[];
}): string {
  return [
    `pool ${pool}; level: ${level}; observed for ${formatDuration(controlMs)} without injected work and up to ${formatDuration(windowMs)} with it`,
    ...claims.map(({ claim, held, found }) => `${held ? "holds " : "FAILS "} ${claim}: ${found}`),
    ...nothingShown.map((why) => `shows nothing: ${why}`),
    `verdict: ${verdict}`,
    "",
  ].join("\n");
}
