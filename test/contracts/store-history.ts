/** The store's contract: notices, gateways, lists and what is forgotten. */
import { expect } from "vitest";
import type { Store } from "../../src/store/port.ts";
import {
  claimed,
  create,
  DAY,
  evidenceOf,
  instanceIn,
  move,
  NOON,
  notice,
  POOL,
  recordStep,
  refused,
  walk,
  type StoreTest,
} from "./store-fixtures.ts";

export function storeHistoryContract(it: StoreTest): void {
  notices(it);
  lists(it);
  attempts(it);
  forgetting(it);
}

function notices(it: StoreTest): void {
  it("the same notice of the same source is saved once, and stays as it was", async (store) => {
    const first = notice("n-1", { dedupeKey: "k", deadline: NOON + 9, reason: "spot", machineIds: ["i-1", "i-2"], body: '{"é":1}' });
    expect(await store.saveNotice(first)).toBe(true);
    expect(await store.saveNotice(notice("n-2", { dedupeKey: "k", body: "other" }))).toBe(false);
    expect(await store.saveNotice(first)).toBe(false);
    expect(await store.saveNotice(notice("n-3", { dedupeKey: "k", source: "karpenter", receivedAt: NOON + 1 }))).toBe(true);
    await refused(store.saveNotice(notice("n-1", { dedupeKey: "k2" })), "store_conflict");

    expect(await store.listNotices(10)).toEqual([notice("n-3", { dedupeKey: "k", source: "karpenter", receivedAt: NOON + 1 }), first]);
    expect(await store.listNotices(1)).toHaveLength(1);
  });

  it("a key of any length tells the same notice from another one", async (store) => {
    const long = (end: string) => "k".repeat(10_000) + end;
    expect(await store.saveNotice(notice("n-1", { dedupeKey: long("a") }))).toBe(true);
    expect(await store.saveNotice(notice("n-2", { dedupeKey: long("a") }))).toBe(false);
    expect(await store.saveNotice(notice("n-1", { dedupeKey: long("a") }))).toBe(false);
    expect(await store.saveNotice(notice("n-3", { dedupeKey: long("b") }))).toBe(true);
    expect((await store.listNotices(10)).map(({ id }) => id)).toEqual(["n-3", "n-1"]);
  });

  it("a zero byte in a key or a body, which PostgreSQL refuses, is kept as a sign for what cannot be kept", async (store) => {
    expect(await store.saveNotice(notice("n-1", { dedupeKey: "a\0b", body: "x\0y" }))).toBe(true);
    expect(await store.saveNotice(notice("n-1", { dedupeKey: "a\0b", body: "x\0y" }))).toBe(false);
    expect((await store.listNotices(10)).map(({ dedupeKey, body }) => [dedupeKey, body])).toEqual([["a\ufffdb", "x\ufffdy"]]);
  });

  it("a body of more than 64 KiB is cut at a character and marked", async (store) => {
    await store.saveNotice(notice("n-1", { body: `x${"é".repeat(40_000)}` }));
    await store.saveNotice(notice("n-2", { body: "y".repeat(65_536) }));

    const [exact, cut] = await store.listNotices(10);
    expect(exact?.body).toBe("y".repeat(65_536));
    expect(cut?.body).toMatch(/^xé+…\[cut\]$/);
    expect(Buffer.byteLength(cut?.body ?? "")).toBeLessThanOrEqual(65_536);
    expect(Buffer.byteLength(cut?.body ?? "")).toBeGreaterThan(65_530);
  });

  it("a notice is open until it came to an end or is too old", async (store) => {
    await store.saveNotice(notice("n-old", { receivedAt: NOON - 1 }));
    for (const [index, outcome] of [
      "received",
      "unknown_machine",
      "other_cluster",
      "duplicate",
      "malformed",
      "node_gone",
      "ignored",
      "matched",
    ].entries())
      await store.saveNotice(notice(`n-${outcome}`, { outcome, receivedAt: NOON + index }));
    await store.saveNotice(notice("n-settled", { receivedAt: NOON + 9 }));
    await store.settleNotice("n-settled", "matched");

    expect((await store.openNotices(NOON)).map(({ id }) => id)).toEqual(["n-received", "n-unknown_machine"]);
    expect((await store.listNotices(1))[0]).toEqual(notice("n-settled", { receivedAt: NOON + 9, outcome: "matched" }));
    await refused(store.settleNotice("n-none", "matched"), "store_conflict");
  });

  it("of open notices the ids of all are read, and the rows of those that are not known, whenever they were received", async (store) => {
    for (const [index, id] of ["n-1", "n-2", "n-3", "n-4"].entries()) await store.saveNotice(notice(id, { receivedAt: NOON + index }));
    await store.settleNotice("n-3", "matched");
    const beside = async (...known: readonly string[]) => {
      const { ids, unknown } = await store.openNoticesBeside(NOON, new Set(known));
      return [ids, unknown.map(({ id }) => id)];
    };

    expect(await beside()).toEqual([
      ["n-1", "n-2", "n-4"],
      ["n-1", "n-2", "n-4"],
    ]);
    expect(await beside("n-2", "n-3")).toEqual([
      ["n-1", "n-2", "n-4"],
      ["n-1", "n-4"],
    ]);
    expect(await beside("n-1", "n-2", "n-4")).toEqual([["n-1", "n-2", "n-4"], []]);
    expect((await store.openNoticesBeside(NOON, new Set(["n-1", "n-2"]))).unknown).toEqual([notice("n-4", { receivedAt: NOON + 3 })]);
    expect(await store.openNoticesBeside(NOON + 4, new Set())).toEqual({ ids: [], unknown: [] });
  });
}

