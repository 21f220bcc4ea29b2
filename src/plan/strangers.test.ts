/** A store that was rewound, and what the lost time made: nothing is decided from what may be wrong. */
import { describe, expect, test } from "vitest";
import { NOON, poolOf, serving } from "../../test/builders/pool.ts";
import { epoch } from "../kernel/epoch.ts";
import type { PoolSnapshot, Stranger } from "./snapshot.ts";
import { planPool } from "./plan.ts";

const STRANGER: Stranger = { instance: "orders-x", objects: [], createdAt: NOON - 60_000, outlived: false };
const told = (pool: PoolSnapshot) => planPool(pool, NOON).holds.map(({ subject, reason }) => `${subject} ${reason.code}`.trim());
const done = (pool: PoolSnapshot) => planPool(pool, NOON).decisions.map(({ kind }) => kind);

describe("while the store is behind what somebody has seen", () => {
  const rewound = { witness: "gateway gw-1", what: "generation", seen: epoch(0, 9), stored: epoch(0, 7) } as const;

  test.each<[string, PoolSnapshot]>([
    ["too few serve", poolOf({ desired: 4 }, [serving()], { rewound })],
    ["too many serve", poolOf({ desired: 1 }, [serving({ id: "a" }), serving({ id: "b" })], { rewound })],
    ["a process is lost", poolOf({}, [serving({ lost: "node_lost" })], { rewound })],
    ["the pool is frozen", poolOf({}, [serving()], { rewound, freeze: { until: NOON + 1, why: "w", by: "b" } })],
    ["the pool is to be orphaned", poolOf({ spec: { deletion: "orphan" } }, [serving()], { rewound, deleting: true })],
    ["strangers are there", poolOf({}, [serving()], { rewound, strangers: [STRANGER], recoveredAt: NOON })],
  ])("nothing is decided although %s", (_, pool) => {
    expect([done(pool), told(pool)]).toEqual([[], ["store_rewound"]]);
  });

  test("the reason says who has seen what", () => {
    const [hold] = planPool(poolOf({}, [], { rewound: { ...rewound, stored: null } }), NOON).holds;
    expect(hold?.reason.params).toEqual({ witness: "gateway gw-1", what: "generation", seen: "0.9", stored: "none" });
  });
});

test("a controller that is new decides nothing before the witnesses have spoken, and for no longer than it takes each that lives", () => {
  const pool = poolOf({ desired: 2 }, [serving()], { witnessesAwaitedUntil: NOON + 8_000 });
  expect([done(pool), told(pool), planPool(pool, NOON).nextLookAt]).toEqual([[], ["observer_new"], NOON + 8_000]);
  expect(planPool(pool, NOON + 8_000).decisions.map(({ kind }) => kind)).toContain("add_instance");
});

describe("objects whose instance the store does not know", () => {
  const pool = (given: Partial<PoolSnapshot> = {}) =>
    poolOf({}, [serving()], { strangers: [STRANGER], recoveredAt: NOON - 15_000, generation: epoch(1, 2), ...given });
  const gateway = (applied: PoolSnapshot["gateways"][number]["applied"], given: Partial<PoolSnapshot["gateways"][number]> = {}) => ({
    replica: "gw-1",
    applied,
    silent: false,
    lostAt: null,
    ...given,
  });

  test("are deleted once every replica has applied the new generation", () => {
    expect(done(pool({ gateways: [gateway(epoch(1, 2)), gateway(epoch(1, 3))] }))).toContain("delete_stranger");
  });

  test("are left alone for as long as a replica that the store forgot may take to come back", () => {
    const seen = pool({ gateways: [gateway(epoch(1, 2))], recoveredAt: NOON - 14_000 });
    expect([done(seen), told(seen), planPool(seen, NOON).nextLookAt]).toEqual([
      [],
      expect.arrayContaining(["orders-x stranger_waits"]),
      NOON + 1_000,
    ]);
  });

  test.each([
    ["has applied the lost time's", gateway(epoch(0, 90))],
    ["has applied an older one", gateway(epoch(1, 1))],
    ["has applied nothing yet", gateway(null)],
    ["is silent", gateway(epoch(0, 9), { silent: true })],
  ])("are left alone while a replica %s", (_, replica) => {
    const seen = pool({ gateways: [gateway(epoch(1, 2)), replica] });
    expect([done(seen), told(seen)]).toEqual([[], expect.arrayContaining(["orders-x stranger_waits"])]);
  });

  test("are not kept by a replica that was given up", () => {
    expect(done(pool({ gateways: [gateway(epoch(0, 9), { silent: true, lostAt: NOON - 1 })] }))).toContain("delete_stranger");
  });

  test("are told and never touched when they were made after the recovery, or when there was none (I8)", () => {
    const gateways = [gateway(epoch(1, 2))];
    for (const seen of [pool({ gateways, recoveredAt: NOON - 60_001 }), pool({ gateways, recoveredAt: null })])
      expect([done(seen), told(seen)]).toEqual([[], expect.arrayContaining(["orders-x stranger"])]);
  });

  test("are deleted without a recovery when the store says that their instance was deleted before: a leader that was overtaken made them", () => {
    const seen = pool({ strangers: [{ ...STRANGER, outlived: true }], recoveredAt: null, gateways: [gateway(null)] });
    expect(done(seen)).toContain("delete_stranger");
  });

  test("are left alone while the pool is frozen", () => {
    const seen = pool({ gateways: [gateway(epoch(1, 2))], freeze: { until: NOON + 1_000, why: "w", by: "b" } });
    expect(done(seen)).toEqual([]);
  });
});

test("a process that was fenced by a recovery is lost: it is replaced (I1)", () => {
  const fenced = serving({ record: { trust: "fenced" } });
  expect(planPool(poolOf({}, [fenced]), NOON).decisions).toMatchObject([
    { kind: "record_evidence", evidence: { loss: "forced", reason: "writer_fenced" } },
  ]);
});
