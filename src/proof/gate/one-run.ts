/**
 * One run of a gate: its workers have announced themselves, its queries run, the kill window opens, a worker is killed, and the queries are followed to their
 * end or to the bound. Nothing is judged here.
 */
import { formatDuration } from "../../kernel/units.ts";
import { within } from "./bounded.ts";
import { activeWorkers, type GateContext, look, PAUSE_MS, patiently } from "./context.ts";
import { ExchangeWatch } from "./exchange-watch.ts";
import { type Asked, Followed } from "./followed.ts";
import type { EffectiveQuery } from "./ports.ts";
import type { Conditions, KillRecord, NodesRecord, RunName, RunRecord, StatementRecord } from "./record.ts";
import { countRunning, idsOf, openWindow, tellRunning } from "./window.ts";

export interface OneRun {
  readonly run: RunName;
  readonly asked: readonly Asked[];
  /** One more of the gate's own queries, by its number; undefined: the queries are the user's, or the control's, which are as many as the experiment's. */
  readonly more: ((number: number) => Asked | undefined) | undefined;
}

/** So long a killed process may take to be seen gone. */
const GONE_MS = 30_000;
/** Not tried again: a statement whose answer was lost may run. */
export const START_MS = 60_000;
const INFO_ATTEMPTS = 3;
/** A coordinator that is busy takes some seconds before it knows a query. */
const QUERY_ATTEMPTS = 6;

export async function runOnce(context: GateContext, { run, asked, more }: OneRun): Promise<RunRecord> {
  const { engine, spec, at, clock, signal } = context;
  const startedAt = at();
  const exchange = new ExchangeWatch(context);
  const { session } = spec[run];
  const info = await patiently(context, "GET /v1/info", INFO_ATTEMPTS, () => engine.info());
  const nodes = await awaitWorkers(context, run);
  const followed: Followed[] = [];
  const effective = new Map<string, EffectiveQuery>();
  const begin = async (one: Asked): Promise<Followed> => {
    const each = await within(clock, START_MS, "The start of a query", Followed.start(engine, one, session, at));
    const told = await patiently(context, "GET /v1/query", QUERY_ATTEMPTS, () => engine.query(each.queryId)).catch(ignoreUnless(signal));
    if (told !== undefined) effective.set(each.queryId, told);
    return each;
  };
  const recordOf = (rest: Pick<RunRecord, "looks" | "kill">): RunRecord => ({
    run,
    conditions: conditionsOf(context, info, nodes, followed, effective),
    nodes,
    statements: followed.map((each) => statementOf(each, effective.get(each.queryId))),
    openBoundMs: spec.windows.open,
    endBoundMs: spec.windows.end,
    exchange: exchange.record(),
    back: null,
    startedAt,
    endedAt: at(),
    ...rest,
  });
  if (nodes.announced.length < Math.max(2, context.declaredWorkers)) return recordOf({ looks: [], kill: null });
  try {
    for (const one of asked) followed.push(await begin(one));
    context.tell(`${run}: ${followed.length} queries run (${idsOf(followed).join(", ")})`);
    const { looks, victim } = await openWindow(context, {
      nodes,
      followed,
      exchange,
      needsExchange: [...effective.values()].some(({ retryPolicy }) => retryPolicy === "TASK"),
      addOne: addOneOf(followed, more, begin),
    });
    if (victim === undefined) {
      await giveUp(followed, "given up before a kill", "nobody was killed");
      return recordOf({ looks, kill: null });
    }
    const kill = await killAndFollow(context, run, victim, followed, exchange);
    await exchange.listLeft(idsOf(followed));
    return recordOf({ looks, kill });
  } finally {
    // Whatever happened: nothing of the gate runs on.
    await giveUp(followed, "given up", "the gate was ended");
  }
}

/** An engine that does not say how it runs a query is a verdict, and no end of the gate; one whom nobody waits for any more ends. */
function ignoreUnless(signal: AbortSignal): (error: unknown) => undefined {
  return (error) => {
    if (signal.aborted) throw error;
  };
}

function addOneOf(
  followed: readonly Followed[],
  more: OneRun["more"],
  begin: (one: Asked) => Promise<Followed>,
): (() => Promise<Followed>) | undefined {
  return more === undefined
    ? undefined
    : async () => {
        const next = more(followed.length + 1);
        const last = followed.at(-1);
        if (next !== undefined) return begin(next);
        if (last === undefined) throw new Error("a window without a query");
        return last;
      };
}

/** Waits until as many are announced as are declared; what is there at the bound is recorded. */
async function awaitWorkers(context: GateContext, run: RunName): Promise<NodesRecord> {
  const { clock, signal, at, spec, declaredWorkers, ready } = context;
  const until = at() + spec.windows.announce;
  let announced: NodesRecord["announced"] = [];
  for (;;) {
    const nodes = await look(clock, "A read of system.runtime.nodes", () => activeWorkers(context));
    if ("seen" in nodes) announced = nodes.seen.map(({ nodeId, uri }) => ({ nodeId, uri }));
    if (announced.length >= declaredWorkers || at() >= until) break;
    await clock.sleep(PAUSE_MS * 4, signal);
  }
  const state = await look(clock, "A look at the workers", () => ready.ready());
  context.tell(`${run}: ${announced.length} of ${declaredWorkers} declared workers have announced themselves`);
  return { at: at(), announced, ready: "seen" in state ? state.seen : null };
}

