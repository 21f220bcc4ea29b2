/** The store's contract: what a recovery after a rewind leaves behind. Nothing that was seen in the lost time is ever given, believed or confirmed again. */
import { expect } from "vitest";
import { compareEpochs, epoch, EPOCH_PATTERN, EPOCH_ZERO } from "../../src/kernel/epoch.ts";
import type { Change } from "../../src/store/port.ts";
import { claimed, incarnation, instanceIn, instanceOf, move, NOON, POOL, refused, renew, walk, type StoreTest } from "./store-fixtures.ts";

const COMMAND = { above: 0, at: NOON, why: "yesterday's backup", by: "alice" };
const WRITER: Change = {
  kind: "pass_writer",
  ordinal: 0,
  after: EPOCH_ZERO,
  to: { instance: "i-1", incarnation: 1, bootId: "boot-1" },
};

/** Serves, and writes, as incarnation 1 with boot id `boot-1`. */
const writing: readonly Change[] = [
  ...instanceIn("serving", "i-1"),
  { kind: "renew_incarnation", instance: "i-1", after: 0, incarnation: incarnation(1) },
  WRITER,
];

const passAfter = (instance: string): Change => ({
  kind: "pass_writer",
  ordinal: 0,
  after: epoch(3, 2),
  to: { instance, incarnation: 1, bootId: "boot-1" },
});

