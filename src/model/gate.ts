/**
 * A Gate: an experiment with a negative control (T8–T14). A worker is killed in the middle of a long query, once with fault tolerance and once without; only
 * the difference between the two proves anything.
 */
import { z } from "zod";
import { duration, someTime } from "./duration.ts";
import { API_VERSION } from "./pool.ts";

/** `non-discriminating`: both survived, so that nothing was shown; `invalid`: the run could not have shown anything. */
export const VERDICTS = ["pass", "fail", "invalid", "non-discriminating", "exception"] as const;
export type Verdict = (typeof VERDICTS)[number];

/** Why a verdict is what it is: the code that programs match on and the sentence that people read. `{name}` is filled from the reason's parameters. */
export const GATE_REASONS = {
  // pass
  survived_and_control_failed:
    "{query} lost {worker} and gave the right rows; the same query without {variable} failed {after} after its kill, by {error}",
  // fail
  query_failed: "{run}: {query} failed {when}, by {error}: {message}",
  query_hung: "{run}: {query} neither ended nor failed within {bound} after the kill; last seen {state}, {tasks}",
  rows_wrong: "{run}: {query} gave other rows than expected: {difference}",
  connection_lost: "{run}: the coordinator did not answer for {query} any more: {message}",
  worker_not_back: "{run}: no worker ran a new task in place of {worker} within {bound}: {seen}",
  // invalid
  not_one_variable: "the two runs must differ in exactly one variable, and differ in {count}: {variables}",
  nothing_tolerant: "the engine ran the experiment with the retry policy {policy}: it has no fault tolerance that could be shown",
  control_tolerant: "the engine ran the control with the retry policy {policy}: it must be NONE",
  policy_unknown: "{run}: the engine did not say with which retry policy it ran {query}",
  too_few_declared: "{declared} workers are declared: with fewer than two, nothing is left that could take over",
  not_announced:
    "{run}: {announced} of {declared} declared workers have announced themselves to the coordinator; ready all the same: {ready}",
  window_never_open: "{run}: within {bound} there was no moment at which two workers had running tasks: {seen}",
  one_worker_has_all: "{run}: all running tasks were on {worker}: a kill of it, or of another, would show nothing",
  killed_had_no_tasks: "{run}: {worker} had no running task when it was killed",
  window_stale: "{run}: the engine was last asked {age} before the kill: what ran at the kill is not known",
  ended_before_kill: "{run}: {query} had ended before the kill: it is too short",
  failed_before_kill: "{run}: {query} failed before the kill, by {error}: {message}",
  kill_failed: "{run}: {worker} could not be killed: {message}",
  kill_without_effect: "{run}: {worker} was to be killed and lived on: {seen}",
  exchange_not_seen:
    "nothing of the experiment's queries was seen at {location} while they ran: no data left the workers, or it is another place",
  exchange_in_control: "data of the control's queries was seen at {location}: it ran with an exchange",
  expectation_unknown: "what {query} should give is not known: {message}",
  control_not_run: "the control was not run: {why}",
  control_hung:
    "the control's {query} neither ended nor failed within {bound} after the kill: only a failure by the loss of the worker counts",
  control_failed_otherwise: "the control's {query} failed by {error}, which is no loss of a worker: {message}",
  nothing_lost_in_both: "no query had running tasks on the killed worker in both runs: experiment {experiment}, control {control}",
  // non-discriminating
  both_survived:
    "both runs survived the kill ({experiment} with and {control} without {variable}): the query does not need what it should prove",
  // exception
  excepted: "{by} goes on without this gate: {why}; still to be done: {followUps}",
} as const;
export type GateReasonCode = keyof typeof GATE_REASONS;

export interface GateReason {
  readonly code: GateReasonCode;
  readonly sentence: string;
}

/** The parameters of a sentence, by their names. */
type NamesIn<S extends string> = S extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;

export function gateReason<C extends GateReasonCode>(
  code: C,
  values: Readonly<Record<NamesIn<(typeof GATE_REASONS)[C]>, string | number>>,
): GateReason {
  const given = values as Readonly<Record<string, string | number>>;
  return { code, sentence: GATE_REASONS[code].replaceAll(/\{(\w+)\}/g, (_whole, name: string) => String(given[name] ?? "?")) };
}

