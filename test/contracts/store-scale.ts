/** The store's contract: the size that was decided, what was proven of it, and what was promoted before its gate. */
import { expect } from "vitest";
import type { PromotionException } from "../../src/model/promotion.ts";
import type { ProvenCapacity } from "../../src/model/proven.ts";
import { reason } from "../../src/model/reasons.ts";
import type { ScaleState } from "../../src/model/scale.ts";
import type { Change } from "../../src/store/port.ts";
import { claimed, DAY, NOON, POOL, refused, type StoreTest } from "./store-fixtures.ts";

const WHY = reason("below_desired", { serving: 1, desired: 2 });

export function storeScaleContract(it: StoreTest): void {
  sizes(it);
  proofs(it);
  exceptions(it);
}

function state(desired: number, more: Partial<ScaleState> = {}): ScaleState {
  return { desired, changedAt: NOON, direction: "up", lastUp: null, recent: [{ at: NOON, by: 1 }], ...more };
}

function setDesired(from: number, to: number): Change {
  return { kind: "set_desired", from, to, state: state(to), reason: WHY };
}

function sizes(it: StoreTest): void {
  it("a pool has no decided size before the first one; then it has what was kept of it, and the change for people", async (store) => {
    const authority = await claimed(store);
    expect((await store.readPool(POOL))?.scale).toBeNull();

    await store.commit(authority, [setDesired(1, 2)], NOON);
    await store.commit(authority, [setDesired(2, 5)], NOON + 1);

    expect((await store.readPool(POOL))?.scale).toEqual(state(5));
    expect(await store.listScaleChanges(POOL, 10)).toEqual([
      { at: NOON + 1, from: 2, to: 5, reason: "below_desired", message: "1 of 2 instances serve: one more is created" },
      { at: NOON, from: 1, to: 2, reason: "below_desired", message: "1 of 2 instances serve: one more is created" },
    ]);
    expect(await store.listScaleChanges(POOL, 1)).toHaveLength(1);
    expect(await store.listScaleChanges("shop/other", 10)).toEqual([]);
  });

  it("a size is set only by who knows the one before it, and who may act for the pool (I4, I20)", async (store) => {
    const authority = await claimed(store);
    await store.commit(authority, [setDesired(1, 2)], NOON);

    await refused(store.commit(authority, [setDesired(1, 3)], NOON), "store_conflict");
    await refused(store.commit(authority, [setDesired(2, 3), setDesired(2, 4)], NOON), "store_conflict");
    const wrong: Change = { kind: "set_desired", from: 2, to: 3, state: state(4), reason: WHY };
    await refused(store.commit(authority, [wrong], NOON), "store_conflict");
    await store.claim(POOL, "another", NOON);
    await refused(store.commit(authority, [setDesired(2, 3)], NOON), "stale_epoch");

    expect((await store.readPool(POOL))?.scale).toEqual(state(2));
    expect(await store.listScaleChanges(POOL, 10)).toHaveLength(1);
  });

  it("what was decided before a target was given away does not take it back, nor give away what was adopted meanwhile (K3, I20)", async (store) => {
    const authority = await claimed(store);
    const adopted = { uid: "u-1", by: "ann", at: NOON, replicas: 2, removed: null, managers: [] };
    const set = (code: "scale_adopted" | "scale_released" | "scale_up", more: Partial<ScaleState>): Change => ({
      ...{ kind: "set_desired", from: 2, to: 2, state: state(2, more), reason: { ...WHY, code } },
    });
    await refused(store.commit(authority, [set("scale_up", { adopted })], NOON), "store_conflict");
    await store.commit(authority, [set("scale_adopted", { adopted })], NOON);
    await refused(store.commit(authority, [set("scale_up", {})], NOON), "store_conflict");
    await store.commit(authority, [set("scale_up", { adopted })], NOON);
    await store.commit(authority, [set("scale_released", {})], NOON);
    await refused(store.commit(authority, [set("scale_up", { adopted })], NOON), "store_conflict");

    expect((await store.readPool(POOL))?.scale).toEqual(state(2));
  });

  it("a size does not change who may get traffic", async (store) => {
    const authority = await claimed(store);
    const before = (await store.readPool(POOL))?.generation;

    expect(await store.commit(authority, [setDesired(1, 2)], NOON)).toEqual({ generation: before });
  });

  it("changes of size are kept for 30 days", async (store) => {
    const authority = await claimed(store);
    await store.commit(authority, [setDesired(1, 2)], NOON);
    await store.commit(authority, [setDesired(2, 3)], NOON + DAY);

    expect(await store.collect(NOON + 30 * DAY)).toBe(0);
    expect(await store.collect(NOON + 30 * DAY + 1)).toBe(1);

    expect((await store.listScaleChanges(POOL, 10)).map(({ to }) => to)).toEqual([3]);
    expect((await store.readPool(POOL))?.scale).toEqual(state(3));
  });

  it("of a pool that is forgotten nothing of its size is left", async (store) => {
    const authority = await claimed(store);
    await store.commit(authority, [setDesired(1, 2)], NOON);
    await store.recordProven(POOL, PROOF);
    await store.recordException(exception("e-1"));
    await store.release(authority);
    await claimed(store);

    const rows = await store.readPool(POOL);
    expect([rows?.scale, rows?.proven]).toEqual([null, null]);
    expect(await store.listScaleChanges(POOL, 10)).toEqual([]);
    expect(await store.listExceptions(POOL, 10)).toEqual([]);
  });
}