export function storeRecoveryContract(it: StoreTest): void {
  it("a new store is of the first era and was never recovered", async (store) => {
    expect(await store.readEra()).toEqual({ era: 0, recovered: null });
  });

  it("a recovery raises the era above its own and above what was seen, and says who did it and why", async (store) => {
    expect(await store.recover(COMMAND)).toEqual({
      era: 1,
      recovered: { at: NOON, from: 0, why: "yesterday's backup", by: "alice" },
    });
    await store.recover({ ...COMMAND, above: 7, why: "once more" });
    expect(await store.readEra()).toEqual({ era: 8, recovered: { at: NOON, from: 1, why: "once more", by: "alice" } });
    await refused(store.recover({ ...COMMAND, above: Number.NaN }), "era_invalid");
    await refused(store.recover({ ...COMMAND, above: -1 }), "era_invalid");
    await refused(store.recover({ ...COMMAND, above: 999_999_999_999_999 }), "era_invalid");
    expect((await store.readEra()).era).toBe(8);
  });

  it("the last era that can be written still makes epochs that can be read", async (store) => {
    await claimed(store);
    expect((await store.recover({ ...COMMAND, above: 999_999_999_999_998 })).era).toBe(999_999_999_999_999);
    const { generation, authorityEpoch } = (await store.readPool(POOL)) ?? {};
    for (const each of [generation, authorityEpoch]) expect(each).toMatch(EPOCH_PATTERN);
  });

  it("every pool's authority and generation are of the new era at once, and whoever acted before is stale (I4)", async (store) => {
    const owner = await claimed(store);
    const other = await claimed(store, "shop/other");
    await store.commit(owner, instanceIn("serving", "i-1"), NOON);
    const { generation } = (await store.readPool(POOL)) ?? {};

    await store.recover({ ...COMMAND, above: 3 });

    const rows = await store.readPool(POOL);
    expect([rows?.authorityEpoch, rows?.generation.split(".")[0], (await store.readPool("shop/other"))?.generation]).toEqual([
      "4.2",
      "4",
      "4.1",
    ]);
    expect(compareEpochs(rows?.generation ?? EPOCH_ZERO, generation ?? EPOCH_ZERO)).toBeGreaterThan(0);
    await refused(store.commit(owner, [move("i-1", "serving", "draining")], NOON), "stale_epoch");
    await refused(store.commit(other, [], NOON), "stale_epoch");
    expect(await claimed(store)).toEqual({ pool: POOL, epoch: "4.3" });
  });

  it("a pool that was forgotten gives no epoch of the lost time either", async (store) => {
    await store.release(await claimed(store));
    await store.recover({ ...COMMAND, above: 1 });
    expect(await claimed(store)).toEqual({ pool: POOL, epoch: "2.3" });
  });

  it("nobody may write afterwards, nothing from before lands, and the next writer is of the new era (I1, I2)", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, writing, NOON);
    await store.recover({ ...COMMAND, above: 2 });

    expect((await store.readPool(POOL))?.workloads).toEqual([
      { pool: POOL, ordinal: 0, writerEpoch: "3.2", minAcceptedEpoch: "3.3", holder: null, renewals: 0, ttlMs: 0 },
    ]);
    await refused(renew(store, { pool: POOL, instance: "i-1", bootId: "boot-1", epoch: epoch(0, 1) }), "lease_fenced");
    // Also what was given in the lost time.
    await refused(renew(store, { pool: POOL, instance: "i-9", bootId: "boot-9", epoch: epoch(2, 900) }), "lease_fenced");

    // Its memory may be older than what another wrote in the lost time: this very process never writes again.
    expect(await instanceOf(store, "i-1")).toMatchObject({ trust: "fenced" });
    const successor = [
      ...instanceIn("serving", "i-2"),
      { kind: "renew_incarnation", instance: "i-2", after: 0, incarnation: incarnation(1) } as const,
    ];
    await store.commit(await claimed(store), successor, NOON);
    const again = await claimed(store);
    await refused(store.commit(again, [passAfter("i-1")], NOON), "store_conflict");
    await store.commit(again, [passAfter("i-2")], NOON);
    expect((await store.readPool(POOL))?.workloads).toMatchObject([
      { writerEpoch: "3.3", minAcceptedEpoch: "3.3", holder: { instance: "i-2" } },
    ]);
    // One that held another epoch in the lost time does not take this one on. That it asked is counted, so that it is judged.
    for (let asked = 1; asked <= 3; asked++) {
      await refused(renew(store, { pool: POOL, instance: "i-2", bootId: "boot-1", epoch: epoch(2, 7) }), "lease_fenced");
      expect((await store.readPool(POOL))?.workloads, "once, however often it asks").toMatchObject([{ renewals: 1 }]);
    }
  });

  it("what gateways had confirmed must be confirmed anew, of what lives; what is over stays as it was", async (store) => {
    const owner = await claimed(store);
    const changes = [
      ...instanceIn("serving", "i-1"),
      ...instanceIn("serving", "i-2"),
      move("i-2", "serving", "draining"),
      ...instanceIn("pending", "i-3"),
      ...instanceIn("serving", "i-4"),
      ...walk("i-4", ["draining", "sealed", "retiring", "retired", "deleted"], "serving"),
    ];
    await store.commit(owner, changes, NOON);
    const before = await instanceOf(store, "i-4");

    await store.recover(COMMAND);

    const generation = (await store.readPool(POOL))?.generation;
    expect(await instanceOf(store, "i-1")).toMatchObject({ phase: "serving", admittedGeneration: generation, drainGeneration: null });
    expect(await instanceOf(store, "i-2")).toMatchObject({
      phase: "draining",
      admittedGeneration: generation,
      drainGeneration: generation,
    });
    expect(await instanceOf(store, "i-3")).toMatchObject({ phase: "pending", admittedGeneration: null, drainGeneration: null });
    expect(await instanceOf(store, "i-4")).toEqual(before);
  });

  it("a renewal under an epoch that the store has not given is no renewal, and no verdict on the caller either", async (store) => {
    await store.commit(await claimed(store), writing, NOON);
    const own = { pool: POOL, instance: "i-1", bootId: "boot-1" };
    const before = (await store.readPool(POOL))?.workloads;
    for (const renewal of [
      { ...own, epoch: epoch(0, 2) },
      { ...own, epoch: epoch(1, 0) },
      // One that this store never heard of.
      { ...own, instance: "i-9", bootId: "boot-9", epoch: epoch(0, 2) },
    ])
      await expect(renew(store, renewal)).rejects.toMatchObject({ code: "store_rewound", class: "retryable" });
    expect((await store.readPool(POOL))?.workloads).toEqual(before);
  });
}
