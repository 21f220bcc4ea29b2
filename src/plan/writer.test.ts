import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { at, instance, type InstanceInput, NOON, poolOf, serving } from "../../test/builders/pool.ts";
import { EPOCH_ZERO, epoch } from "../kernel/epoch.ts";
import { PHASES } from "../model/phase.ts";
import type { Workload } from "../model/writer.ts";
import { planPool } from "./plan.ts";
import type { InstanceSnapshot, LeaseState, PoolSnapshot } from "./snapshot.ts";

const RENEWED: LeaseState = { state: "renewed", lateAt: NOON + 5_000 };
const LATE: LeaseState = { state: "late", since: NOON - 1_000, expiresAt: NOON + 9_000 };
const EXPIRED: LeaseState = { state: "expired", since: NOON - 11_000 };

function workload(more: Partial<Workload> = {}): Workload {
  return {
    pool: "default/orders",
    ordinal: 0,
    writerEpoch: epoch(0, 4),
    minAcceptedEpoch: epoch(0, 4),
    holder: { instance: "orders-a", incarnation: 1, bootId: "boot-1" },
    renewals: 7,
    ttlMs: 10_000,
    ...more,
  };
}

const NOBODY = workload({ holder: null, minAcceptedEpoch: epoch(0, 5) });

function leased(instances: readonly InstanceSnapshot[], workloads: readonly Workload[] = [workload()], rest: Partial<PoolSnapshot> = {}) {
  return poolOf({ spec: { state: { lease: { ttl: "10s" } } } }, instances, { workloads, ...rest });
}

const holder = (input: InstanceInput = {}) => serving({ lease: RENEWED, ...input });
const surge = (input: InstanceInput = {}) =>
  serving({ id: "orders-b", ...input, record: { purpose: "replace", replaces: "orders-a", createdAt: NOON - 10_000, ...input.record } });

function plan(pool: PoolSnapshot) {
  return planPool(pool, NOON);
}

/** `orders-a ← 0.4`: the lease goes to it after this epoch; `nobody`, or a change of trust. */
function writers(pool: PoolSnapshot): readonly string[] {
  return plan(pool).decisions.flatMap((decision) => {
    if (decision.kind === "trust") return [`${decision.instance} ${decision.to}`];
    if (decision.kind !== "pass_writer") return [];
    return [`${decision.to?.instance ?? "nobody"} ← ${decision.after}`];
  });
}

function holds(pool: PoolSnapshot, subject: string): readonly string[] {
  return plan(pool).holds.flatMap((hold) => (hold.subject === subject ? [hold.reason.code] : []));
}