const PROOF: ProvenCapacity = {
  at: NOON,
  configHash: "c1",
  slotsPerInstance: 4,
  slotTotals: [2, 4],
  instances: 8,
  throughputPerInstance: 1.5,
  stuckShare: 0.3,
  recoveryMs: 42_000,
  jobs: 2_000,
  by: "ci",
  evidence: "loadtest.json",
};

function proofs(it: StoreTest): void {
  it("what a load test has shown is in the pool's rows until the next one, under any epoch (K7)", async (store) => {
    const authority = await claimed(store);
    expect((await store.readPool(POOL))?.proven).toBeNull();

    await store.recordProven(POOL, PROOF);
    expect((await store.readPool(POOL))?.proven).toEqual(PROOF);
    await store.commit(authority, [setDesired(1, 2)], NOON);
    await store.recordProven(POOL, { ...PROOF, instances: 9, recoveryMs: null });
    await store.claim(POOL, "another", NOON);

    expect((await store.readPool(POOL))?.proven).toEqual({ ...PROOF, instances: 9, recoveryMs: null });
    expect((await store.readPool(POOL))?.scale).toEqual(state(2));
  });

  it("nothing is proven of a pool that nobody has claimed", async (store) => {
    await refused(store.recordProven(POOL, PROOF), "store_conflict");
  });
}

function exception(id: string, more: Partial<PromotionException> = {}): PromotionException {
  const followUps = [
    { what: "run the load test", doneAt: null },
    { what: "lower size.max", doneAt: null },
  ];
  return { id, pool: POOL, what: "size.max 40", gate: "proven capacity 8", why: "sale on Friday", by: "ann", at: NOON, followUps, ...more };
}

function exceptions(it: StoreTest): void {
  it("an exception is kept once, with its follow-ups, each of them done once (K10)", async (store) => {
    await store.recordException(exception("e-1"));
    await store.recordException(exception("e-1", { why: "another" }));
    await store.recordException(exception("e-2", { at: NOON + 1, pool: "shop/other" }));

    expect(await store.listExceptions(null, 10)).toEqual([exception("e-2", { at: NOON + 1, pool: "shop/other" }), exception("e-1")]);
    expect(await store.listExceptions(POOL, 10)).toEqual([exception("e-1")]);

    const done = exception("e-1", {
      followUps: [
        { what: "run the load test", doneAt: null },
        { what: "lower size.max", doneAt: NOON + 5 },
      ],
    });
    expect(await store.finishFollowUp("e-1", 1, NOON + 5)).toEqual(done);
    expect(await store.finishFollowUp("e-1", 1, NOON + 9)).toEqual(done);
    expect(await store.listExceptions(POOL, 10)).toEqual([done]);
    await refused(store.finishFollowUp("e-1", 2, NOON), "store_conflict");
    await refused(store.finishFollowUp("e-3", 0, NOON), "store_conflict");
  });
}