async function killAndFollow(
  context: GateContext,
  run: RunName,
  worker: KillRecord["worker"],
  followed: readonly Followed[],
  exchange: ExchangeWatch,
): Promise<KillRecord> {
  const { killer, clock, signal, at, spec } = context;
  const killedAt = at();
  const done = await look(clock, "The kill", () => killer.kill(worker));
  context.tell(
    `${run}: ${worker.nodeId} (${worker.uri}) ${"seen" in done ? `is killed: ${done.seen}` : `could not be killed: ${done.failed}`}`,
  );
  const kill = { worker, how: killer.how, at: killedAt };
  if ("failed" in done) {
    await giveUp(followed, "given up", "the kill failed");
    return { ...kill, what: null, error: done.failed, goneAt: null, unannouncedAt: null };
  }
  let goneAt: number | null = null;
  let unannouncedAt: number | null = null;
  let error: string | null = null;
  for (const until = at() + spec.windows.end; at() < until; await clock.sleep(PAUSE_MS * 2, signal)) {
    if (goneAt === null) {
      const gone = await look(clock, "A look at the killed worker", () => killer.isGone(worker));
      if ("failed" in gone) error = gone.failed;
      else if (gone.seen === true || (gone.seen === null && unannouncedAt !== null)) goneAt = at();
      else error = gone.seen === false ? `its process still answers ${formatDuration(at() - killedAt)} after the kill` : null;
    }
    if (unannouncedAt === null) {
      const nodes = await look(clock, "A read of system.runtime.nodes", () => activeWorkers(context));
      if ("seen" in nodes && nodes.seen.every(({ nodeId }) => nodeId !== worker.nodeId)) {
        unannouncedAt = at();
        context.tell(`${run}: the engine noticed the loss after ${formatDuration(unannouncedAt - killedAt)}`);
      }
    }
    const hasEnded = followed.every(({ outcome }) => outcome !== undefined);
    if (!hasEnded) await exchange.list(idsOf(followed));
    if (hasEnded && (goneAt !== null || at() - killedAt > GONE_MS)) break;
  }
  await tellHung(context, run, followed);
  return { ...kill, what: done.seen, error: goneAt === null ? error : null, goneAt, unannouncedAt };
}

/** What stands still is given up, with what the engine says of it. */
async function tellHung(context: GateContext, run: RunName, followed: readonly Followed[]): Promise<void> {
  for (const each of followed) {
    if (each.outcome !== undefined) {
      context.tell(`${run}: ${each.asked.name} ${tellOutcome(each)}`);
      continue;
    }
    const state = await look(context.clock, "GET /v1/query", () => context.engine.query(each.queryId));
    const tasks = await look(context.clock, "A read of system.runtime.tasks", () => context.engine.tasks([each.queryId]));
    await each.giveUp(
      "seen" in state ? state.seen.state : state.failed,
      "seen" in tasks ? tellStanding(countRunning(tasks.seen)) : tasks.failed,
    );
    context.tell(`${run}: ${each.asked.name} hangs, and is cancelled`);
  }
}

/** With nothing that runs it waits for something: after a kill most likely for a host that is no more. */
function tellStanding(running: ReturnType<typeof countRunning>): string {
  return running.length > 0
    ? tellRunning({ running })
    : "no running task: it may wait for the host and port of the killed worker, where its splits are bound to it";
}

async function giveUp(followed: readonly Followed[], state: string, tasks: string): Promise<void> {
  for (const each of followed) await each.giveUp(state, tasks);
}

function tellOutcome({ outcome }: Followed): string {
  switch (outcome?.kind) {
    case "finished":
      return outcome.difference === null ? `gave its ${outcome.rows} rows` : `gave wrong rows: ${outcome.difference}`;
    case "failed":
      return `failed by ${outcome.error.name} (${outcome.error.code})`;
    case "lost":
      return `was lost with its coordinator: ${outcome.message}`;
    default:
      return "has not ended";
  }
}

function conditionsOf(
  { spec }: GateContext,
  { bootId, version, environment }: { readonly bootId: string; readonly version: string; readonly environment: string },
  { announced }: NodesRecord,
  followed: readonly Followed[],
  effective: ReadonlyMap<string, EffectiveQuery>,
): Conditions {
  const [first] = followed;
  return {
    bootId,
    version,
    environment,
    user: spec.where.user,
    workers: announced.length,
    statements: followed.map(({ asked }) => asked.sql),
    session: first === undefined ? null : (effective.get(first.queryId)?.session ?? null),
  };
}

function statementOf(followed: Followed, effective: EffectiveQuery | undefined): StatementRecord {
  return {
    name: followed.asked.name,
    queryId: followed.queryId,
    retryPolicy: effective?.retryPolicy ?? null,
    startedAt: followed.startedAt,
    outcome: followed.outcome ?? { kind: "lost", at: followed.startedAt, message: "it was left while it ran" },
  };
}