function lists(it: StoreTest): void {
  it("a gateway replica is registered until it is removed", async (store) => {
    await store.registerGateway("g-2", NOON);
    await store.registerGateway("g-1", NOON + 1);
    await store.registerGateway("g-2", NOON + 2);
    expect(await store.listGateways()).toEqual([
      { id: "g-2", registeredAt: NOON },
      { id: "g-1", registeredAt: NOON + 1 },
    ]);

    await store.removeGateway("g-2");
    await store.removeGateway("g-none");
    expect(await store.listGateways()).toEqual([{ id: "g-1", registeredAt: NOON + 1 }]);
  });

  it("lists show the newest first, as many as asked for, of one pool", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, [create("i-1"), create("i-2"), recordStep("s-1"), recordStep("s-2")], NOON);
    await store.commit(owner, [create("i-3"), recordStep("s-3")], NOON);
    const other = await claimed(store, "shop/other");
    await store.commit(other, [create("i-4"), recordStep("s-4", { pool: "shop/other" })], NOON);

    expect((await store.listInstances(POOL, 2)).map(({ id }) => id)).toEqual(["i-3", "i-2"]);
    expect((await store.listSteps(POOL, 2)).map(({ id }) => id)).toEqual(["s-3", "s-2"]);
    expect((await store.listSteps(POOL, 100)).map(({ id }) => id)).toEqual(["s-3", "s-2", "s-1"]);
    expect(await store.listSteps(POOL, 0)).toEqual([]);
    expect((await store.readPool(POOL))?.instances.map(({ id }) => id)).toEqual(["i-1", "i-2", "i-3"]);
    expect((await store.readPool(POOL))?.openSteps.map(({ id }) => id)).toEqual(["s-1", "s-2", "s-3"]);
  });
}

/** Calls until a batch is empty. */
async function collectAll(store: Store, now: number): Promise<number> {
  let total = 0;
  for (let batch = await store.collect(now); batch > 0; batch = await store.collect(now)) total += batch;
  return total;
}

