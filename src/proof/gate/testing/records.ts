/** Records of gates, as a test needs them: a builder says only what matters to the case. */
import type { GateRecord, KillRecord, Outcome, RunName, RunRecord, StatementRecord } from "../record.ts";

export const LOSS = { name: "PAGE_TRANSPORT_TIMEOUT", code: 65540, message: "Encountered too many errors talking to a worker node." };

export function finished(at = 40_000, difference: string | null = null): Outcome {
  return { kind: "finished", at, rows: 10, difference };
}

export function failed(at = 31_000, error: { name: string; code: number; message: string } = LOSS): Outcome {
  return { kind: "failed", at, error };
}

export function kill(rest: Partial<KillRecord> = {}): KillRecord {
  return {
    worker: { nodeId: "w2", uri: "http://127.0.0.1:8082" },
    how: "kill",
    at: 20_000,
    what: "kill -9 42",
    error: null,
    goneAt: 20_100,
    unannouncedAt: 31_000,
    ...rest,
  };
}

export function statement(run: RunName, rest: Partial<StatementRecord> & { readonly number?: number } = {}): StatementRecord {
  const { number = 1, ...given } = rest;
  return {
    name: `query ${number}`,
    queryId: `${run}-${number}`,
    retryPolicy: run === "experiment" ? "TASK" : "NONE",
    startedAt: 10_000,
    outcome: run === "experiment" ? finished() : failed(),
    ...given,
  };
}

/** Both workers had running tasks of query 1 when w2 was killed. */
export function aRun(run: RunName, rest: Partial<RunRecord> = {}): RunRecord {
  return {
    run,
    conditions: {
      bootId: "c1/ab12c",
      version: "483",
      environment: "lab",
      user: "relevo",
      workers: 2,
      statements: ["SELECT 1"],
      session: { retry_policy: run === "experiment" ? "TASK" : "NONE" },
    },
    nodes: {
      at: 9_000,
      announced: [
        { nodeId: "w1", uri: "http://127.0.0.1:8081" },
        { nodeId: "w2", uri: "http://127.0.0.1:8082" },
      ],
      ready: ["w1", "w2"],
    },
    statements: [statement(run)],
    looks: [
      {
        at: 19_500,
        announced: ["w1", "w2"],
        running: [
          { nodeId: "w1", queryId: `${run}-1`, tasks: 4 },
          { nodeId: "w2", queryId: `${run}-1`, tasks: 4 },
        ],
      },
    ],
    openBoundMs: 120_000,
    kill: kill(),
    endBoundMs: 300_000,
    exchange: {
      location: "/exchange",
      listings: 12,
      entries: run === "experiment" ? 33 : 0,
      bytes: run === "experiment" ? 4_096 : 0,
      firstAt: run === "experiment" ? 15_000 : null,
      sample: [],
      error: null,
      left: 0,
    },
    back: {
      boundMs: 300_000,
      task: { taskId: "q.0.0.0", nodeId: "w2", at: 70_000 },
      announcedAt: 65_000,
      seen: "it ran a new task to its end",
    },
    startedAt: 9_000,
    endedAt: 70_000,
    ...rest,
  };
}

export function aRecord(rest: Partial<GateRecord> = {}): GateRecord {
  return {
    declared: { experiment: { retry_policy: "TASK" }, control: { retry_policy: "NONE" } },
    declaredWorkers: 2,
    exchangeLocation: "/exchange",
    experiment: aRun("experiment"),
    control: aRun("control"),
    stopped: null,
    baseline: null,
    exception: null,
    ...rest,
  };
}
