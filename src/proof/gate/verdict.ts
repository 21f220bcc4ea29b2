/**
 * The verdict of a gate, from what was seen of its two runs and nothing else (T8–T14, I25).
 *
 * 1. An exception is none of the others, whatever was found beside it.
 * 2. A run that could have shown nothing is `invalid`, before anything is concluded from it.
 * 3. An experiment that could have shown something and did not hold is a `fail`, whatever the control did.
 * 4. A control that could have shown nothing is `invalid`: it wins over `non-discriminating`.
 * 5. `pass` takes a query that ran on the killed worker in both runs, gave the right rows with fault tolerance and failed without it, after the kill, by the loss.
 */
import { formatDuration } from "../../kernel/units.ts";
import { type GateReason, gateReason, type Verdict } from "../../model/gate.ts";
import type { GateRecord, KillRecord, RunRecord, StatementRecord, TasksLook } from "./record.ts";
import { differences, sessionDifferences, tellVariable, type Variable } from "./variables.ts";
import { isWorkerLoss } from "./worker-loss.ts";

export interface Judgement {
  readonly verdict: Verdict;
  readonly reasons: readonly [GateReason, ...GateReason[]];
  /** The one that the runs differed in; null: none, several, or there was one run. */
  readonly variable: Variable | null;
  /** Beside an exception: what the runs came to; null without one, or when none was done. */
  readonly found: Exclude<Verdict, "exception"> | null;
}

/** A look that is older says nothing about the moment of the kill. */
export const FRESH_MS = 10_000;

const LEAST_EXECUTING = 2;

export function judge(record: GateRecord): Judgement {
  const { exception } = record;
  if (exception === null) return { ...judgeRuns(record), found: null };
  const reason = gateReason("excepted", { by: exception.by, why: exception.why, followUps: exception.followUps.join("; ") });
  if (record.experiment === null) return { verdict: "exception", reasons: [reason], variable: null, found: null };
  const { verdict, reasons, variable } = judgeRuns(record);
  return { verdict: "exception", reasons: [reason, ...reasons], variable, found: verdict };
}

interface RunsJudgement {
  readonly verdict: Exclude<Verdict, "exception">;
  readonly reasons: readonly [GateReason, ...GateReason[]];
  readonly variable: Variable | null;
}

function judgeRuns(record: GateRecord): RunsJudgement {
  const { experiment, control, declared } = record;
  const told = sessionDifferences(declared.experiment, declared.control);
  if (told.length !== 1) return verdictOf("invalid", [notOneVariable(told)]);
  if (experiment === null) return verdictOf("invalid", beforeTheRuns(record));
  const variables = control === null ? told : differences(experiment.conditions, control.conditions, declared);
  const variable = variables.length === 1 ? (variables[0] ?? null) : null;
  const flaws = [
    ...(variable === null ? [notOneVariable(variables)] : []),
    ...tooFewDeclared(record),
    ...flawsOf(experiment, record),
    ...flawsOfTolerance(experiment),
  ];
  if (flaws.length > 0) return verdictOf("invalid", flaws, variable);
  const faults = faultsOf(experiment);
  if (faults.length > 0) return verdictOf("fail", faults, variable);
  if (control === null) return verdictOf("invalid", [gateReason("control_not_run", { why: record.stopped ?? "nobody ran it" })], variable);
  const controlFlaws = [...flawsOf(control, record), ...unknownPolicies(control.run, control.statements)];
  if (controlFlaws.length > 0) return verdictOf("invalid", controlFlaws, variable);
  return compare(experiment, control, variable);
}

function verdictOf(
  verdict: RunsJudgement["verdict"],
  [first, ...more]: readonly GateReason[],
  variable: Variable | null = null,
): RunsJudgement {
  // Whoever asks for a verdict has a reason.
  return { verdict, reasons: [first ?? gateReason("control_not_run", { why: "nothing was seen" }), ...more], variable };
}