describe("who gets the lease", () => {
  test.each(PHASES)("one that is %s gets it only when it takes traffic", (phase) => {
    const takes = phase === "admitted" || phase === "serving";
    expect(writers(leased([instance(phase)], []))).toEqual(takes ? [`orders-a ← ${EPOCH_ZERO}`] : []);
  });

  test("nobody gets a lease that nobody holds while objects are there that the store does not know, unless it was recovered since (I1)", () => {
    const stranger = { instance: "orders-x", objects: [], createdAt: NOON - 60_000, outlived: false };
    const first = (rest: Partial<PoolSnapshot>) => leased([serving({ lease: { state: "none" } })], [], rest);
    expect([writers(first({ strangers: [stranger] })), holds(first({ strangers: [stranger] }), "orders-a")]).toEqual([
      [],
      ["serving", "writer_unknown"],
    ]);
    const given = [`orders-a ← ${EPOCH_ZERO}`];
    expect(writers(first({ strangers: [stranger], recoveredAt: NOON - 30_000 }))).toEqual(given);
    expect(writers(first({ strangers: [{ ...stranger, outlived: true }] }))).toEqual(given);
    const later = leased([serving({ lease: { state: "none" } })], [NOBODY], { strangers: [stranger] });
    expect(writers(later), "a later epoch may be of a time that the store has forgotten").toEqual([]);
    const after = { ...NOBODY, holder: { instance: "orders-gone", incarnation: 1, bootId: "boot-0" } };
    const overtaken = leased([serving({ lease: { state: "none" } })], [after], { strangers: [stranger] });
    expect(writers(overtaken), "whoever is gone is fenced all the same").toEqual(["nobody ← 0.4"]);
  });

  test("the process is named, so that another one of the same instance never gets it", () => {
    const [decision] = plan(leased([serving({ record: { ordinal: 3 } })], [])).decisions.filter(({ kind }) => kind === "pass_writer");
    expect(decision).toMatchObject({ ordinal: 3, to: { instance: "orders-a", incarnation: 1, bootId: "boot-1" } });
  });

  test.each([
    ["it is suspect", { record: { trust: "suspect" } }],
    ["it is fenced", { record: { trust: "fenced" } }],
    ["it is lost", { evidence: ["node_lost"] }],
    ["its check fails by now", { health: { state: "failing", since: NOON - 2_000, code: "timeout" } }],
    ["its boot id is not known", { record: { incarnation: { ...serving().record.incarnation, bootId: null } } }],
    ["another process takes its place", { newIncarnation: { ...serving().record.incarnation, number: 2 } }],
  ] as const)("it gets none when %s", (_, input) => {
    expect(writers(leased([serving(input as InstanceInput)], [NOBODY])).filter((line) => line.includes("←"))).toEqual([]);
  });

  test("a pool without a lease gives none, whatever its rows say", () => {
    expect(writers(poolOf({}, [serving()]))).toEqual([]);
    expect(writers(poolOf({}, [serving()], { workloads: [NOBODY] }))).toEqual([]);
  });

  test("who holds one when the pool has no lease any more keeps it until it is over", () => {
    const kept = { workloads: [workload()] };
    expect(writers(poolOf({}, [serving({ lease: { state: "unwatched" } })], kept))).toEqual([]);
    expect(writers(poolOf({}, [serving({ lease: { state: "unwatched" }, evidence: ["pod_lost"] })], kept))).toEqual([
      "orders-a fenced",
      "nobody ← 0.4",
    ]);
  });

  test("of several, one that stays comes before one that must go, one that serves before one that is only admitted, the oldest first", () => {
    const [old, young] = [serving({ id: "orders-z" }), serving({ id: "orders-a", record: { createdAt: NOON - 5_000 } })];
    const admitted = instance("admitted", { id: "orders-b", record: { createdAt: NOON - 500_000 } });
    const condemned = serving({ id: "orders-c", evidence: ["node_drifted"], record: { createdAt: NOON - 900_000 } });
    expect(writers(leased([old, young, admitted, condemned], [NOBODY]))).toEqual(["orders-z ← 0.4"]);
    expect(writers(leased([young, admitted, condemned], [NOBODY]))).toEqual(["orders-a ← 0.4"]);
    expect(writers(leased([admitted, condemned], [NOBODY]))).toEqual(["orders-b ← 0.4"]);
    expect(writers(leased([condemned], [NOBODY]))).toEqual(["orders-c ← 0.4"]);
  });
});

