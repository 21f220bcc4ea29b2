import { expect, test } from "vitest";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { type GateSpec, gateSchema } from "../../model/gate.ts";
import type { GateRecord } from "./record.ts";
import { runGate } from "./run.ts";
import { FakeCluster, type FakeOptions } from "./testing/fake-cluster.ts";
import { judge } from "./verdict.ts";

const ROWS = [[1, "one"]];

function specOf(rest: object = {}): GateSpec {
  return gateSchema.parse({
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Gate",
    metadata: { name: "fte" },
    spec: {
      where: { coordinator: { url: "http://c1:8080" }, workers: { count: 2 } },
      statements: [{ sql: "SELECT 1", expect: { rows: ROWS } }],
      kill: { command: ["kill"] },
      exchange: { location: "/exchange" },
      ...rest,
    },
  }).spec;
}

interface Ran {
  readonly record: GateRecord;
  readonly cluster: FakeCluster;
  readonly tookMs: number;
}

async function run(
  options: Omit<FakeOptions, "clock"> & { readonly seenBy?: (cluster: FakeCluster) => void } = {},
  spec: object = {},
  declared = 2,
  interruptAt?: (line: string) => boolean,
): Promise<Ran> {
  const clock = new VirtualClock();
  const cluster = new FakeCluster({ clock, rows: ROWS, ...options });
  options.seenBy?.(cluster);
  let record: GateRecord | undefined;
  let fault: unknown;
  const { engine, killer, listing } = cluster;
  const ready = { ready: async () => [...(options.workers ?? ["w1", "w2"]), ...(options.unannounced ?? [])] };
  const interrupt = new AbortController();
  const { signal } = interrupt;
  const tell = (line: string): void => {
    cluster.told.push(line);
    if (interruptAt?.(line) === true) interrupt.abort(new Error("interrupted"));
  };
  runGate(specOf(spec), declared, { engine, killer, listing, ready, clock, tell, signal }).then(
    (ended) => (record = ended),
    (error: unknown) => (fault = error),
  );
  await clock.advanceUntil(() => record !== undefined || fault !== undefined, 3_600_000);
  if (record === undefined) throw fault instanceof Error ? fault : new Error("the gate did not end within an hour");
  return { record, cluster, tookMs: clock.monotonic() };
}

const codesOf = ({ record }: Ran) => {
  const { verdict, reasons } = judge(record);
  return [verdict, ...reasons.map(({ code }) => code)];
};

test("kills a worker with running tasks in both runs, sees it back in between, and passes (T11, T12, T13, T14)", async () => {
  const ran = await run();
  expect(codesOf(ran)).toEqual(["pass", "survived_and_control_failed"]);
  const { experiment, control } = ran.record;
  expect(experiment?.kill?.worker.nodeId).toBe(control?.kill?.worker.nodeId);
  expect(experiment?.exchange.entries).toBe(1);
  expect(experiment?.back?.task?.nodeId).toBe("w1");
  expect(control?.back?.task?.nodeId).toBe("w1");
  expect(ran.cluster.restarted).toEqual(["w1", "w1"]);
  expect(experiment?.kill?.unannouncedAt).not.toBeNull();
});

test("kills the worker that the document names", async () => {
  const { record } = await run({}, { kill: { command: ["kill"], worker: "w2" } });
  expect([record.experiment?.kill?.worker.nodeId, record.control?.kill?.worker.nodeId]).toEqual(["w2", "w2"]);
});

test("nothing is killed where the second worker is ready but unannounced (T12)", async () => {
  const ran = await run({ workers: ["w1"], unannounced: ["w2"] });
  expect(codesOf(ran)).toEqual(["invalid", "not_announced"]);
  expect(judge(ran.record).reasons[0].sentence).toBe(
    "experiment: 1 of 2 declared workers have announced themselves to the coordinator; ready all the same: w1, w2",
  );
  expect(ran.record.experiment?.kill).toBeNull();
  expect(ran.cluster.queries).toEqual([]);
});