function notOneVariable(variables: readonly Variable[]): GateReason {
  return gateReason("not_one_variable", { count: variables.length, variables: variables.map(tellVariable).join(", ") || "none" });
}

function beforeTheRuns(record: GateRecord): readonly GateReason[] {
  const problems = (record.baseline?.statements ?? []).flatMap(({ name, problem }) =>
    problem === null ? [] : [gateReason("expectation_unknown", { query: name, message: problem })],
  );
  const few = tooFewDeclared(record);
  if (few.length + problems.length > 0) return [...few, ...problems];
  return [gateReason("expectation_unknown", { query: "the gate", message: record.stopped ?? "the experiment was not begun" })];
}

function tooFewDeclared({ declaredWorkers }: GateRecord): readonly GateReason[] {
  return declaredWorkers < LEAST_EXECUTING ? [gateReason("too_few_declared", { declared: declaredWorkers })] : [];
}

/** Why this run could have shown nothing: no matter how its queries ended. */
function flawsOf(run: RunRecord, { declaredWorkers }: GateRecord): readonly GateReason[] {
  const unannounced = flawsOfNodes(run, declaredWorkers);
  // Without its workers whatever else went wrong follows from that.
  if (unannounced.length > 0) return unannounced;
  const early = run.statements.flatMap((statement) => failedEarly(run, statement));
  if (early.length > 0) return early;
  const window = flawsOfWindow(run);
  return window.length > 0 || run.kill === null ? window : flawsOfKill(run, run.kill);
}

/** At the start of the run and when the engine was last asked before the kill (T12). */
function flawsOfNodes({ run, looks, nodes: { announced: first, ready } }: RunRecord, declared: number): readonly GateReason[] {
  const last = looks.at(-1)?.announced ?? first;
  const announced = last.length < first.length ? last : first;
  if (announced.length >= Math.max(declared, LEAST_EXECUTING)) return [];
  return [
    gateReason("not_announced", {
      run,
      announced: announced.length,
      declared,
      ready: ready === null ? "nobody could tell" : ready.join(", ") || "none",
    }),
  ];
}

function failedEarly({ run, kill }: RunRecord, { name, outcome }: StatementRecord): readonly GateReason[] {
  if (outcome.kind !== "failed" || (kill !== null && outcome.at >= kill.at)) return [];
  return [gateReason("failed_before_kill", { run, query: name, error: errorName(outcome.error), message: outcome.error.message })];
}

/** Two workers had running tasks when the engine was last asked before the kill (T12). */
function flawsOfWindow(record: RunRecord): readonly GateReason[] {
  const { run, looks, kill, statements } = record;
  const last = looks.at(-1);
  const executing = last === undefined ? [] : executingOf(last);
  if (executing.length >= LEAST_EXECUTING && kill !== null) return [];
  if (kill === null && statements.length > 0 && statements.every(({ outcome }) => outcome.kind === "finished"))
    return statements.map(({ name }) => gateReason("ended_before_kill", { run, query: name }));
  const latest = looks.findLast((look) => executingOf(look).length > 0);
  const alone = latest === undefined ? [] : executingOf(latest);
  const [only] = alone;
  if (only !== undefined && alone.length === 1) return [gateReason("one_worker_has_all", { run, worker: only })];
  const seen = looks.length === 0 ? "the engine's tasks could not be read" : "no running task at all";
  return [gateReason("window_never_open", { run, bound: formatDuration(record.openBoundMs), seen })];
}

