/**
 * A gate from its beginning to its end: a run without a kill, the experiment, the worker's return, the control, the worker's return (T8–T14). What was seen is
 * recorded; the verdict is made from the record alone.
 */
import { formatDuration } from "../../kernel/units.ts";
import type { GateSpec } from "../../model/gate.ts";
import { within } from "./bounded.ts";
import { type GateContext, type GatePorts, look, PAUSE_MS } from "./context.ts";
import { type Asked, Followed } from "./followed.ts";
import { runOnce, START_MS } from "./one-run.ts";
import { MOST_OWN_STATEMENTS, OWN_STATEMENTS, ownQuery, ownRowsOf } from "./own-query.ts";
import type { GateWorker, Killer } from "./ports.ts";
import type { BaselineRecord, GateRecord, RunName, RunRecord } from "./record.ts";
import { sessionDifferences } from "./variables.ts";
import { judge } from "./verdict.ts";
import { awaitReturn } from "./worker-return.ts";

/** Without a kill the gate's own queries take at least so long: time enough to see them run and to kill a worker. */
const LEAST_MS = 20_000;
const ROWS_MOST = 10_000_000_000;
const SIZINGS = 5;

/** Rejects only when the engine cannot be asked at all, or when the user has had enough. */
export async function runGate(spec: GateSpec, declaredWorkers: number, ports: GatePorts): Promise<GateRecord> {
  const began = ports.clock.monotonic();
  const context: GateContext = { ...ports, spec, declaredWorkers, at: () => Math.round(ports.clock.monotonic() - began) };
  const nothing: GateRecord = {
    declared: { experiment: spec.experiment.session, control: spec.control.session },
    declaredWorkers,
    exchangeLocation: ports.listing.location,
    experiment: null,
    control: null,
    stopped: null,
    baseline: null,
    exception: null,
  };
  if (sessionDifferences(spec.experiment.session, spec.control.session).length !== 1)
    return { ...nothing, stopped: "the runs differ in more or less than one variable" };
  if (declaredWorkers < 2) return { ...nothing, stopped: "fewer than two workers are declared" };
  const { asked, baseline } = await queriesOf(context);
  if (baseline.statements.some(({ problem }) => problem !== null))
    return { ...nothing, baseline, stopped: "what the queries should give is not known" };
  const isOwn = spec.statements.length === 0;
  const more = isOwn
    ? (number: number) => (number <= MOST_OWN_STATEMENTS ? { ...first(asked), name: `query ${number}` } : undefined)
    : undefined;
  const experiment = await runAndReturn(context, "experiment", asked, more);
  const begun = { ...nothing, baseline, experiment };
  // A control shows nothing beside an experiment that could show nothing, or did not hold.
  const sofar = judge({ ...begun, stopped: null });
  if (sofar.verdict === "fail") return { ...begun, stopped: "the experiment did not hold" };
  if (sofar.reasons.every(({ code }) => code !== "control_not_run"))
    return { ...begun, stopped: "the experiment could not have shown anything" };
  const control = await runAndReturn(context, "control", sameAs(experiment, asked), undefined);
  return { ...begun, control };
}

/** A killed worker is waited for, so that the next run finds as many as this one. */
async function runAndReturn(
  context: GateContext,
  run: RunName,
  asked: readonly Asked[],
  more: ((number: number) => Asked | undefined) | undefined,
): Promise<RunRecord> {
  const record = await bringingBack(context, (watched) => runOnce(watched, { run, asked, more }));
  if (record.kill === null || record.kill.what === null) return record;
  const { nodeId } = record.kill.worker;
  const survivors = new Set(record.nodes.announced.map((node) => node.nodeId).filter((id) => id !== nodeId));
  return { ...record, back: await awaitReturn(context, record.kill.worker, survivors) };
}

/** Whoever is interrupted after a kill does not leave a worker dead that Relevo should have brought back. */
async function bringingBack(context: GateContext, act: (watched: GateContext) => Promise<RunRecord>): Promise<RunRecord> {
  const { killer, clock } = context;
  const killed: GateWorker[] = [];
  const kill: Killer["kill"] = async (worker) => {
    killed.push(worker);
    return killer.kill(worker);
  };
  const { how } = killer;
  const watching: Killer = { how, kill, isGone: (worker) => killer.isGone(worker), restart: (worker) => killer.restart(worker) };
  try {
    return await act({ ...context, killer: watching });
  } catch (error) {
    for (const worker of killed) {
      const back = await look(clock, "The restart", () => killer.restart(worker));
      if ("failed" in back) context.tell(`${worker.nodeId} could not be started again: ${back.failed}`);
    }
    throw error;
  }
}

