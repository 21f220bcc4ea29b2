import * as fc from "fast-check";
import { expect, test } from "vitest";
import { OUTCOMES, REQUEST_KINDS, type RequestRecord } from "./outcome.ts";
import { addedLatency, percentile, rootOf, tallyAct } from "./tally.ts";

function record(id: string, changes: Partial<RequestRecord> = {}): RequestRecord {
  return {
    id,
    kind: "order",
    startedAt: 0,
    durationMs: 5,
    queued: false,
    retried: false,
    acknowledged: [],
    outcome: "completed",
    detail: null,
    ...changes,
  };
}

const NONE = { completed: 0, rejected: 0, cut: 0, lost: 0 };

test("an act's counts are those of its records", () => {
  const records = [
    record("a", { acknowledged: ["a"], durationMs: 4 }),
    record("b", { acknowledged: ["b"], durationMs: 8, queued: true, retried: true }),
    record("c", { kind: "charge", outcome: "rejected", detail: "502 answer_lost", durationMs: 900 }),
    record("d", { kind: "export", outcome: "cut", detail: "truncated", durationMs: 1_200.4 }),
    record("e", { kind: "live", acknowledged: ["e.m0", "e.m1"], durationMs: 9_000 }),
    record("f", { kind: "tx", outcome: "lost", detail: "timeout", queued: true, durationMs: 15_000 }),
  ];

  expect(tallyAct(records, new Set(), [])).toEqual({
    sent: 6,
    completed: 3,
    queued: 2,
    rejected: 1,
    cut: 1,
    lost: 1,
    retried: 1,
    doubled: 0,
    p50Ms: 4,
    p99Ms: 8,
    byKind: {
      order: { ...NONE, completed: 2 },
      charge: { ...NONE, rejected: 1 },
      export: { ...NONE, cut: 1 },
      live: { ...NONE, completed: 1 },
      tx: { ...NONE, lost: 1 },
    },
    problems: [
      { id: "c", kind: "charge", outcome: "rejected", detail: "502 answer_lost", startedAt: 0, durationMs: 900 },
      { id: "d", kind: "export", outcome: "cut", detail: "truncated", startedAt: 0, durationMs: 1_200 },
      { id: "f", kind: "tx", outcome: "lost", detail: "timeout", startedAt: 0, durationMs: 15_000 },
    ],
  });
});

test("what was acknowledged and is absent is lost, whatever else happened to the request", () => {
  const records = [
    record("a", { acknowledged: ["a"] }),
    record("b", { kind: "live", acknowledged: ["b.m0", "b.m1"] }),
    record("c", { kind: "live", outcome: "cut", detail: "closed_1006", acknowledged: ["c.m0"] }),
  ];
  const result = tallyAct(records, new Set(["b.m1", "c.m0"]), []);

  expect([result.completed, result.cut, result.lost]).toEqual([1, 0, 2]);
  expect(result.problems.map((problem) => problem.detail)).toEqual(["acknowledged_but_absent b.m1", "acknowledged_but_absent c.m0"]);
});

test("doubled work counts for the act whose request it was, also when the request was not acknowledged", () => {
  const records = [
    record("a", { kind: "charge", outcome: "rejected", detail: "502" }),
    record("b", { kind: "tx", acknowledged: ["b.i0", "b"] }),
  ];

  expect(tallyAct(records, new Set(), ["a", "b.i0", "of-another-act"]).doubled).toBe(2);
});

test("an act without requests has no latency", () => {
  expect(tallyAct([], new Set(), [])).toMatchObject({ sent: 0, completed: 0, lost: 0, p50Ms: null, p99Ms: null });
});

const aRecord = fc
  .record({
    kind: fc.constantFrom(...REQUEST_KINDS),
    outcome: fc.constantFrom(...OUTCOMES),
    durationMs: fc.nat(20_000),
    queued: fc.boolean(),
    retried: fc.boolean(),
    acknowledged: fc.subarray(["x", "y", "z"]),
  })
  .map((changes) => record("r", changes));

test("sent is completed, rejected, cut and lost, whatever the ledger misses", () => {
  fc.assert(
    fc.property(fc.array(aRecord), fc.subarray(["x", "y", "z"]), (records, missing) => {
      const { sent, completed, rejected, cut, lost, queued, retried } = tallyAct(records, new Set(missing), []);
      expect(completed + rejected + cut + lost).toBe(sent);
      expect(sent).toBe(records.length);
      expect(Math.max(queued, retried)).toBeLessThanOrEqual(sent);
    }),
  );
});

test("a percentile is the nearest rank", () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);

  expect([0.5, 0.99, 1, 0].map((share) => percentile(hundred, share))).toEqual([50, 99, 100, 1]);
  expect(percentile([7], 0.99)).toBe(7);
  expect(percentile([], 0.5)).toBeNull();
});

test("messages and items belong to the request that they are named after", () => {
  expect(["load-1-7", "load-1-7.m3", "load-1-7.i0"].map(rootOf)).toEqual(["load-1-7", "load-1-7", "load-1-7"]);
});

test("added latency is the difference of the same percentiles, and nothing without both sides", () => {
  expect(addedLatency({ p50Ms: 5, p99Ms: 40 }, { p50Ms: 6, p99Ms: 10 })).toEqual({ p50AddedMs: -1, p99AddedMs: 30 });
  expect(addedLatency({ p50Ms: 5, p99Ms: 40 }, { p50Ms: null, p99Ms: null })).toEqual({ p50AddedMs: null, p99AddedMs: null });
});
