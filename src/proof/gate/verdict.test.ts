import { describe, expect, test } from "vitest";
import type { GateReasonCode, Verdict } from "../../model/gate.ts";
import type { GateRecord, RunRecord } from "./record.ts";
import { aRecord, aRun, failed, finished, kill, LOSS, statement } from "./testing/records.ts";
import { judge } from "./verdict.ts";

const codesOf = (record: GateRecord): readonly [Verdict, ...GateReasonCode[]] => {
  const { verdict, reasons } = judge(record);
  return [verdict, ...reasons.map(({ code }) => code)];
};
const withExperiment = (rest: Partial<RunRecord>) => aRecord({ experiment: aRun("experiment", rest) });
const withControl = (rest: Partial<RunRecord>) => aRecord({ control: aRun("control", rest) });
const oneAnnounced = { at: 9_000, announced: [{ nodeId: "w1", uri: "http://127.0.0.1:8081" }], ready: ["w1", "w2"] };
const lookAt = (run: string, ...running: readonly (readonly [nodeId: string, number: number, tasks: number])[]) => [
  {
    at: 19_500,
    announced: [...new Set(["w1", "w2", ...running.map(([nodeId]) => nodeId)])].filter((nodeId) => nodeId.startsWith("w")),
    running: running.map(([nodeId, number, tasks]) => ({ nodeId, queryId: `${run}-${number}`, tasks })),
  },
];

test("a query that lost a worker and gave its rows, and failed by that loss without fault tolerance, passes (T11)", () => {
  expect(judge(aRecord())).toEqual({
    verdict: "pass",
    reasons: [
      {
        code: "survived_and_control_failed",
        sentence:
          "query 1 lost w2 and gave the right rows; the same query without retry_policy=TASK failed 11s after its kill, by PAGE_TRANSPORT_TIMEOUT (65540)",
      },
    ],
    variable: { name: "retry_policy", experiment: "TASK", control: "NONE" },
    found: null,
  });
});