function flawsOfKill(record: RunRecord, kill: KillRecord): readonly GateReason[] {
  const { run, looks, statements } = record;
  const worker = kill.worker.nodeId;
  if (kill.what === null) return [gateReason("kill_failed", { run, worker, message: kill.error ?? "for a reason that is not known" })];
  const age = kill.at - (looks.at(-1)?.at ?? Number.NEGATIVE_INFINITY);
  if (age > FRESH_MS) return [gateReason("window_stale", { run, age: formatDuration(age) })];
  if (kill.goneAt === null)
    return [gateReason("kill_without_effect", { run, worker, seen: kill.error ?? "its process was there until the end" })];
  const victims = statements.filter((statement) => runningOnKilled(record, statement) > 0);
  if (victims.length === 0) return [gateReason("killed_had_no_tasks", { run, worker })];
  if (victims.some((statement) => !hadEnded(kill, statement))) return [];
  return victims.map(({ name }) => gateReason("ended_before_kill", { run, query: name }));
}

/** The retry policy is the engine's word on each query, the exchange a look at where it lies (T13). */
function flawsOfTolerance({ run, statements, exchange, kill }: RunRecord): readonly GateReason[] {
  const policies = statements.map(({ retryPolicy }) => retryPolicy);
  const unknown = unknownPolicies(run, statements);
  if (unknown.length > 0) return unknown;
  const without = policies.find((policy) => policy === "NONE");
  if (without !== undefined && without !== null) return [gateReason("nothing_tolerant", { policy: without })];
  // With QUERY nothing need leave the workers: the whole query is run again. And who was not killed in the middle may not have come so far.
  if (!policies.includes("TASK") || exchange.entries > 0 || kill === null) return [];
  return [gateReason("exchange_not_seen", { location: exchange.location })];
}

/** A control with retries or an exchange is none: when it survived that is why, when it failed that shows nothing. */
function flawsOfIntolerance({ statements, exchange }: RunRecord): readonly GateReason[] {
  const tolerant = statements.find(({ retryPolicy }) => retryPolicy !== null && retryPolicy !== "NONE")?.retryPolicy;
  return [
    ...(tolerant === undefined || tolerant === null ? [] : [gateReason("control_tolerant", { policy: tolerant })]),
    ...(exchange.entries > 0 ? [gateReason("exchange_in_control", { location: exchange.location })] : []),
  ];
}

function unknownPolicies(run: RunRecord["run"], statements: readonly StatementRecord[]): readonly GateReason[] {
  return statements.flatMap(({ name, retryPolicy }) => (retryPolicy === null ? [gateReason("policy_unknown", { run, query: name })] : []));
}

/** In what the experiment did not hold: rows (T11), and the worker's return (T14). */
function faultsOf(record: RunRecord): readonly GateReason[] {
  const { run, kill, back } = record;
  const ofStatements = record.statements.flatMap((statement) => faultOf(record, statement));
  if (kill === null || back === null || back.task !== null) return ofStatements;
  const values = { run, worker: kill.worker.nodeId, bound: formatDuration(back.boundMs), seen: back.seen };
  return [...ofStatements, gateReason("worker_not_back", values)];
}

function faultOf({ run, kill, endBoundMs }: RunRecord, { name: query, outcome }: StatementRecord): readonly GateReason[] {
  switch (outcome.kind) {
    case "finished":
      return outcome.difference === null ? [] : [gateReason("rows_wrong", { run, query, difference: outcome.difference })];
    case "failed": {
      const when = kill === null ? "before the kill" : `${formatDuration(outcome.at - kill.at)} after the kill`;
      return [gateReason("query_failed", { run, query, when, error: errorName(outcome.error), message: outcome.error.message })];
    }
    case "lost":
      return [gateReason("connection_lost", { run, query, message: outcome.message })];
    case "hung":
      return [gateReason("query_hung", { run, query, bound: formatDuration(endBoundMs), state: outcome.state, tasks: outcome.tasks })];
    default:
      return outcome satisfies never;
  }
}