describe("how long it is kept", () => {
  test("a candidate on top waits while its predecessor writes, and says for whom", () => {
    for (const phase of ["serving", "draining"] as const) {
      const busy = { obligations: { requests: 1, sessions: 0 } };
      const pool = leased([holder({ evidence: ["node_drifted"], record: { phase }, ...busy }), surge()]);
      expect(writers(pool)).toEqual([]);
      expect(holds(pool, "orders-b")).toContain("waiting_for_writer");
    }
  });

  test("at the seal of the predecessor it passes in the same commit, and only with it", () => {
    const sealing = holder({ record: { phase: "draining", drainLoss: "voluntary" }, evidence: ["node_drifted"] });
    expect(writers(leased([sealing, surge()]))).toEqual(["orders-b ← 0.4"]);
    expect(writers(leased([{ ...sealing, obligations: { requests: 1, sessions: 0 } }, surge()]))).toEqual([]);
    expect(writers(leased([sealing]))).toEqual(["nobody ← 0.4"]);
    // A frozen pool seals nothing, so nothing passes.
    expect(writers(leased([sealing, surge()], undefined, { freeze: { until: NOON + 1, why: "audit", by: "me" } }))).toEqual([]);
  });

  test.each(["sealed", "retiring", "retired", "preparing", "failed"] as const)("a holder that is %s is over", (phase) => {
    expect(writers(leased([holder({ record: { phase } }), surge()]))).toEqual(["orders-b ← 0.4"]);
  });

  test("a holder that is gone, or is another process by now, is over", () => {
    expect(writers(leased([surge()]))).toEqual(["orders-b ← 0.4"]);
    expect(writers(leased([]))).toEqual(["nobody ← 0.4"]);
    const restarted = serving({ record: { incarnation: { ...serving().record.incarnation, number: 2, bootId: "boot-2" } } });
    expect(writers(leased([restarted]))).toEqual(["orders-a ← 0.4"]);
  });

  test("a process that takes the place of the holder's fences it in the same commit", () => {
    const restarted = holder({ newIncarnation: { ...serving().record.incarnation, number: 2 } });
    expect(plan(leased([restarted])).decisions.map(({ kind }) => kind)).toEqual(["renew_incarnation", "pass_writer"]);
    expect(writers(leased([restarted]))).toEqual(["nobody ← 0.4"]);
    expect(writers(leased([restarted], undefined, { freeze: { until: NOON + 1, why: "audit", by: "me" } }))).toEqual(["nobody ← 0.4"]);
  });

  test.each(["node_lost", "pod_lost", "process_unreachable", "lease_expired"] as const)(
    "a loss (%s) fences it in the same commit",
    (why) => {
      expect(writers(leased([holder({ evidence: [why] })]))).toEqual(["orders-a fenced", "nobody ← 0.4"]);
      expect(writers(leased([holder({ evidence: [why] }), surge()]))).toEqual(["orders-a fenced", "orders-b ← 0.4"]);
    },
  );

  test("a notice, a deadline and a failing check take nothing from it", () => {
    const failing = { state: "failing", since: NOON - 2_000, code: "timeout" } as const;
    expect(writers(leased([holder({ evidence: ["spot_interruption"], deadline: at("12:01:00"), health: failing })]))).toEqual([]);
  });
});

describe("who does not renew", () => {
  test("late is suspect, and its time is looked at when it comes", () => {
    expect(writers(leased([holder({ lease: LATE })]))).toEqual(["orders-a suspect"]);
    expect(plan(leased([holder({ lease: LATE, record: { trust: "suspect" } })])).nextLookAt).toBe(NOON + 9_000);
    expect(plan(leased([holder()])).nextLookAt).toBe(NOON + 5_000);
    expect(plan(leased([holder({ lease: { state: "unproven", lateAt: NOON + 3_000 } })])).nextLookAt).toBe(NOON + 3_000);
  });

  test("one that renews again is trusted again; what is not known changes nothing", () => {
    const suspect = { record: { trust: "suspect" } } as const;
    expect(writers(leased([holder({ ...suspect })]))).toEqual(["orders-a ok"]);
    expect(writers(leased([holder({ ...suspect, lease: { state: "unproven", lateAt: NOON + 1 } })]))).toEqual([]);
  });

  test("one that has not asked for its lease within a TTL is told of", () => {
    const fresh = leased([holder({ lease: { state: "unasked", since: NOON - 9_999 } })]);
    const overdue = leased([holder({ lease: { state: "unasked", since: NOON - 10_000 } })]);
    expect([writers(fresh), holds(fresh, "orders-a"), plan(fresh).nextLookAt]).toEqual([[], ["serving"], NOON + 1]);
    expect([writers(overdue), holds(overdue, "orders-a")]).toEqual([[], ["serving", "lease_unasked"]]);
  });

  test("a suspect writer is none that another may be drained for (I5)", () => {
    const leaver = holder({ id: "orders-c", evidence: ["node_drifted"], lease: { state: "none" }, record: { ordinal: 1 } });
    const drains = (lease: LeaseState, trust: "ok" | "suspect") =>
      plan(
        poolOf({ desired: 1, spec: { state: { lease: {} } } }, [holder({ lease, record: { trust } }), leaver], { workloads: [workload()] }),
      ).decisions.some(({ kind }) => kind === "drain_instance");
    expect([drains(RENEWED, "ok"), drains(LATE, "suspect")]).toEqual([true, false]);
  });

  test("expired becomes evidence, the fence follows from that", () => {
    const pool = leased([holder({ lease: EXPIRED, record: { trust: "suspect" } })]);
    expect(plan(pool).decisions).toMatchObject([
      { kind: "record_evidence", evidence: { instance: "orders-a", incarnation: 1, loss: "forced", reason: "lease_expired" } },
    ]);
  });

  test("the brake holds suspicion and evidence, and says so", () => {
    const braked = { leaseBrake: { late: 2, total: 3 } };
    for (const lease of [LATE, EXPIRED]) expect(plan(leased([holder({ lease })], undefined, braked)).decisions).toEqual([]);
    expect(holds(leased([holder({ lease: LATE })], undefined, braked), "")).toContain("lease_brake");
    expect(
      plan(poolOf({}, [serving()], braked)).holds.map(({ reason: { code } }) => code),
      "of a pool without leases it is no concern",
    ).toEqual(["serving", "nothing_to_do"]);
    // What the API server says is another witness.
    expect(plan(leased([holder({ lease: EXPIRED, lost: "node_lost" })], undefined, braked)).decisions).toMatchObject([
      { kind: "record_evidence", evidence: { reason: "node_lost" } },
    ]);
  });

  test("a controller that has just begun fences nobody", () => {
    const pool = leased([holder({ lease: EXPIRED })], undefined, { settledAt: NOON + 2_000 });
    expect(plan(pool).decisions.filter(({ kind }) => kind === "record_evidence")).toEqual([]);
  });
});

