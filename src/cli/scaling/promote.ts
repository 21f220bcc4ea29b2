/** `relevo promote POOL --before GATE …`: what goes ahead of its gate is recorded as an exception with what is to be done about it, never as a pass (K10). */
import { type ExceptionView, exceptionView } from "../../server/scale-views.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { connect, poolKeyOf } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import { renderDocument } from "../output.ts";

export interface PromoteOptions extends GlobalOptions {
  readonly what?: string;
  readonly before?: string;
  readonly why?: string;
  readonly followUp?: readonly string[];
  /** The id of an exception. */
  readonly done?: string;
  /** Which follow-up, from 1; all when absent. */
  readonly item?: number;
}

export async function promote(context: CliContext, name: string | undefined, options: PromoteOptions): Promise<ExitCode> {
  refuseMixed(options);
  const exception = options.done === undefined ? await record(context, name, options) : await finish(context, name, options.done, options);
  context.out(renderDocument(exception, options.output) ?? textOf(exception));
  return exception.open ? EXIT.held : EXIT.done;
}

/** What would be passed over is a mistake: the other one of both would be done in its place. */
function refuseMixed({ what, before, why, followUp, done, item }: PromoteOptions): void {
  const recording = { "--what": what, "--before": before, "--why": why, "--follow-up": followUp };
  const given = Object.entries(done === undefined ? { "--item": item } : recording).flatMap(([option, value]) =>
    value === undefined ? [] : [option],
  );
  if (given.length === 0) return;
  throw new UsageError("record_or_done", "An exception is recorded, or follow-ups of one are done: one after the other.", {
    found: `${given.join(", ")} ${done === undefined ? "without" : "beside"} --done`,
    allowed: "--item with --done alone; --what, --before, --why and --follow-up without it",
  });
}

async function record(context: CliContext, name: string | undefined, options: PromoteOptions): Promise<ExceptionView> {
  const { before: gate, why, followUp: followUps } = options;
  if (name === undefined || gate === undefined || why === undefined || followUps === undefined)
    throw new UsageError("promotion_incomplete", "A promotion before its gate names the gate, why, and what is still to be done.", {
      found: [name && "a pool", gate && "--before", why && "--why", followUps && "--follow-up"].filter(Boolean).join(", ") || "nothing",
      allowed: "relevo promote POOL --before GATE --why WHY --follow-up WHAT (may be repeated), or relevo promote --done EXCEPTION",
    });
  const pool = poolKeyOf(name, options.namespace);
  const what = options.what ?? `pool ${pool}`;
  return connect(context, options).post(`/v1/pools/${pool}/exceptions`, { what, gate, why, followUps, by: context.user }, exceptionView);
}

async function finish(context: CliContext, name: string | undefined, id: string, options: PromoteOptions): Promise<ExceptionView> {
  const client = connect(context, options);
  const query = name === undefined ? "" : `&pool=${encodeURIComponent(poolKeyOf(name, options.namespace))}`;
  const known = (await client.list(`/v1/exceptions?limit=1000${query}`, exceptionView)).find((each) => each.id === id);
  if (known === undefined)
    throw new RelevoError("not_found", `There is no exception ${id}.`, { found: id, todo: "see relevo get exceptions" });
  const open = known.followUps.flatMap(({ doneAt }, index) => (doneAt === null ? [index] : []));
  const chosen = options.item === undefined ? open : [options.item - 1];
  let latest = known;
  for (const index of chosen)
    latest = await client.post(`/v1/exceptions/${encodeURIComponent(id)}/follow-ups/${index}/done`, {}, exceptionView);
  return latest;
}

function textOf({ id, pool, what, gate, why, by, followUps, open }: ExceptionView): string {
  return [
    `exception ${id}: ${what} (pool ${pool}) went ahead of ${gate}, by ${by}: ${why}`,
    ...followUps.map(({ what: item, doneAt }, index) => `  ${index + 1}. ${doneAt === null ? "open" : `done ${doneAt}`}: ${item}`),
    open ? `it is no pass: relevo explain and relevo doctor show it until relevo promote --done ${id}` : "nothing of it is open any more",
    "",
  ].join("\n");
}