/** Of an engine: a name as its session properties have it, one of a catalog with the catalog in front. */
const propertyName = z.string().regex(/^[A-Za-z_][\w.-]{0,199}$/, "the name of a session property, such as retry_policy");
const session = z.record(propertyName, z.string().max(1_000));
const argument = z.string().max(4_000);
const commandLine = z.array(argument).min(1).max(50);
const MOST_STATEMENTS = 8;

const statement = z.strictObject({
  sql: z.string().min(1).max(100_000),
  /** Absent: what the query gives without a kill, in a run before. In any order. */
  expect: z.strictObject({ rows: z.array(z.array(z.unknown())).max(10_000) }).optional(),
});
export type GateStatement = z.output<typeof statement>;

const place = z
  .strictObject({
    coordinator: z.strictObject({ url: z.url({ protocol: /^https?$/, error: "an address such as http://127.0.0.1:8080" }) }).optional(),
    pool: z.strictObject({ name: z.string().min(1).max(253), instance: z.string().min(1).max(253).optional() }).optional(),
    /** As whom the engine is asked; it must be allowed to see the queries of the runs. */
    user: z.string().min(1).max(128).default("relevo"),
    workers: z
      .strictObject({
        /** How many are declared. Of a pool: as its objects say, when absent. */
        count: z.int().min(1).max(10_000).optional(),
        /** Where they can be asked whether they are ready, as their own health check would. */
        urls: z
          .array(z.url({ protocol: /^https?$/, error: "an address such as http://127.0.0.1:8081" }))
          .max(100)
          .default([]),
      })
      .prefault({}),
  })
  .refine(({ coordinator, pool }) => (coordinator === undefined) !== (pool === undefined), "name either coordinator or pool")
  .refine(
    ({ pool, workers }) => pool !== undefined || workers.count !== undefined || workers.urls.length > 0,
    "say in workers.count how many workers are declared",
  );

const kill = z
  .strictObject({
    /** The node id of a worker; absent: the one with the most running tasks. */
    worker: z.string().min(1).max(253).optional(),
    /** The worker's pod is deleted with a grace of 0, under its UID. */
    pod: z.strictObject({ namespace: z.string().min(1).max(63).optional() }).optional(),
    /** Run without a shell; `$(worker.nodeId)`, `$(worker.uri)`, `$(worker.host)` and `$(worker.port)` in it are the worker's. */
    command: commandLine.optional(),
    /** Brings it back afterwards, where nobody else does. */
    restart: commandLine.optional(),
  })
  .refine(({ pod, command }) => (pod === undefined) !== (command === undefined), "name either pod or command");

export const gateSchema = z.strictObject({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal("Gate"),
  metadata: z.strictObject({
    name: z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, "small letters, digits and dashes, at most 63 characters"),
    namespace: z.string().min(1).max(63).optional(),
  }),
  spec: z.strictObject({
    where: place,
    /** Run side by side; without any, Relevo brings its own, which are bound to no host. */
    statements: z.array(statement).max(MOST_STATEMENTS).default([]),
    /** Of Relevo's own queries: how many rows each goes through at first. More when that takes too short a time. */
    ownRows: z.int().min(1_000_000).max(10_000_000_000).default(60_000_000),
    /** What the two runs are told. They must differ in one property (T10). */
    experiment: z.strictObject({ session: session.default({}) }).prefault({ session: { retry_policy: "TASK" } }),
    control: z.strictObject({ session: session.default({}) }).prefault({ session: { retry_policy: "NONE" } }),
    kill,
    /** Where the exchange is listed during the query (T13): a folder, or s3://bucket/prefix. */
    exchange: z.strictObject({ location: z.string().min(1).max(1_000) }),
    windows: z
      .strictObject({
        /** So long the declared workers may take to announce themselves. */
        announce: someTime.prefault("2m"),
        /** So long it may take until two workers have running tasks. */
        open: someTime.prefault("2m"),
        /** So long after the first running task the kill comes at the earliest. */
        before: duration.prefault("3s"),
        /** So long after the kill a query may take; beyond it hangs. */
        end: someTime.prefault("5m"),
        /** So long the killed worker may take to come back and run a task. */
        back: someTime.prefault("5m"),
        /** So long a run without a kill may take. */
        baseline: someTime.prefault("10m"),
      })
      .prefault({}),
  }),
});
export type GateDocument = z.output<typeof gateSchema>;
export type GateSpec = GateDocument["spec"];
