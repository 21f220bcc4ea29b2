import { CompiledQuery } from "kysely";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { RelevoError } from "../kernel/errors.ts";
import { GroupCommit } from "./group-commit.ts";
import type { Schema } from "./schema.ts";
import { SqliteKysely } from "./sqlite-dialect.ts";

/** Turns at a real database whose statements can be made to fail, and all statements it was given. */
function turnsAt(fails: (sql: string) => number | undefined = () => undefined) {
  const database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE facts (name TEXT PRIMARY KEY) STRICT");
  const db = new SqliteKysely<Schema>(database);
  const statements: string[] = [];
  const faulty = {
    run: <R>(query: CompiledQuery<R>) => {
      statements.push(query.sql);
      const errcode = fails(query.sql);
      if (errcode !== undefined) throw Object.assign(new Error("injected"), { code: "ERR_SQLITE_ERROR", errcode });
      return db.run(query);
    },
  };
  const turns = new GroupCommit({ db: faulty, inTransaction: () => database.isTransaction, gather: () => Promise.resolve() });
  const add = (name: string) => turns.write(async () => faulty.run(CompiledQuery.raw("insert into facts values (?)", [name])));
  const facts = () =>
    database
      .prepare("SELECT name FROM facts ORDER BY name")
      .all()
      .map(({ name }) => name);
  return { turns, add, facts, statements };
}

const codes = (results: readonly PromiseSettledResult<unknown>[]) =>
  results.map((result) => (result.status === "fulfilled" ? "done" : (result.reason.code ?? "error")));

test("writers that wait share one transaction, each in a savepoint of its own", async () => {
  const { add, facts, statements } = turnsAt();

  const results = await Promise.allSettled([add("a"), add("a"), add("b")]);

  expect(codes(results)).toEqual(["done", "ERR_SQLITE_ERROR", "done"]);
  expect(facts()).toEqual(["a", "b"]);
  expect(statements).toEqual([
    "begin immediate",
    "savepoint writer",
    "insert into facts values (?)",
    "release writer",
    "savepoint writer",
    "insert into facts values (?)",
    "rollback to writer",
    "release writer",
    "savepoint writer",
    "insert into facts values (?)",
    "release writer",
    "commit",
  ]);
});

test("nobody is answered before the commit; when it fails everybody is told so, those that were refused too", async () => {
  let isFull = true;
  const { turns, add, facts } = turnsAt((sql) => (sql === "commit" && isFull ? 13 : undefined));
  const refusal = turns.write(async () => {
    throw new RelevoError("store_conflict", "seen in rows that did not last", { class: "conflict" });
  });

  expect(codes(await Promise.allSettled([add("a"), refusal, add("b")]))).toEqual([
    "store_unavailable",
    "store_unavailable",
    "store_unavailable",
  ]);
  expect(facts()).toEqual([]);

  isFull = false;
  expect(codes(await Promise.allSettled([add("a")]))).toEqual(["done"]);
  expect(facts()).toEqual(["a"]);
});

for (const [errcode, code] of [
  [10, "store_unavailable"],
  [10 | (4 << 8), "store_unavailable"],
  [13, "store_unavailable"],
  [5, "store_unavailable"],
  [11, "store_corrupt"],
  [26, "store_corrupt"],
] as const) {
  test(`a statement that fails with SQLite's code ${errcode} ends the transaction as ${code}`, async () => {
    let count = 0;
    const { add, facts, statements } = turnsAt((sql) => (sql.startsWith("insert") && ++count === 2 ? errcode : undefined));

    expect(codes(await Promise.allSettled([add("a"), add("b"), add("c")]))).toEqual([code, code, code]);
    expect(statements.at(-1)).toBe("rollback");
    expect(facts()).toEqual([]);
    expect(codes(await Promise.allSettled([add("d")]))).toEqual(["done"]);
  });
}

test("a transaction that cannot begin fails its writers alone", async () => {
  let isLocked = true;
  const { add, turns, facts } = turnsAt((sql) => (sql === "begin immediate" && isLocked ? 5 : undefined));
  const [write, read] = await Promise.allSettled([add("a"), turns.read(async () => facts())]);
  expect([write.status, read]).toEqual(["rejected", { status: "fulfilled", value: [] }]);
  isLocked = false;
  await add("a");
});

test("readers see what was committed before them and nothing that is not", async () => {
  const { turns, add, facts } = turnsAt();
  const seen = await Promise.all([
    turns.read(async () => facts()),
    add("a"),
    turns.read(async () => facts()),
    turns.read(async () => facts()),
  ]);
  expect([seen[0], seen[2], seen[3]]).toEqual([["a"], ["a"], ["a"]]);
});

test("more callers than can be served are told to come back", async () => {
  const { add, turns } = turnsAt();
  const waiting = Array.from({ length: 10_001 }, (_, index) => add(String(index)));
  expect(codes(await Promise.allSettled(waiting)).filter((code) => code !== "done")).toEqual(["store_unavailable"]);
  await turns.close();
});

test("what waits when the end is asked for is still done, what comes later is refused", async () => {
  const { turns, add, facts } = turnsAt();
  const first = add("a");
  const end = turns.close();
  expect(codes(await Promise.allSettled([add("b"), first, end]))).toEqual(["store_closed", "done", "done"]);
  expect(facts()).toEqual(["a"]);
});
