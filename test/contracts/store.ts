/** What every store must do, whatever database is under it. Each test gets an empty store of its own. */
import { describe, expect, test } from "vitest";
import type { Store } from "../../src/store/port.ts";
import { storeHistoryContract } from "./store-history.ts";
import { storeInstancesContract } from "./store-instances.ts";
import { storeJournalContract } from "./store-journal.ts";
import { storeRecoveryContract } from "./store-recovery.ts";
import { storeScaleContract } from "./store-scale.ts";
import { storeWorkloadsContract } from "./store-workloads.ts";
import {
  claimed,
  create,
  evidenceOf,
  instanceIn,
  instanceOf,
  move,
  NOON,
  picture,
  POOL,
  recordStep,
  refused,
  walk,
  type StoreTest,
} from "./store-fixtures.ts";

export function storeContract(name: string, open: () => Promise<Store>): void {
  const it: StoreTest = (sentence, body) => {
    test(sentence, async () => {
      const store = await open();
      try {
        await body(store);
      } finally {
        await store.close();
      }
    });
  };
  describe(name, () => {
    describe("authority", () => authority(it));
    describe("commit", () => commit(it));
    describe("instances", () => storeInstancesContract(it));
    describe("writer leases", () => storeWorkloadsContract(it));
    describe("recovery after a rewind", () => storeRecoveryContract(it));
    describe("journal and evidence", () => storeJournalContract(it));
    describe("sizes", () => storeScaleContract(it));
    describe("notices, gateways, what is forgotten", () => storeHistoryContract(it));
  });
}