/** Both runs could have shown something, and the experiment held. */
function compare(experiment: RunRecord, control: RunRecord, variable: Variable | null): RunsJudgement {
  const tried = experiment.statements.flatMap((statement, index) => {
    const other = control.statements[index];
    return other !== undefined && isVictim(experiment, statement) && isVictim(control, other) ? [{ statement, other }] : [];
  });
  if (tried.length === 0)
    return verdictOf(
      "invalid",
      [gateReason("nothing_lost_in_both", { experiment: victimsOf(experiment), control: victimsOf(control) })],
      variable,
    );
  const passes = tried.flatMap(({ statement, other }) => passOf(experiment, control, statement, other, variable));
  const tolerance = flawsOfIntolerance(control);
  if (passes.length > 0) return tolerance.length > 0 ? verdictOf("invalid", tolerance, variable) : verdictOf("pass", passes, variable);
  const otherwise = tried.flatMap(({ other }) => flawOfControl(control, other));
  if (otherwise.length > 0) return verdictOf("invalid", otherwise, variable);
  const values = { experiment: took(experiment), control: took(control), variable: nameOf(variable) };
  return verdictOf("non-discriminating", [gateReason("both_survived", values), ...tolerance], variable);
}

function passOf(
  experiment: RunRecord,
  control: RunRecord,
  { name: query }: StatementRecord,
  { outcome }: StatementRecord,
  variable: Variable | null,
): readonly GateReason[] {
  if (outcome.kind !== "failed" || control.kill === null || outcome.at < control.kill.at || !isWorkerLoss(outcome.error)) return [];
  const values = {
    query,
    worker: experiment.kill?.worker.nodeId ?? "a worker",
    variable: nameOf(variable),
    after: formatDuration(outcome.at - control.kill.at),
    error: errorName(outcome.error),
  };
  return [gateReason("survived_and_control_failed", values)];
}

function flawOfControl({ endBoundMs }: RunRecord, { name: query, outcome }: StatementRecord): readonly GateReason[] {
  switch (outcome.kind) {
    case "finished":
      return [];
    case "failed":
      return [gateReason("control_failed_otherwise", { query, error: errorName(outcome.error), message: outcome.error.message })];
    case "lost":
      return [gateReason("control_failed_otherwise", { query, error: "a lost coordinator", message: outcome.message })];
    case "hung":
      return [gateReason("control_hung", { query, bound: formatDuration(endBoundMs) })];
    default:
      return outcome satisfies never;
  }
}

/** Announced workers with running tasks of the run's queries. */
export function executingOf({ announced, running }: Pick<TasksLook, "announced" | "running">): readonly string[] {
  const busy = new Set(running.filter(({ tasks }) => tasks > 0).map(({ nodeId }) => nodeId));
  return announced.filter((nodeId) => busy.has(nodeId));
}

/** How many running tasks of it were on the killed worker when the engine was last asked before the kill. */
export function runningOnKilled({ looks, kill }: RunRecord, { queryId }: StatementRecord): number {
  const last = looks.at(-1);
  if (last === undefined || kill === null) return 0;
  return last.running
    .filter((each) => each.queryId === queryId && each.nodeId === kill.worker.nodeId)
    .reduce((sum, { tasks }) => sum + tasks, 0);
}

function hadEnded(kill: KillRecord, { outcome }: StatementRecord): boolean {
  return outcome.at < kill.at;
}

function isVictim(record: RunRecord, statement: StatementRecord): boolean {
  return record.kill !== null && runningOnKilled(record, statement) > 0 && !hadEnded(record.kill, statement);
}

function victimsOf(record: RunRecord): string {
  return (
    record.statements
      .filter((statement) => isVictim(record, statement))
      .map(({ name }) => name)
      .join(", ") || "none"
  );
}

/** From the start of the run's first query to the end of its last. */
function took({ statements }: RunRecord): string {
  const from = Math.min(...statements.map(({ startedAt }) => startedAt));
  return formatDuration(Math.max(...statements.map(({ outcome }) => outcome.at)) - from);
}

function nameOf(variable: Variable | null): string {
  return variable === null ? "the variable" : `${variable.name}=${variable.experiment}`;
}

function errorName({ name, code }: { readonly name: string; readonly code: number }): string {
  return `${name} (${code})`;
}
