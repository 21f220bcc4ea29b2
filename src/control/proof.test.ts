import { describe, expect, test } from "vitest";
import { NOON, poolOf, serving } from "../../test/builders/pool.ts";
import type { ProvenCapacity } from "../model/proven.ts";
import type { PoolSnapshot } from "../plan/snapshot.ts";
import { configHashOf, proofOf, slotsPerInstanceOf, slotTotalsOf } from "./proof.ts";

const SCALE = { signal: { kind: "queue", connection: "main", queue: "q" }, target: 4 };

function aPool(
  {
    scale = {},
    worker = {},
    blueprintHash = "b1",
    slots = 2,
  }: {
    readonly scale?: Record<string, unknown>;
    readonly worker?: Record<string, unknown>;
    readonly blueprintHash?: string;
    readonly slots?: number | null;
  } = {},
  proven: ProvenCapacity | null = null,
): PoolSnapshot {
  const spec = { driver: "worker", worker: { flow: "queue/q", ...worker }, scale: { ...SCALE, ...scale } };
  const total = slots ?? 0;
  const said = slots === null ? null : { total, free: total, progressing: 0, stuck: 0, longestQuietMs: 0, flow: "queue/q" };
  return poolOf({ desired: 1, max: 9, spec }, [serving({ slots: said })], { blueprintHash, proven });
}

const provenOf = (pool: PoolSnapshot, more: Partial<ProvenCapacity> = {}): ProvenCapacity => ({
  at: NOON,
  configHash: configHashOf(pool),
  slotsPerInstance: slotsPerInstanceOf(pool),
  slotTotals: slotTotalsOf(pool),
  instances: 4,
  throughputPerInstance: 0.2,
  stuckShare: 0.2,
  recoveryMs: 40_000,
  jobs: 500,
  by: "ann",
  evidence: "loadtest.json",
  ...more,
});

/** Of a pool that is such now, and was the plain one when it was tested. */
const proofNow = (change: Parameters<typeof aPool>[0]) => proofOf(aPool(change, provenOf(aPool())), 1);

describe("what was proven holds for what was tested (K7)", () => {
  test("up to as many instances as worked at once", () => {
    const pool = aPool({}, provenOf(aPool()));
    expect([proofOf(pool, 4), proofOf(pool, 5), proofOf(aPool(), 1)]).toEqual(["within_proven", "above_proven", "nothing_proven"]);
  });

  test.each([
    { what: "another blueprint", change: { blueprintHash: "b2" } },
    { what: "another time after which a slot is stuck", change: { worker: { stuckAfter: "1m" } } },
    { what: "another flow", change: { worker: { flow: "queue/r" } } },
    { what: "another queue", change: { scale: { signal: { ...SCALE.signal, queue: "r" } } } },
    { what: "more work for each instance", change: { scale: { target: 8 } } },
    { what: "smaller steps", change: { scale: { up: { step: { instances: 1 } } } } },
    { what: "another share of stuck slots that stops growth", change: { scale: { stuck: { share: 0.5 } } } },
    { what: "more slots in each worker, of which no document speaks", change: { slots: 3 } },
  ])("$what is another configuration", ({ change }) => {
    expect(proofNow(change)).toBe("proven_for_other");
  });

  test.each([
    { what: "a pause", change: { scale: { pausedAt: 2 } } },
    { what: "a fallback", change: { scale: { fallback: { instances: 3 } } } },
    { what: "how old a value may be", change: { scale: { maxAge: "2m" } } },
    { what: "workers that say nothing of their slots for now", change: { slots: null } },
  ])("$what is none", ({ change }) => {
    expect(proofNow(change)).toBe("within_proven");
  });

  test("a proof without a number of slots, as of an older version, is not held against them", () => {
    const { slotsPerInstance: _, slotTotals: __, ...older } = provenOf(aPool());
    expect(proofOf(aPool({}, older as ProvenCapacity), 1)).toBe("within_proven");
  });
});

test("another target is another configuration", () => {
  const { spec } = aPool();
  const hashOf = (name: string) => configHashOf({ spec: { ...spec, target: { kind: "Deployment", name } }, blueprintHash: "b1" });
  expect(new Set([configHashOf({ spec, blueprintHash: "b1" }), hashOf("a"), hashOf("b")]).size).toBe(3);
});

test("workers of several sizes: their mix may change, a size that was not in the test may not come (K7)", () => {
  const mixed = (totals: readonly number[], proven: ProvenCapacity | null = null): PoolSnapshot => {
    const spec = { driver: "worker", worker: { flow: "queue/q" }, scale: SCALE };
    const workers = totals.map((total, at) =>
      serving({ id: `w-${at}`, slots: { total, free: total, progressing: 0, stuck: 0, longestQuietMs: 0, flow: "queue/q" } }),
    );
    return poolOf({ desired: 1, max: 9, spec }, workers, { blueprintHash: "b1", proven });
  };
  const proven = provenOf(mixed([2, 4, 4]));
  expect(proven.slotTotals).toEqual([2, 4]);
  expect([[2, 2, 4], [4], [], [2, 8]].map((totals) => proofOf(mixed(totals, proven), 1))).toEqual([
    "within_proven",
    "within_proven",
    "within_proven",
    "proven_for_other",
  ]);
});

test("the order in which a document was written is no other configuration (K7)", () => {
  const { spec, blueprintHash } = aPool();
  const turned = { ...spec, worker: Object.fromEntries(Object.entries(spec.worker ?? {}).toReversed()) } as typeof spec;
  expect(configHashOf({ spec: turned, blueprintHash })).toBe(configHashOf({ spec, blueprintHash }));
});