function attempts(it: StoreTest): void {
  it("the attempts of one step are listed without its neighbours", async (store) => {
    const owner = await claimed(store);
    for (const id of ["cordon/a", "cordon/a#2", "cordon/ab", "cordon/a!", "cordon/a$", "cordon/a#10", "cordon/b", "cordon"])
      await store.commit(owner, [recordStep(id)], NOON);
    const ids = async (limit: number, base: string, pool = POOL) => (await store.listSteps(pool, limit, base)).map(({ id }) => id);

    expect(await ids(10, "cordon/a")).toEqual(["cordon/a#10", "cordon/a#2", "cordon/a"]);
    expect(await ids(2, "cordon/a")).toEqual(["cordon/a#10", "cordon/a#2"]);
    expect(await ids(10, "cordon/none")).toEqual([]);
    expect(await ids(10, "cordon/a", "shop/other")).toEqual([]);
  });
}

function forgetting(it: StoreTest): void {
  it("notices go after 7 days, ended steps after 30, open ones never", async (store) => {
    const owner = await claimed(store);
    await store.saveNotice(notice("n-1"));
    await store.commit(owner, [recordStep("s-done"), recordStep("s-held"), recordStep("s-unknown")], NOON - 90 * DAY);
    await store.commit(owner, [{ kind: "end_step", step: "s-done", state: "done", outcome: "x" }], NOON);
    await store.commit(owner, [{ kind: "end_step", step: "s-held", state: "held", outcome: "x" }], NOON - 80 * DAY);

    expect(await collectAll(store, NOON + 7 * DAY)).toBe(0);
    expect(await collectAll(store, NOON + 7 * DAY + 1)).toBe(1);
    expect(await store.listNotices(10)).toEqual([]);
    expect(await collectAll(store, NOON + 30 * DAY)).toBe(0);
    expect(await collectAll(store, NOON + 30 * DAY + 1)).toBe(1);
    expect((await store.listSteps(POOL, 10)).map(({ id }) => id)).toEqual(["s-unknown", "s-held"]);
  });

  it("an instance goes 30 days after its deletion with its evidence and its blueprint; the counts of losses stay", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, [...instanceIn("retired", "i-1"), create("i-2", { blueprintHash: "b2" })], NOON - 60 * DAY);
    await store.commit(
      owner,
      [
        { kind: "record_evidence", id: "e-1", evidence: evidenceOf("i-1") },
        { kind: "record_evidence", id: "e-2", evidence: evidenceOf("i-2") },
        { kind: "count_loss", instance: "i-1", loss: "forced", obligations: 2, seal: "forced" },
      ],
      NOON - 60 * DAY,
    );
    await store.commit(owner, [move("i-1", "retired", "deleted")], NOON);

    expect(await collectAll(store, NOON + 30 * DAY)).toBe(0);
    await collectAll(store, NOON + 30 * DAY + 1);

    expect((await store.listInstances(POOL, 10)).map(({ id }) => id)).toEqual(["i-2"]);
    expect(await Promise.all(["i-1", "i-2"].map((id) => store.findInstance(POOL, id)))).toMatchObject([undefined, { id: "i-2" }]);
    expect((await store.listEvidence(POOL, 10)).map(({ id }) => id)).toEqual(["e-2"]);
    expect(await store.getBlueprint("b1")).toBeUndefined();
    expect(await store.getBlueprint("b2")).toEqual({ objects: [] });
    expect(await store.countLosses(POOL)).toEqual([{ loss: "forced", instances: 1, obligations: 2, assumedSeals: 0 }]);
  });

  it("collection works in small batches until nothing is left", async (store) => {
    const owner = await claimed(store);
    for (let round = 0; round < 12; round++) {
      const ids = Array.from({ length: 100 }, (_, index) => `${round}-${index}`);
      await store.commit(
        owner,
        ids.flatMap((id) => [create(`i-${id}`), ...walk(`i-${id}`, ["failed", "retiring", "retired", "deleted"])]),
        NOON,
      );
    }

    const batches: number[] = [];
    do batches.push(await store.collect(NOON + 31 * DAY));
    while (batches.at(-1) !== 0);

    expect(Math.max(...batches)).toBeLessThanOrEqual(500);
    expect(batches.reduce((sum, batch) => sum + batch, 0)).toBe(1_201); // the blueprint too
    expect(await store.listInstances(POOL, 10_000)).toEqual([]);
  });
}
