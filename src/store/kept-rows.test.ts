import { expect, test } from "vitest";
import { reason } from "../model/reasons.ts";
import { KeptList, KeptValue } from "./kept-rows.ts";
import { openStore } from "./store.ts";

interface Row {
  readonly id: string;
  readonly pool: string;
  readonly seq: number;
  readonly text: string;
}

const refused = new Error("the disk failed");

/** A table in memory that counts what is asked of it. */
function table() {
  const rows = new Map<string, Row>();
  const asked: string[] = [];
  const failing = new Set<string>();
  const db = { writes: 0, isInTransaction: false, writesTo: () => db.writes };
  const kept = new KeptList<Row, string>({
    db,
    table: "instances",
    all: async (pool) => {
      asked.push(`all of ${pool}`);
      return [...rows.values()].filter((row) => row.pool === pool && row.text !== "gone").toSorted((a, b) => a.seq - b.seq);
    },
    one: async (id) => {
      asked.push(id);
      if (failing.has(id)) throw refused;
      return rows.get(id);
    },
    isListed: ({ text }) => text !== "gone",
    toRecord: ({ id, text }) => `${id}=${text}`,
  });
  const write = (id: string, text: string, pool = "p") => {
    rows.set(id, { id, pool, seq: rows.get(id)?.seq ?? rows.size, text });
    db.writes += 1;
  };
  const told = (id: string, text: string, pool?: string) => {
    write(id, text, pool);
    kept.wrote(id);
  };
  return { kept, db, rows, failing, asked: () => asked.splice(0), write, told };
}

test("only rows that were written are read again, and a list in which nothing changed is the same array", async () => {
  const { kept, asked, told } = table();
  told("a", "1");
  told("b", "1");

  const first = await kept.list("p");
  expect(first).toEqual(["a=1", "b=1"]);
  expect(await kept.list("p")).toBe(first);
  expect(asked()).toEqual(["all of p"]);

  told("c", "1");
  told("a", "2");
  told("a", "3");
  told("x", "1", "q");
  expect(await kept.list("p")).toEqual(["a=3", "b=1", "c=1"]);
  expect(asked()).toEqual(["c", "a", "x"]);

  told("b", "gone");
  expect(await kept.list("p")).toEqual(["a=3", "c=1"]);
  told("b", "gone");
  const later = await kept.list("p");
  told("x", "2", "q");
  expect(await kept.list("p")).toBe(later);
});

test("after a write that nobody told of, and far behind, all is read again", async () => {
  const { kept, asked, told, write } = table();
  told("a", "1");
  await kept.list("p");
  asked();

  write("b", "1");
  expect(await kept.list("p")).toEqual(["a=1", "b=1"]);
  write("b", "2");
  told("a", "2");
  expect(await kept.list("p")).toEqual(["a=2", "b=2"]);
  expect(asked()).toEqual(["all of p", "all of p"]);

  for (let i = 0; i < 1_200; i++) told("a", `${i}`);
  expect(await kept.list("p")).toEqual(["a=1199", "b=2"]);
  expect(asked()).toEqual(["all of p"]);
});

test("a read that fails half way leaves what was known, and the next one sees all that was written", async () => {
  const { kept, failing, told } = table();
  for (const id of ["a", "b"]) told(id, "1");
  const before = await kept.list("p");
  told("b", "gone");
  told("x", "1", "q");
  failing.add("x");
  await expect(kept.list("p")).rejects.toBe(refused);
  expect(before).toEqual(["a=1", "b=1"]);

  failing.clear();
  expect(await kept.list("p")).toEqual(["a=1"]);
});

test("of a pool that was forgotten nothing is kept", async () => {
  const { kept, asked, told } = table();
  told("a", "1");
  await kept.list("p");
  asked();
  kept.forget("p");
  expect(await kept.list("p")).toEqual(["a=1"]);
  expect(asked()).toEqual(["all of p"]);
});

test("what is read inside a transaction is not kept: it may be rolled back", async () => {
  const { kept, db, rows, told } = table();
  told("a", "1");
  await kept.list("p");
  db.isInTransaction = true;
  told("a", "2");
  expect(await kept.list("p")).toEqual(["a=2"]);
  rows.set("a", { id: "a", pool: "p", seq: 0, text: "1" });
  db.isInTransaction = false;

  expect(await kept.list("p")).toEqual(["a=1"]);
});

test("a value is read again when its count changed, and inside a transaction always", async () => {
  const db = { writes: 0, isInTransaction: false };
  let reads = 0;
  const kept = new KeptValue(
    db,
    () => db.writes,
    async (pool) => `${pool} ${++reads}`,
  );

  expect([await kept.get("p"), await kept.get("p"), await kept.get("q")]).toEqual(["p 1", "p 1", "q 2"]);
  db.writes += 1;
  expect([await kept.get("p"), await kept.get("p")]).toEqual(["p 3", "p 3"]);
  db.isInTransaction = true;
  db.writes += 1;
  expect([await kept.get("p"), await kept.get("p")]).toEqual(["p 4", "p 5"]);
});

test("it is known how many writes nobody told of", () => {
  const { kept, told, write } = table();
  told("a", "1");
  expect(kept.untoldWrites).toBe(0);
  write("a", "2");
  expect(kept.untoldWrites).toBe(1);
  told("a", "3");
  told("b", "1");
  expect(kept.untoldWrites).toBe(1);
});

test("what is written of one pool leaves what was read of another one as it is", async () => {
  const store = await openStore(":memory:");
  const first = await store.claim("shop/a", "controller", 1);
  const second = await store.claim("shop/b", "controller", 1);
  const reasons = [{ subject: "", reason: reason("nothing_to_do"), since: 1 }];
  await store.commit(first, [{ kind: "set_reasons", reasons }], 1);
  const before = await store.readPool("shop/a");
  await store.commit(second, [{ kind: "set_reasons", reasons }], 2);
  const after = await store.readPool("shop/a");
  expect(after?.reasons).toBe(before?.reasons);

  await store.commit(first, [{ kind: "set_reasons", reasons: [] }], 3);
  expect((await store.readPool("shop/a"))?.reasons).toEqual([]);
  await store.close();
});
