/** The store's contract: who may write for a workload. Epochs never fall, none is given twice, a tombstone outlives everything (I1, I2). */
import { expect } from "vitest";
import { compareEpochs, EPOCH_ZERO, epoch, type Epoch } from "../../src/kernel/epoch.ts";
import type { Workload, WriterHolder } from "../../src/model/writer.ts";
import type { Authority, Change, Store } from "../../src/store/port.ts";
import {
  claimed,
  create,
  evidenceOf,
  incarnation,
  instanceIn,
  move,
  NOON,
  POOL,
  refused,
  renew,
  TTL_MS,
  walk,
  type StoreTest,
} from "./store-fixtures.ts";

const WRITER: Workload = {
  pool: POOL,
  ordinal: 0,
  writerEpoch: epoch(0, 1),
  minAcceptedEpoch: epoch(0, 1),
  holder: { instance: "i-1", incarnation: 1, bootId: "boot-1" },
  renewals: 0,
  ttlMs: 0,
};

function pass(to: string | null, after: Epoch = EPOCH_ZERO, more: Partial<WriterHolder> = {}): Change {
  return { kind: "pass_writer", ordinal: 0, after, to: to === null ? null : { instance: to, incarnation: 1, bootId: "boot-1", ...more } };
}

/** After `withWriter`: who was passed the lease last. */
const fenceHolder = (given: Epoch): Change => fence(given === epoch(0, 1) ? "i-1" : "i-0.1");
const fence = (instance: string): Change => ({ kind: "set_trust", instance, incarnation: 1, from: "ok", to: "fenced" });

/** Serves as incarnation 1 with boot id `boot-1`. */
function serving(id: string): Change[] {
  return [...instanceIn("serving", id), { kind: "renew_incarnation", instance: id, after: 0, incarnation: incarnation(1) }];
}

async function workloadOf(store: Store, ordinal = 0): Promise<Workload | undefined> {
  return (await store.readPool(POOL))?.workloads.find((each) => each.ordinal === ordinal);
}

async function withWriter(store: Store): Promise<Authority> {
  const owner = await claimed(store);
  await store.commit(owner, [...serving("i-1"), ...serving("i-2"), pass("i-1")], NOON);
  return owner;
}