describe("invalid: the runs could have shown nothing", () => {
  const cases: readonly (readonly [string, GateRecord, GateReasonCode])[] = [
    ["fewer than two workers are declared (T8)", aRecord({ declaredWorkers: 1 }), "too_few_declared"],
    ["the second worker is ready but has not announced itself (T12)", withExperiment({ nodes: oneAnnounced, kill: null }), "not_announced"],
    ["in the control too (T11, T12)", withControl({ nodes: oneAnnounced, kill: null }), "not_announced"],
    [
      "a worker was announced at first, and not any more at the kill (T12)",
      withExperiment({ looks: lookAt("experiment", ["w1", 1, 4], ["w2", 1, 4]).map((look) => ({ ...look, announced: ["w2"] })) }),
      "not_announced",
    ],
    [
      "it failed while one worker had all running tasks",
      withExperiment({
        looks: lookAt("experiment", ["w1", 1, 8]),
        kill: null,
        statements: [statement("experiment", { outcome: failed(200_000) })],
      }),
      "failed_before_kill",
    ],
    [
      "one worker had all running tasks, and it was killed all the same (T8)",
      withExperiment({ looks: lookAt("experiment", ["w2", 1, 8]) }),
      "one_worker_has_all",
    ],
    [
      "one worker had all running tasks until the window closed (T12)",
      withExperiment({
        looks: [...lookAt("experiment", ["w1", 1, 8]), { at: 120_000, announced: ["w1", "w2"], running: [] }],
        kill: null,
        statements: [statement("experiment", { outcome: { kind: "hung", at: 120_000, state: "given up", tasks: "none" } })],
      }),
      "one_worker_has_all",
    ],
    [
      "a coordinator that runs tasks is no second worker (T8)",
      withExperiment({ looks: lookAt("experiment", ["c1", 1, 8], ["w2", 1, 8]) }),
      "one_worker_has_all",
    ],
    ["the engine could never be asked (T12)", withExperiment({ looks: [], kill: null, statements: [] }), "window_never_open"],
    ["it was asked too long before the kill (T12)", withExperiment({ kill: kill({ at: 31_000 }) }), "window_stale"],
    [
      "the killed worker had no running task (T11)",
      withExperiment({
        looks: lookAt("experiment", ["w1", 1, 4], ["w3", 1, 4], ["w2", 2, 0]),
        nodes: { at: 9_000, announced: ["w1", "w2", "w3"].map((nodeId) => ({ nodeId, uri: `http://${nodeId}` })), ready: null },
      }),
      "killed_had_no_tasks",
    ],
    [
      "the query ended before the kill",
      withExperiment({ statements: [statement("experiment", { outcome: finished(19_900) })] }),
      "ended_before_kill",
    ],
    [
      "the query ended before the window opened",
      withExperiment({ looks: [], kill: null, statements: [statement("experiment", { outcome: finished(12_000) })] }),
      "ended_before_kill",
    ],
    [
      "the query failed before the kill",
      withExperiment({ statements: [statement("experiment", { outcome: failed(19_000) })] }),
      "failed_before_kill",
    ],
    [
      "the control failed before its kill (T11)",
      withControl({ statements: [statement("control", { outcome: failed(19_000) })] }),
      "failed_before_kill",
    ],
    ["the worker could not be killed", withExperiment({ kill: kill({ what: null, error: "no such process" }) }), "kill_failed"],
    ["the command said yes and the worker lived on", withExperiment({ kill: kill({ goneAt: null }) }), "kill_without_effect"],
    ["the control's worker lived on", withControl({ kill: kill({ goneAt: null }) }), "kill_without_effect"],
    [
      "the document changes two variables (T10)",
      aRecord({
        declared: { experiment: { retry_policy: "TASK", task_concurrency: "2" }, control: { retry_policy: "NONE" } },
        experiment: null,
        control: null,
      }),
      "not_one_variable",
    ],
    ["the document changes none (T10)", aRecord({ declared: { experiment: {}, control: {} } }), "not_one_variable"],
    [
      "the engine took a second variable (T10)",
      withControl({ conditions: { ...aRun("control").conditions, session: { retry_policy: "NONE", spill_enabled: "true" } } }),
      "not_one_variable",
    ],
    [
      "the coordinator was another process (T10)",
      withControl({ conditions: { ...aRun("control").conditions, bootId: "c1/zz99z" } }),
      "not_one_variable",
    ],
    [
      "there were more workers in the control (T10)",
      withControl({ conditions: { ...aRun("control").conditions, workers: 3 } }),
      "not_one_variable",
    ],
    [
      "the control asked something else (T10)",
      withControl({ conditions: { ...aRun("control").conditions, statements: ["SELECT 2"] } }),
      "not_one_variable",
    ],
    [
      "the engine ran the experiment without retries (T1)",
      withExperiment({ statements: [statement("experiment", { retryPolicy: "NONE" })] }),
      "nothing_tolerant",
    ],
    [
      "the engine ran the control with retries (T11)",
      withControl({ statements: [statement("control", { retryPolicy: "QUERY" })] }),
      "control_tolerant",
    ],
    [
      "the engine did not say how it ran it",
      withExperiment({ statements: [statement("experiment", { retryPolicy: null })] }),
      "policy_unknown",
    ],
    [
      "nothing was seen in the exchange (T13)",
      withExperiment({ exchange: { ...aRun("experiment").exchange, entries: 0 } }),
      "exchange_not_seen",
    ],
    ["the control had an exchange", withControl({ exchange: { ...aRun("control").exchange, entries: 3 } }), "exchange_in_control"],
    [
      "what the query gives is not known",
      aRecord({
        experiment: null,
        control: null,
        baseline: { statements: [{ name: "query 1", rows: 0, tookMs: 1, problem: "it failed" }] },
      }),
      "expectation_unknown",
    ],
    ["there is no control (T11)", aRecord({ control: null }), "control_not_run"],
    [
      "the control hung (T11)",
      withControl({ statements: [statement("control", { outcome: { kind: "hung", at: 320_000, state: "RUNNING", tasks: "none" } })] }),
      "control_hung",
    ],
    [
      "the control failed by something else (T11)",
      withControl({
        statements: [
          statement("control", { outcome: failed(31_000, { name: "EXCEEDED_TIME_LIMIT", code: 131_075, message: "too long" }) }),
        ],
      }),
      "control_failed_otherwise",
    ],
    [
      "the control lost its coordinator",
      withControl({ statements: [statement("control", { outcome: { kind: "lost", at: 31_000, message: "gone" } })] }),
      "control_failed_otherwise",
    ],
    [
      "an error of the right name has another code",
      withControl({ statements: [statement("control", { outcome: failed(31_000, { ...LOSS, code: 7 }) })] }),
      "control_failed_otherwise",
    ],
  ];

  test.each(cases)("%s", (_name, record, code) => {
    expect(codesOf(record)).toEqual(["invalid", code]);
  });
});