function first(asked: readonly Asked[]): Asked {
  const [one] = asked;
  if (one === undefined) throw new Error("a gate without a query");
  return one;
}

/** The control asks what the experiment asked in the end: another number of queries would be a second variable. */
function sameAs({ statements }: RunRecord, asked: readonly Asked[]): readonly Asked[] {
  return statements.map(({ name }, index) => asked[index] ?? { ...first(asked), name });
}

interface Queries {
  readonly asked: readonly Asked[];
  readonly baseline: BaselineRecord;
}

/** The user's queries, with what they give where the document does not say it; or Relevo's own, made long enough. */
async function queriesOf(context: GateContext): Promise<Queries> {
  const { statements, experiment } = context.spec;
  if (statements.length === 0) return ownQueries(context);
  const asked = statements.map(({ sql, expect }, index) => ({ name: `query ${index + 1}`, sql, expected: expect?.rows ?? null }));
  const unknown = asked.filter(({ expected }) => expected === null);
  if (unknown.length === 0) return { asked, baseline: { statements: [] } };
  context.tell(`${unknown.length} queries run without a kill: what they give then is expected of them`);
  const run = await runWithoutKill(context, unknown, experiment.session);
  const rowsOf = new Map(run.map(({ asked: { name }, rows }) => [name, rows]));
  return {
    asked: asked.map((each) => ({ ...each, expected: each.expected ?? rowsOf.get(each.name) ?? null })),
    baseline: baselineOf(run),
  };
}

/** Sized without retries: with them the same query takes longer, never less. */
async function ownQueries(context: GateContext): Promise<Queries> {
  let rows = context.spec.ownRows;
  for (let sizing = 1; ; sizing++) {
    const asked = Array.from({ length: OWN_STATEMENTS }, (_, index) => ({
      name: `query ${index + 1}`,
      sql: ownQuery(rows),
      expected: ownRowsOf(rows),
    }));
    const run = await runWithoutKill(context, asked, context.spec.control.session);
    const baseline = baselineOf(run);
    const tookMs = Math.min(...baseline.statements.map((each) => each.tookMs));
    const hasProblem = baseline.statements.some(({ problem }) => problem !== null);
    if (hasProblem || tookMs >= LEAST_MS || sizing === SIZINGS || rows === ROWS_MOST) return { asked, baseline };
    context.tell(`${rows} rows take ${formatDuration(tookMs)} without a kill: that is too short`);
    const factor = Math.min(20, Math.max(2, (1.3 * LEAST_MS) / Math.max(1, tookMs)));
    rows = Math.min(ROWS_MOST, Math.ceil((rows * factor) / 1_000_000) * 1_000_000);
  }
}

async function runWithoutKill(
  context: GateContext,
  asked: readonly Asked[],
  session: Readonly<Record<string, string>>,
): Promise<readonly Followed[]> {
  const { engine, clock, signal, at, spec } = context;
  const followed: Followed[] = [];
  try {
    for (const one of asked) followed.push(await within(clock, START_MS, "The start of a query", Followed.start(engine, one, session, at)));
    const until = at() + spec.windows.baseline;
    while (at() < until && followed.some(({ outcome }) => outcome === undefined)) await clock.sleep(PAUSE_MS, signal);
    return followed;
  } finally {
    for (const each of followed) await each.giveUp(`it did not end within ${formatDuration(spec.windows.baseline)}`, "nobody was killed");
  }
}

function baselineOf(run: readonly Followed[]): BaselineRecord {
  return {
    statements: run.map(({ asked, rows, startedAt, outcome }) => ({
      name: asked.name,
      rows: rows.length,
      tookMs: (outcome?.at ?? startedAt) - startedAt,
      problem: problemOf(outcome),
    })),
  };
}

function problemOf(outcome: Followed["outcome"]): string | null {
  switch (outcome?.kind) {
    case "finished":
      return outcome.difference === null ? null : `without a kill it gave other rows: ${outcome.difference}`;
    case "failed":
      return `without a kill it failed by ${outcome.error.name} (${outcome.error.code}): ${outcome.error.message}`;
    case "lost":
      return `without a kill it was lost: ${outcome.message}`;
    case "hung":
      return `without a kill ${outcome.state}`;
    default:
      return "it was left while it ran";
  }
}