function authority(it: StoreTest): void {
  it("a claim makes the pool, each further one raises its epoch alone", async (store) => {
    expect(await store.readPool(POOL)).toBeUndefined();
    expect(await store.claim(POOL, "controller-a", NOON)).toEqual({ pool: POOL, epoch: "0.1" });
    expect(await store.claim("shop/other", "controller-a", NOON)).toEqual({ pool: "shop/other", epoch: "0.1" });
    expect(await store.claim(POOL, "controller-b", NOON)).toEqual({ pool: POOL, epoch: "0.2" });

    expect(await store.listPools()).toEqual(["shop/orders", "shop/other"]);
    expect(await store.readPool(POOL)).toEqual({
      pool: POOL,
      authorityEpoch: "0.2",
      owner: "controller-b",
      generation: "0.0",
      freeze: null,
      instances: [],
      evidence: [],
      openSteps: [],
      failures: [],
      reasons: [],
      workloads: [],
      scale: null,
      proven: null,
    });
  });

  it("an epoch that is not the current one commits nothing (I4)", async (store) => {
    const old = await claimed(store);
    await store.commit(old, [...instanceIn("serving", "i-1"), recordStep("s-1")], NOON);
    const current = await claimed(store);
    const before = await picture(store);

    for (const change of [create("i-2"), recordStep("s-2"), move("i-1", "serving", "draining")])
      await expect(store.commit(old, [change], NOON)).rejects.toMatchObject({ code: "stale_epoch", found: "0.2", allowed: "0.1" });
    await refused(store.commit(old, [], NOON), "stale_epoch");
    await refused(store.release(old), "stale_epoch");
    await refused(store.commit({ ...current, pool: "shop/never" }, [], NOON), "stale_epoch");

    expect(await picture(store)).toEqual(before);
  });

  it("a claim that overtakes a commit that waits makes it stale (I4)", async (store) => {
    const old = await claimed(store);

    const [claim, late] = await Promise.allSettled([store.claim(POOL, "controller-b", NOON), store.commit(old, [create("i-1")], NOON)]);

    expect(claim.status).toBe("fulfilled");
    expect(late).toMatchObject({ status: "rejected", reason: { code: "stale_epoch" } });
    expect(await store.listInstances(POOL, 10)).toEqual([]);
  });

  it("a pool is forgotten only when nothing but deleted instances is left", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, [...instanceIn("retired", "i-1"), recordStep("s-1")], NOON);
    await store.commit(owner, [{ kind: "record_evidence", id: "e-1", evidence: evidenceOf("i-1") }], NOON);
    await store.commit(owner, [{ kind: "count_loss", instance: "i-1", loss: "forced", obligations: 1, seal: "forced" }], NOON);

    await refused(store.release(owner), "store_conflict");
    await store.commit(owner, [move("i-1", "retired", "deleted")], NOON);
    await refused(store.release(owner), "store_conflict");
    await store.commit(owner, [{ kind: "end_step", step: "s-1", state: "done", outcome: "cordoned" }], NOON);
    await store.release(owner);

    expect(await picture(store)).toEqual([undefined, [], [], [], []]);
    expect(await store.listPools()).toEqual([]);
  });

  it("a pool that returns after it was forgotten goes on counting: no old epoch becomes valid again (I4)", async (store) => {
    const first = await claimed(store);
    await store.commit(first, instanceIn("admitted", "i-1"), NOON);
    const { generation } = await store.commit(
      first,
      walk("i-1", ["draining", "sealed", "retiring", "retired", "deleted"], "admitted"),
      NOON,
    );
    await store.setFreeze(POOL, { until: NOON, why: "test", by: "me" });
    await store.release(first);

    await refused(store.commit(first, [], NOON), "stale_epoch");
    const second = await claimed(store);

    expect(Number(second.epoch.split(".")[1])).toBeGreaterThan(Number(first.epoch.split(".")[1]));
    await refused(store.commit(first, [], NOON), "stale_epoch");
    expect(await store.readPool(POOL)).toMatchObject({ generation, freeze: null, instances: [], failures: [] });
    await store.commit(second, [create("i-1")], NOON);
  });

  it("the epochs of all claimed pools are read at once; one that is forgotten, or was only frozen, has none", async (store) => {
    expect([...(await store.poolEpochs())]).toEqual([]);
    await claimed(store);
    await claimed(store);
    await claimed(store, "shop/other");
    await store.release(await claimed(store, "shop/gone"));
    await store.setFreeze("shop/frozen", { until: NOON, why: "test", by: "me" });

    expect([...(await store.poolEpochs())]).toEqual([
      ["shop/orders", "0.2"],
      ["shop/other", "0.1"],
    ]);
    await store.recover({ above: 0, at: NOON, why: "test", by: "me" });
    expect((await store.poolEpochs()).get(POOL)).toBe("1.3");
  });

  it("who has which pool is read at once; one that nobody has, that is forgotten or was only frozen is not among them", async (store) => {
    expect([...(await store.poolOwners())]).toEqual([]);
    await store.claim(POOL, "replica-1", NOON);
    await store.claim("shop/other", "replica-1", NOON);
    await store.claim("shop/other", "replica-2", NOON);
    await store.letGo(await store.claim("shop/left", "replica-1", NOON));
    await store.release(await store.claim("shop/gone", "replica-1", NOON));
    await store.setFreeze("shop/frozen", { until: NOON, why: "test", by: "me" });

    expect([...(await store.poolOwners())]).toEqual([
      [POOL, "replica-1"],
      ["shop/other", "replica-2"],
    ]);
  });

  it("a pool that was let go in good order is nobody's, keeps all that it has, and nothing of before commits (I4)", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, [...instanceIn("serving", "i-1"), recordStep("s-1")], NOON);
    const before = await store.readPool(POOL);
    await store.letGo(owner);

    expect(await store.readPool(POOL)).toEqual({ ...before, owner: null, authorityEpoch: "0.2" });
    expect((await store.poolEpochs()).get(POOL)).toBe("0.2");
    await refused(store.commit(owner, [], NOON), "stale_epoch");
    await refused(store.letGo(owner), "stale_epoch");
    expect((await claimed(store)).epoch).toBe("0.3");
  });

  it("a secret is the first that was offered under its name, and outlives a recovery", async (store) => {
    expect(await store.sharedSecret("a", "first")).toBe("first");
    await store.recover({ above: 0, at: NOON, why: "test", by: "me" });
    expect(await Promise.all([store.sharedSecret("a", "second"), store.sharedSecret("b", "other")])).toEqual(["first", "other"]);
  });

  it("says what it is", async (store) => {
    expect(await store.describeStore()).toEqual({
      kind: expect.stringMatching(/^(sqlite|postgresql)$/),
      version: expect.stringMatching(/^\d+\.\d+/),
      where: expect.any(String),
      schema: expect.any(Number),
      synchronous: expect.stringMatching(/^(memory|disk|none)$/),
    });
  });

  it("a freeze works under any epoch, also before the first claim, and can be lifted", async (store) => {
    const freeze = { until: NOON + 60_000, why: "audit", by: "operator" };
    await store.setFreeze(POOL, freeze);
    expect(await store.readPool(POOL)).toBeUndefined();
    expect(await store.listPools()).toEqual([]);

    const owner = await claimed(store);
    expect(owner.epoch).toBe("0.1");
    expect((await store.readPool(POOL))?.freeze).toEqual(freeze);
    await store.setFreeze(POOL, null);
    expect((await store.readPool(POOL))?.freeze).toBeNull();
    await store.commit(owner, [], NOON);
  });
}