test("nothing is killed where one worker has all running tasks, and no query runs on (T8, T12)", async () => {
  const ran = await run({ tasksOn: () => ["w1"], queryMs: 1_000_000 });
  expect(codesOf(ran)).toEqual(["invalid", "one_worker_has_all"]);
  expect(ran.record.experiment?.kill).toBeNull();
  expect(ran.cluster.queries.map(({ isCancelled }) => isCancelled)).toEqual([true]);
});

test("a control whose tasks are all on one worker is invalid too, whatever became of the experiment (T11)", async () => {
  const ran = await run({ tasksOn: (policy) => (policy === "NONE" ? ["w1"] : undefined), queryMs: 1_000_000 }, { windows: { end: "30m" } });
  expect(codesOf(ran)).toEqual(["invalid", "one_worker_has_all"]);
  expect(ran.record.control).not.toBeNull();
});

test("two variables in the document are refused before anything is run (T10)", async () => {
  const ran = await run({}, { experiment: { session: { retry_policy: "TASK", spill_enabled: "true" } } });
  expect(codesOf(ran)).toEqual(["invalid", "not_one_variable"]);
  expect(ran.cluster.queries).toEqual([]);
});

test("a coordinator that was started anew between the runs is a second variable (T10)", async () => {
  expect(codesOf(await run({ restartsCoordinator: true }))).toEqual(["invalid", "not_one_variable"]);
});

test("both survive: non-discriminating (T11)", async () => {
  expect(codesOf(await run({ fate: () => "survives" }))).toEqual(["non-discriminating", "both_survived"]);
});

test("a query that fails with fault tolerance fails the gate, and no control is run", async () => {
  const ran = await run({ fate: () => "fails" });
  expect(codesOf(ran)).toEqual(["fail", "query_failed"]);
  expect(ran.record.control).toBeNull();
});

test("wrong rows fail the gate (T11)", async () => {
  expect(codesOf(await run({ fate: (policy) => (policy === "TASK" ? "wrong" : "fails") }))).toEqual(["fail", "rows_wrong"]);
});

test("a query that stands still after the kill is given up at the bound, cancelled, and a fail", async () => {
  const ran = await run({ fate: () => "hangs" });
  expect(codesOf(ran)).toEqual(["fail", "query_hung"]);
  expect(judge(ran.record).reasons[0].sentence).toBe(
    "experiment: query 1 neither ended nor failed within 5m after the kill; last seen RUNNING, w2 1 of 20300101_000000_00000_ab12c",
  );
  expect(ran.cluster.queries.every(({ sql, isCancelled }) => sql !== "SELECT 1" || isCancelled)).toBe(true);
});

test("a worker that does not come back fails the gate (T14)", async () => {
  const ran = await run({ restart: "stays-away" });
  expect(codesOf(ran)).toEqual(["fail", "worker_not_back"]);
  expect(ran.record.control).toBeNull();
});

test("a kill that says yes and kills nobody is invalid", async () => {
  expect(codesOf(await run({ killWorks: false, queryMs: 60_000 }))).toEqual(["invalid", "kill_without_effect"]);
});

test("a query that ends before two workers ran it is too short", async () => {
  expect(codesOf(await run({ queryMs: 1_000 }))).toEqual(["invalid", "ended_before_kill"]);
});

test("what a query gives without a kill is expected of it where the document does not say it", async () => {
  const ran = await run({}, { statements: [{ sql: "SELECT 1" }] });
  expect(codesOf(ran)).toEqual(["pass", "survived_and_control_failed"]);
  expect(ran.record.baseline?.statements).toEqual([{ name: "query 1", rows: 1, tookMs: 40_000, problem: null }]);
});

test("fewer than two declared workers are refused before anything is run (T8)", async () => {
  const ran = await run({ workers: ["w1"] }, {}, 1);
  expect(codesOf(ran)).toEqual(["invalid", "too_few_declared"]);
});

test("whoever is interrupted after a kill leaves no query running and no worker dead", async () => {
  let cluster: FakeCluster | undefined;
  await expect(run({ seenBy: (of) => (cluster = of) }, {}, 2, (line) => line.includes("is killed"))).rejects.toThrow("interrupted");
  expect(cluster?.restarted).toEqual(["w1"]);
  expect(cluster?.queries.map(({ isCancelled }) => isCancelled)).toEqual([true]);
});