export function storeWorkloadsContract(it: StoreTest): void {
  it("a workload has no row before its first writer, and a fence of nobody makes none", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, [...serving("i-1"), pass(null)], NOON);
    expect((await store.readPool(POOL))?.workloads).toEqual([]);
    await store.commit(owner, [pass("i-1")], NOON);
    expect((await store.readPool(POOL))?.workloads).toEqual([WRITER]);
  });

  it("a fence takes the lease and leaves a tombstone above all that was given; the next writer gets exactly that epoch (I2)", async (store) => {
    const owner = await withWriter(store);

    await store.commit(owner, [fence("i-1"), pass(null, epoch(0, 1))], NOON);
    expect(await workloadOf(store)).toEqual({ ...WRITER, holder: null, minAcceptedEpoch: "0.2" });
    await store.commit(owner, [pass(null, epoch(0, 1))], NOON);
    expect(await workloadOf(store), "a second fence changes nothing").toEqual({ ...WRITER, holder: null, minAcceptedEpoch: "0.2" });

    await store.commit(owner, [pass("i-2", epoch(0, 1))], NOON);
    expect(await workloadOf(store)).toEqual({
      ...WRITER,
      holder: { instance: "i-2", incarnation: 1, bootId: "boot-1" },
      writerEpoch: "0.2",
      minAcceptedEpoch: "0.2",
    });
  });

  it("a pass is a compare-and-set on the writer's epoch", async (store) => {
    const owner = await withWriter(store);
    for (const after of [EPOCH_ZERO, epoch(0, 2), epoch(1, 1)])
      for (const to of [null, "i-2"]) await refused(store.commit(owner, [fence("i-1"), pass(to, after)], NOON), "store_conflict");
    expect(await workloadOf(store)).toEqual(WRITER);
  });

  it("the lease is passed only to the very process that takes traffic and is trusted, at this ordinal", async (store) => {
    const owner = await claimed(store);
    await store.commit(
      owner,
      [
        ...serving("i-1"),
        create("i-far", { ordinal: 7 }),
        ...walk("i-far", ["creating", "preparing", "validating", "admitted", "serving"]),
        { kind: "renew_incarnation", instance: "i-far", after: 0, incarnation: incarnation(1) },
        ...instanceIn("validating", "i-2"),
        { kind: "renew_incarnation", instance: "i-2", after: 0, incarnation: incarnation(1) },
        ...serving("i-3"),
        { kind: "set_trust", instance: "i-3", incarnation: 1, from: "ok", to: "suspect" },
      ],
      NOON,
    );
    for (const wrong of [
      pass("i-1", EPOCH_ZERO, { incarnation: 2 }),
      pass("i-1", EPOCH_ZERO, { bootId: "boot-0" }),
      pass("i-far"),
      pass("i-2"),
      pass("i-3"),
      pass("i-none"),
    ])
      await refused(store.commit(owner, [wrong], NOON), "store_conflict");
    expect((await store.readPool(POOL))?.workloads).toEqual([]);
  });

  it("the lease leaves a process that may still write only by a fence or its seal (I1)", async (store) => {
    const owner = await withWriter(store);
    await refused(store.commit(owner, [pass("i-2", epoch(0, 1))], NOON), "store_conflict");
    await refused(store.commit(owner, [pass("i-1", epoch(0, 1))], NOON), "store_conflict");
    await store.commit(owner, [move("i-1", "serving", "draining")], NOON);
    await refused(store.commit(owner, [pass("i-2", epoch(0, 1))], NOON), "store_conflict");

    await store.commit(owner, [move("i-1", "draining", "sealed"), pass("i-2", epoch(0, 1))], NOON);
    expect(await workloadOf(store)).toMatchObject({ holder: { instance: "i-2" }, writerEpoch: "0.2", minAcceptedEpoch: "0.2" });
  });

  it("nobody is let on in the place of a writer that is lost and not fenced yet, whenever that was decided", async (store) => {
    const owner = await withWriter(store);
    await store.commit(
      owner,
      [...instanceIn("validating", "i-3"), ...instanceIn("standby", "i-4"), ...instanceIn("validating", "i-5")],
      NOON,
    );
    await store.commit(owner, [move("i-5", "validating", "admitted")], NOON);
    const lost = { ...evidenceOf("i-1"), loss: "forced", reason: "node_lost" } as const;
    await store.commit(owner, [{ kind: "record_evidence", id: "e-1", evidence: lost }], NOON);

    await refused(store.commit(owner, [move("i-3", "validating", "admitted")], NOON), "store_conflict");
    await refused(store.commit(owner, [move("i-4", "standby", "admitted")], NOON), "store_conflict");
    await store.commit(owner, [fence("i-1"), pass(null, epoch(0, 1))], NOON);
    await store.commit(owner, [move("i-3", "validating", "admitted"), move("i-4", "standby", "admitted")], NOON);
  });

  it("a controller that was deposed passes and fences nothing, and its holders renew on (I4)", async (store) => {
    const old = await withWriter(store);
    await store.claim(POOL, "controller-b", NOON);
    for (const changes of [[fence("i-1"), pass(null, epoch(0, 1))], [pass("i-2", epoch(0, 1))]])
      await refused(store.commit(old, changes, NOON), "stale_epoch");
    expect(await renew(store, { pool: POOL, instance: "i-1", bootId: "boot-1", epoch: epoch(0, 1) })).toEqual({
      ...WRITER,
      renewals: 1,
      ttlMs: TTL_MS,
    });
  });

  it("renewals that wait together each count, and none is lost between commits", async (store) => {
    const owner = await withWriter(store);
    const renewal = { pool: POOL, instance: "i-1", bootId: "boot-1", epoch: epoch(0, 1) };
    const settled = await Promise.allSettled([
      ...Array.from({ length: 10 }, () => renew(store, renewal)),
      store.commit(owner, [fence("i-1"), pass(null, epoch(0, 1))], NOON),
      ...Array.from({ length: 5 }, () => renew(store, renewal)),
    ]);
    expect(settled.map((result) => (result.status === "fulfilled" ? "done" : (result.reason as { code: string }).code))).toEqual([
      ...Array.from({ length: 11 }, () => "done"),
      ...Array.from({ length: 5 }, () => "lease_fenced"),
    ]);
    expect(await workloadOf(store)).toMatchObject({ holder: null, minAcceptedEpoch: "0.2" });
  });

  it("a new process of the same instance is another writer", async (store) => {
    const owner = await withWriter(store);
    const renewed: Change = { kind: "renew_incarnation", instance: "i-1", after: 1, incarnation: incarnation(2) };
    await store.commit(owner, [renewed, pass("i-1", epoch(0, 1), { incarnation: 2, bootId: "boot-2" })], NOON);
    expect(await workloadOf(store)).toMatchObject({ holder: { instance: "i-1", incarnation: 2, bootId: "boot-2" }, writerEpoch: "0.2" });
  });

  it("a pass, a fence, and the trust in who takes traffic for a workload are told to the gateways; a fence of nobody is not", async (store) => {
    const owner = await claimed(store);
    const counterOf = (generation: string) => Number(generation.slice(2));
    const raised = async (...changes: Change[]) => {
      const before = (await store.readPool(POOL))?.generation ?? "0.0";
      return counterOf((await store.commit(owner, changes, NOON)).generation) - counterOf(before);
    };
    await store.commit(owner, [...serving("i-1"), ...serving("i-2")], NOON);
    const suspect: Change = { kind: "set_trust", instance: "i-1", incarnation: 1, from: "ok", to: "suspect" };
    const trusted: Change = { kind: "set_trust", instance: "i-1", incarnation: 1, from: "suspect", to: "ok" };

    expect(await raised(suspect), "without a writer trust is nothing to gateways").toBe(0);
    await store.commit(owner, [trusted], NOON);
    expect(await raised(pass("i-1"))).toBe(1);
    expect(await raised(suspect)).toBe(1);
    expect(await raised(trusted)).toBe(1);
    expect(await raised(fence("i-1"), pass(null, epoch(0, 1)))).toBe(1);
    expect(await raised(pass(null, epoch(0, 1)))).toBe(0);
  });

  it("only the holder renews, each time it counts, and it needs no authority", async (store) => {
    await withWriter(store);
    const own = { pool: POOL, instance: "i-1", bootId: "boot-1", epoch: null };

    expect(await renew(store, own)).toEqual({ ...WRITER, renewals: 1, ttlMs: TTL_MS });
    await claimed(store);
    expect(await renew(store, { ...own, epoch: epoch(0, 1) })).toEqual({ ...WRITER, renewals: 2, ttlMs: TTL_MS });
    expect(await workloadOf(store)).toEqual({ ...WRITER, renewals: 2, ttlMs: TTL_MS });

    // It may still get it: the workload's other instance. One that believes what this store never gave says that the store was rewound.
    await expect(renew(store, { ...own, instance: "i-2" })).rejects.toMatchObject({ code: "lease_not_held", class: "conflict" });
    await refused(renew(store, { ...own, epoch: epoch(0, 2) }), "store_rewound");
    await refused(renew(store, { ...own, epoch: epoch(1, 0) }), "store_rewound");
    // It never will: another process, an unknown one, one that held it and does not.
    await expect(renew(store, { ...own, bootId: "boot-0" })).rejects.toMatchObject({ code: "lease_fenced", class: "terminal" });
    await refused(renew(store, { ...own, instance: "i-9" }), "lease_fenced");
    await refused(renew(store, { ...own, pool: "shop/other" }), "lease_fenced");
    expect(await workloadOf(store), "what is refused renews nothing").toEqual({ ...WRITER, renewals: 2, ttlMs: TTL_MS });
  });

  it("the epoch of the next writer is no tombstone to who believes to have it: another copy of the store gave it (I1)", async (store) => {
    const owner = await withWriter(store);
    const lost = { pool: POOL, bootId: "boot-1", epoch: epoch(0, 2) };
    // As of the backup the place has no writer, and 0.2 is free. In the lost time i-2, or one that the backup does not know, was given it.
    await store.commit(owner, [fence("i-1"), pass(null, epoch(0, 1))], NOON);
    for (const instance of ["i-2", "i-9"]) await refused(renew(store, { ...lost, instance }), "store_rewound");

    // Given a second time before anybody came with it: two have it now, and that is said.
    await store.commit(owner, [...serving("i-3"), pass("i-3", epoch(0, 1))], NOON);
    for (const instance of ["i-2", "i-9"]) await refused(renew(store, { ...lost, instance }), "store_rewound");
    expect(await renew(store, { ...lost, instance: "i-3" })).toMatchObject({ writerEpoch: "0.2", renewals: 1 });
    // Who was given less, and lost it, is fenced as ever.
    await refused(renew(store, { ...lost, instance: "i-2", epoch: epoch(0, 1) }), "lease_fenced");
  });

  it("one that the store does not know says at which place it was given its epoch: what was given at others means nothing (I1)", async (store) => {
    const owner = await withWriter(store);
    const far: readonly Change[] = [
      create("i-far", { ordinal: 7 }),
      ...walk("i-far", ["creating", "preparing", "validating", "admitted", "serving"]),
      { kind: "renew_incarnation", instance: "i-far", after: 0, incarnation: incarnation(1) },
      { kind: "pass_writer", ordinal: 7, after: EPOCH_ZERO, to: { instance: "i-far", incarnation: 1, bootId: "boot-1" } },
    ];
    await store.commit(owner, far, NOON);
    for (const after of [epoch(0, 1), epoch(0, 2)])
      await store.commit(owner, [...serving(`i-${after}`), fenceHolder(after), pass(`i-${after}`, after)], NOON);
    const unknown = { pool: POOL, instance: "i-9", bootId: "boot-9", epoch: epoch(0, 2) };

    await refused(renew(store, { ...unknown, ordinal: 7 }), "store_rewound");
    await refused(renew(store, { ...unknown, ordinal: 8 }), "store_rewound");
    // Of a pool that was deleted and made again: its rows are gone, what it was given is not.
    await refused(renew(store, { ...unknown, ordinal: 0 }), "lease_fenced");
    await refused(renew(store, unknown), "lease_fenced");
    // An instance is elsewhere in the backup than it was when it was given its epoch: a standby that was taken since.
    await refused(renew(store, { ...unknown, instance: "i-2", ordinal: 7 }), "store_rewound");
  });

  it("for how long a renewal lasts is kept as the holder was told it; the next writer was told nothing yet", async (store) => {
    const owner = await withWriter(store);
    const own = { pool: POOL, instance: "i-1", bootId: "boot-1", epoch: epoch(0, 1) };
    for (const told of [60_000, 2_000]) {
      expect(await store.renewLease(own, told)).toMatchObject({ ttlMs: told });
      expect(await workloadOf(store)).toMatchObject({ ttlMs: told });
    }
    await store.commit(owner, [fence("i-1"), pass("i-2", epoch(0, 1))], NOON);
    expect(await workloadOf(store)).toMatchObject({ holder: { instance: "i-2" }, renewals: 0, ttlMs: 0 });
  });

  it("a fenced process renews nothing any more, whatever it believes, also while another holds the lease", async (store) => {
    const owner = await withWriter(store);
    await store.commit(owner, [fence("i-1"), pass(null, epoch(0, 1))], NOON);
    for (const believed of [null, epoch(0, 1), epoch(0, 2)])
      await refused(renew(store, { pool: POOL, instance: "i-1", bootId: "boot-1", epoch: believed }), "lease_fenced");
    await store.commit(owner, [pass("i-2", epoch(0, 1))], NOON);
    await refused(renew(store, { pool: POOL, instance: "i-1", bootId: "boot-1", epoch: epoch(0, 1) }), "lease_fenced");
    expect(await workloadOf(store)).toMatchObject({ holder: { instance: "i-2" }, renewals: 0 });
  });

  it("a tombstone outlives its instances and the pool itself: who comes after goes on counting (I2)", async (store) => {
    const owner = await withWriter(store);
    const gone = (id: string) => walk(id, ["draining", "sealed", "retiring", "retired", "deleted"], "serving");
    await store.commit(owner, [...gone("i-1"), ...gone("i-2")], NOON);
    await store.collect(NOON + 400 * 86_400_000);
    await store.release(owner);
    expect(await store.readPool(POOL)).toBeUndefined();
    await refused(renew(store, { pool: POOL, instance: "i-1", bootId: "boot-1", epoch: epoch(0, 1) }), "lease_fenced");

    const again = await claimed(store);
    expect((await store.readPool(POOL))?.workloads).toEqual([{ ...WRITER, holder: null, minAcceptedEpoch: "0.2" }]);
    await store.commit(again, [...serving("i-1")], NOON);
    await refused(store.commit(again, [pass("i-1")], NOON), "store_conflict");
    await store.commit(again, [pass("i-1", epoch(0, 1))], NOON);
    expect(await workloadOf(store)).toMatchObject({ writerEpoch: "0.2", minAcceptedEpoch: "0.2" });
  });

  it("whatever is passed and fenced, a workload's epochs never fall and none is given twice (I1, I2)", async (store) => {
    const owner = await claimed(store);
    const given = new Set<string>();
    let before: Workload | undefined;
    for (let round = 1; round <= 12; round++) {
      const id = `i-${round}`;
      const after = before?.writerEpoch ?? EPOCH_ZERO;
      await store.commit(owner, [...serving(id), pass(id, after)], NOON);
      const now = await workloadOf(store);
      if (now === undefined) throw new Error("the workload has no row");
      expect(given.has(now.writerEpoch)).toBe(false);
      given.add(now.writerEpoch);
      if (before) expect(compareEpochs(now.minAcceptedEpoch, before.minAcceptedEpoch)).toBeGreaterThanOrEqual(0);
      await store.commit(owner, [fence(id), ...(round % 3 === 0 ? [] : [pass(null, now.writerEpoch)])], NOON);
      before = await workloadOf(store);
    }
    expect(given.size).toBe(12);
  });
}