function commit(it: StoreTest): void {
  it("applies all of its changes or none", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, instanceIn("serving", "i-1"), NOON);
    const before = await picture(store);

    await refused(
      store.commit(
        owner,
        [
          create("i-2", { blueprintHash: "b2" }),
          { kind: "record_evidence", id: "e-1", evidence: evidenceOf("i-1") },
          recordStep("s-1"),
          { kind: "count_loss", instance: "i-1", loss: "forced", obligations: 3, seal: "assumed" },
          { kind: "set_reasons", reasons: [{ subject: "", reason: { code: "nothing_to_do", params: {} }, since: NOON }] },
          move("i-1", "serving", "draining"),
          move("i-1", "serving", "draining"), // it drains already
        ],
        NOON,
      ),
      "store_conflict",
    );

    expect(await picture(store)).toEqual(before);
    expect(await store.getBlueprint("b2")).toBeUndefined();
  });

  it("a commit that is refused takes nothing of those beside it with it", async (store) => {
    const owner = await claimed(store);

    const results = await Promise.allSettled([
      store.commit(owner, [create("i-1")], NOON),
      store.commit(owner, [create("i-2"), move("i-2", "serving", "draining")], NOON),
      store.commit(owner, [create("i-3")], NOON),
      store.commit(owner, [move("i-1", "pending", "creating")], NOON),
      store.commit({ pool: POOL, epoch: "0.7" as typeof owner.epoch }, [create("i-4")], NOON),
      store.commit(owner, [create("i-5")], NOON),
    ]);

    expect(results.map((result) => (result.status === "rejected" ? result.reason.code : "done"))).toEqual([
      "done",
      "store_conflict",
      "done",
      "done",
      "stale_epoch",
      "done",
    ]);
    expect((await store.readPool(POOL))?.instances.map(({ id, phase }) => [id, phase])).toEqual([
      ["i-1", "creating"],
      ["i-3", "pending"],
      ["i-5", "pending"],
    ]);
  });

  it("a change names only what is its pool's own", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, [...instanceIn("serving", "i-1"), recordStep("s-1")], NOON);
    const other = await claimed(store, "shop/other");
    const before = await picture(store);

    for (const change of [
      move("i-1", "serving", "draining"),
      create("i-1"),
      recordStep("s-2"),
      recordStep("s-1", { pool: "shop/other" }),
      { kind: "end_step", step: "s-1", state: "done", outcome: "x" },
      { kind: "retry_step", step: "s-1", notBefore: NOON, error: "x" },
      { kind: "record_evidence", id: "e-1", evidence: evidenceOf("i-1") },
      { kind: "set_trust", instance: "i-1", incarnation: 0, from: "ok", to: "fenced" },
      { kind: "count_loss", instance: "i-1", loss: "forced", obligations: 1, seal: "forced" },
    ] as const)
      await refused(store.commit(other, [change], NOON), "store_conflict");

    expect(await picture(store)).toEqual(before);
  });

  it("answers with the route's generation, whether it rose or not", async (store) => {
    const owner = await claimed(store);

    expect(await store.commit(owner, [], NOON)).toEqual({ generation: "0.0" });
    expect(await store.commit(owner, instanceIn("admitted", "i-1"), NOON)).toEqual({ generation: "0.1" });
    expect(await store.commit(owner, [move("i-1", "admitted", "serving")], NOON)).toEqual({ generation: "0.1" });
    expect((await store.readPool(POOL))?.generation).toBe("0.1");
  });

  it("what was refused can be done right afterwards", async (store) => {
    const owner = await claimed(store);
    await refused(store.commit(owner, [move("i-1", "pending", "creating")], NOON), "store_conflict");
    await store.commit(owner, [create("i-1")], NOON);
    expect((await instanceOf(store, "i-1")).phase).toBe("pending");
  });

  it("nothing is taken after the end, and the end may be asked for twice", async (store) => {
    await store.close();
    await refused(store.claim(POOL, "a", NOON), "store_closed");
    await refused(store.listPools(), "store_closed");
    await store.close();
  });
}