describe("fail: the experiment could have held, and did not", () => {
  const cases: readonly (readonly [string, GateRecord, GateReasonCode])[] = [
    [
      "the query failed after the kill (T11)",
      withExperiment({ statements: [statement("experiment", { outcome: failed() })] }),
      "query_failed",
    ],
    [
      "the rows are wrong (T11)",
      withExperiment({ statements: [statement("experiment", { outcome: finished(40_000, "9 rows instead of 10") })] }),
      "rows_wrong",
    ],
    [
      "the query hangs",
      withExperiment({
        statements: [statement("experiment", { outcome: { kind: "hung", at: 320_000, state: "RUNNING", tasks: "w1 3" } })],
      }),
      "query_hung",
    ],
    [
      "its coordinator went",
      withExperiment({ statements: [statement("experiment", { outcome: { kind: "lost", at: 31_000, message: "gone" } })] }),
      "connection_lost",
    ],
    [
      "the worker did not come back (T14)",
      withExperiment({ back: { boundMs: 300_000, task: null, announcedAt: null, seen: "active workers: w1" } }),
      "worker_not_back",
    ],
    [
      "without a control there is no doubt about that",
      aRecord({ experiment: aRun("experiment", { statements: [statement("experiment", { outcome: failed() })] }), control: null }),
      "query_failed",
    ],
    [
      "of two queries each must hold (T11)",
      withExperiment({ statements: [statement("experiment"), statement("experiment", { number: 2, outcome: failed() })] }),
      "query_failed",
    ],
  ];

  test.each(cases)("%s", (_name, record, code) => {
    expect(codesOf(record)).toEqual(["fail", code]);
  });
});

test("both survived: non-discriminating, not pass (T11)", () => {
  const { verdict, reasons } = judge(withControl({ statements: [statement("control", { outcome: finished(38_000) })] }));
  expect({ verdict, reasons }).toEqual({
    verdict: "non-discriminating",
    reasons: [
      {
        code: "both_survived",
        sentence: "both runs survived the kill (30s with and 28s without retry_policy=TASK): the query does not need what it should prove",
      },
    ],
  });
});

test("a control with retries that survived does not discriminate, and is told why (T11)", () => {
  const survived = [statement("control", { outcome: finished(38_000), retryPolicy: "QUERY" })];
  expect(codesOf(withControl({ statements: survived }))).toEqual(["non-discriminating", "both_survived", "control_tolerant"]);
});

test("invalid wins over non-discriminating (T11)", () => {
  const survived = [statement("control", { outcome: finished(38_000) })];
  expect(codesOf(withControl({ statements: survived, looks: lookAt("control", ["w2", 1, 8]) }))).toEqual(["invalid", "one_worker_has_all"]);
});

test("a query counts only where it ran on the killed worker in both runs", () => {
  const experiment = aRun("experiment", {
    statements: [statement("experiment"), statement("experiment", { number: 2 })],
    looks: lookAt("experiment", ["w1", 1, 8], ["w2", 2, 8]),
  });
  const control = aRun("control", {
    statements: [statement("control"), statement("control", { number: 2, outcome: finished(19_900) })],
    looks: lookAt("control", ["w1", 1, 4], ["w2", 1, 4]),
  });
  expect(judge(aRecord({ experiment, control }))).toMatchObject({
    verdict: "invalid",
    reasons: [{ sentence: "no query had running tasks on the killed worker in both runs: experiment query 2, control query 1" }],
  });
});

test("one query of two is enough when the other had nothing on the killed worker", () => {
  const experiment = aRun("experiment", {
    statements: [statement("experiment"), statement("experiment", { number: 2 })],
    looks: lookAt("experiment", ["w1", 1, 8], ["w2", 2, 8]),
  });
  const control = aRun("control", {
    statements: [statement("control"), statement("control", { number: 2 })],
    looks: lookAt("control", ["w1", 1, 4], ["w2", 1, 4], ["w1", 2, 4], ["w2", 2, 4]),
  });
  expect(codesOf(aRecord({ experiment, control }))).toEqual(["pass", "survived_and_control_failed"]);
});

test("with the policy QUERY nothing need be in the exchange (T13)", () => {
  const experiment = aRun("experiment", {
    statements: [statement("experiment", { retryPolicy: "QUERY" })],
    exchange: { ...aRun("experiment").exchange, entries: 0 },
  });
  expect(codesOf(aRecord({ experiment }))).toEqual(["pass", "survived_and_control_failed"]);
});

test.each([
  ["nothing was run", aRecord({ experiment: null, control: null }), null],
  ["it would have passed", aRecord(), "pass"],
  ["it failed", withExperiment({ statements: [statement("experiment", { outcome: failed() })] }), "fail"],
])("an exception says who and why and is never a pass, also when %s", (_name, record, found) => {
  const exception = { by: "ann", why: "the release is today", followUps: ["run it on Monday"] };
  const judgement = judge({ ...record, exception });
  expect({ verdict: judgement.verdict, found: judgement.found, first: judgement.reasons[0] }).toEqual({
    verdict: "exception",
    found,
    first: { code: "excepted", sentence: "ann goes on without this gate: the release is today; still to be done: run it on Monday" },
  });
});
