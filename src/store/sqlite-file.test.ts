import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { claimed, create, DAY, NOON, notice, picture, POOL, recordStep, refused } from "../../test/contracts/store-fixtures.ts";
import { MIGRATIONS } from "./migrations/index.ts";
import { openSqliteFile } from "./sqlite-file.ts";
import { openStore } from "./store.ts";

const NEWEST = MIGRATIONS.length;

let folder = "";
let path = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relevo-file-"));
  path = join(folder, "deep", "relevo.db");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A store with enough in it to fill more than its schema's pages. */
async function fill(): Promise<void> {
  const store = await openStore({ path });
  const owner = await claimed(store);
  await store.commit(
    owner,
    Array.from({ length: 300 }, (_, index) => create(`i-${index}`)),
    NOON,
  );
  await store.close();
}

test("what was committed is there after a clean end", async () => {
  await fill();
  const store = await openStore({ path });
  expect((await store.readPool(POOL))?.instances).toHaveLength(300);
  expect((await claimed(store)).epoch).toBe("0.2");
  await store.close();
});

test("the file has a log, full syncs, foreign keys and one owner", () => {
  const { database, close } = openSqliteFile({ path });
  const pragma = (name: string): unknown => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0];
  expect(["journal_mode", "synchronous", "foreign_keys", "locking_mode"].map(pragma)).toEqual(["wal", 2, 1, "exclusive"]);
  close();
});

test("a full disk refuses a commit as a whole, again and again, and what fits is taken as soon as there is space", async () => {
  const store = await openStore({ path, maxPages: 150 });
  const owner = await claimed(store);
  for (let number = 0; number < 4; number++) await store.saveNotice(notice(`n-${number}`, { body: "x".repeat(60_000) }));

  const big = { payload: { text: "y".repeat(20_000) } };
  let recorded = 0;
  for (; recorded < 100; recorded++) {
    const [result] = await Promise.allSettled([store.commit(owner, [create(`i-${recorded}`), recordStep(`s-${recorded}`, big)], NOON)]);
    if (result.status === "fulfilled") continue;
    expect(result.reason).toMatchObject({ name: "RelevoError", code: "store_unavailable", class: "retryable" });
    break;
  }
  expect(recorded).toBeGreaterThan(2);
  const full = await picture(store);
  await refused(store.commit(owner, [create("i-again"), recordStep("s-again", big)], NOON), "store_unavailable");
  expect(await picture(store)).toEqual(full);
  expect((await store.readPool(POOL))?.instances).toHaveLength(recorded);
  expect((await store.readPool(POOL))?.openSteps).toHaveLength(recorded);

  expect(await store.collect(NOON + 8 * DAY)).toBe(4);
  await store.commit(owner, [create("i-again"), recordStep("s-again", big)], NOON);
  await store.close();

  const reopened = await openStore({ path });
  expect((await reopened.readPool(POOL))?.openSteps).toHaveLength(recorded + 1);
  await reopened.close();
});

test("commits that wait together when the disk is full are each there as a whole, or refused", async () => {
  const store = await openStore({ path, maxPages: 100 });
  const owner = await claimed(store);
  const big = { payload: { text: "y".repeat(10_000) } };

  const results: PromiseSettledResult<unknown>[] = [];
  for (let round = 0; round < 10; round++) {
    const ids = Array.from({ length: 5 }, (_, index) => `${round}-${index}`);
    results.push(
      ...(await Promise.allSettled(ids.map((id) => store.commit(owner, [create(`i-${id}`), recordStep(`s-${id}`, big)], NOON)))),
    );
  }

  const done = results.filter(({ status }) => status === "fulfilled").length;
  expect(done).toBeGreaterThan(0);
  expect(done).toBeLessThan(50);
  expect((await store.readPool(POOL))?.instances).toHaveLength(done);
  expect((await store.readPool(POOL))?.openSteps).toHaveLength(done);
  await store.close();
});

test("a file that is no store is refused as corrupt and left as it is", async () => {
  mkdirSync(join(folder, "deep"));
  const garbage = Buffer.alloc(8192, "not a database ");
  writeFileSync(path, garbage);

  await expect(openStore({ path })).rejects.toMatchObject({
    name: "RelevoError",
    code: "store_corrupt",
    todo: "restore the newest backup of the file",
  });
  expect(readFileSync(path).equals(garbage)).toBe(true);
});

test("a database of another program is refused and left as it is", async () => {
  mkdirSync(join(folder, "deep"));
  const foreign = new DatabaseSync(path);
  foreign.exec("CREATE TABLE theirs (x)");
  foreign.close();
  const before = readFileSync(path);

  await refused(openStore({ path }), "store_corrupt");
  expect(readFileSync(path).equals(before)).toBe(true);
});

test("a damaged page is found at the start", async () => {
  await fill();
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.fill(0xa5, 4096 * 12, 4096 * 24));

  await refused(openStore({ path }), "store_corrupt");
});

test("a file that lost its end is found at the start", async () => {
  await fill();
  truncateSync(path, 4096 * 20);

  await refused(openStore({ path }), "store_corrupt");
});

test("a path that cannot be opened is unavailable", async () => {
  mkdirSync(path, { recursive: true });
  await refused(openStore({ path }), "store_unavailable");
  await refused(openStore({ path: "/dev/null/relevo.db" }), "store_unavailable");
});

test("a store that a newer version only added to is read and written by this one, and by the newer one again", async () => {
  const next = { number: NEWEST + 1, statements: ["ALTER TABLE steps ADD COLUMN later TEXT", "CREATE TABLE later (x TEXT) STRICT"] };
  openSqliteFile({ path, migrations: [...MIGRATIONS, next] }).close();

  const store = await openStore({ path });
  await store.commit(await claimed(store), [create("i-1"), recordStep("s-1")], NOON);
  expect((await store.describeStore()).schema).toBe(NEWEST + 1);
  await store.close();

  const { database, close } = openSqliteFile({ path, migrations: [...MIGRATIONS, next] });
  expect(database.prepare("SELECT id, later FROM steps").all()).toEqual([{ id: "s-1", later: null }]);
  close();
});

test("a store from which a newer version took something away is refused and left as it is", async () => {
  const next = { number: NEWEST + 1, contracts: true, statements: ["CREATE TABLE later (x TEXT) STRICT"] };
  openSqliteFile({ path, migrations: [...MIGRATIONS, next] }).close();
  const before = readFileSync(path);

  await expect(openStore({ path })).rejects.toMatchObject({
    name: "RelevoError",
    code: "store_from_newer_version",
    found: NEWEST + 1,
    allowed: `schema 0 to ${NEWEST}`,
  });
  expect(readFileSync(path).equals(before)).toBe(true);
  openSqliteFile({ path, migrations: [...MIGRATIONS, next] }).close();
});

test("a migration is applied once, as a whole, to a store that is there", async () => {
  await fill();
  const broken = { number: NEWEST + 1, statements: ["CREATE TABLE later (x TEXT) STRICT", "CREATE TABLE later (x TEXT) STRICT"] };
  expect(() => openSqliteFile({ path, migrations: [...MIGRATIONS, broken] })).toThrow("already exists");

  const next = { number: NEWEST + 1, statements: ["CREATE TABLE later (x TEXT) STRICT"] };
  for (let start = 0; start < 2; start++) openSqliteFile({ path, migrations: [...MIGRATIONS, next] }).close();
  const { database, close } = openSqliteFile({ path, migrations: [...MIGRATIONS, next] });
  expect(database.prepare("SELECT count(*) AS instances FROM instances").get()).toEqual({ instances: 300 });
  close();
});