describe("traffic never comes before fencing", () => {
  const validating = (input: InstanceInput = {}) =>
    instance("validating", { id: "orders-b", ...input, record: { purpose: "replace", replaces: "orders-a", ...input.record } });
  const admits = (pool: PoolSnapshot): boolean => plan(pool).decisions.some(({ kind }) => kind === "admit_instance");

  test.each([
    ["its holder is lost and not fenced yet", [holder({ evidence: ["node_lost"] })], false],
    ["its holder drains, lost", [holder({ evidence: ["node_lost"], record: { phase: "draining", drainLoss: "forced" } })], false],
    ["its holder is sealed and still named", [holder({ record: { phase: "sealed" } })], false],
    ["its holder is another process by now", [serving({ record: { incarnation: { ...serving().record.incarnation, number: 2 } } })], false],
    ["its holder is not there any more", [], false],
    ["its holder writes: it comes on top", [holder({ evidence: ["node_drifted"] })], true],
    ["its holder is suspect: it comes on top", [holder({ lease: LATE, record: { trust: "suspect" }, evidence: ["node_drifted"] })], true],
  ] as const)("a replacement while %s", (_, former, isAdmitted) => {
    const pool = leased([...former, validating()]);
    expect(admits(pool)).toBe(isAdmitted);
    if (!isAdmitted) expect(holds(pool, "orders-b")).toContain("waiting_for_fence");
  });

  test("after the tombstone it is admitted", () => {
    const fenced = holder({
      lease: { state: "none" },
      evidence: ["node_lost"],
      record: { trust: "fenced", phase: "draining", drainLoss: "forced" },
    });
    expect(admits(leased([fenced, validating()], [NOBODY]))).toBe(true);
  });

  test("another place of the pool does not wait", () => {
    expect(admits(leased([holder({ evidence: ["node_lost"] }), validating({ record: { ordinal: 1, replaces: null } })]))).toBe(true);
  });
});

test("the plan of who writes does not depend on the order of instances and workloads (I17)", () => {
  const pool = leased(
    [
      holder({ evidence: ["lease_expired"] }),
      surge(),
      serving({ id: "orders-c", record: { ordinal: 1 } }),
      serving({ id: "orders-d", record: { ordinal: 1 } }),
    ],
    [workload(), workload({ ordinal: 1, holder: null })],
  );
  fc.assert(
    fc.property(
      fc.shuffledSubarray([...pool.instances], { minLength: 4 }),
      fc.shuffledSubarray([...pool.workloads], { minLength: 2 }),
      (instances, workloads) => {
        expect(writers({ ...pool, instances, workloads }).toSorted()).toEqual(writers(pool).toSorted());
      },
    ),
  );
});
