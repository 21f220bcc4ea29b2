import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { claimed, create, NOON, POOL, recordStep } from "../../test/contracts/store-fixtures.ts";
import { PostgresCluster } from "../../test/postgres/cluster.ts";
import { EXPANDS } from "../../test/postgres/next-release.ts";
import { COLUMNS, TABLE_NAMES } from "./columns.ts";
import { MIGRATIONS } from "./migrations/index.ts";
import type { Migration } from "./migrations/migration.ts";
import { openStore } from "./store.ts";

const CONTRACTS: Migration = {
  number: MIGRATIONS.length + 2,
  contracts: true,
  statements: ["ALTER TABLE gateways DROP COLUMN registered_at"],
};

let cluster: PostgresCluster;
let admin: pg.Client;
beforeAll(async () => {
  cluster = await PostgresCluster.start({ settings: { fsync: "on" } });
  admin = new pg.Client({ host: "127.0.0.1", port: cluster.port, user: "relevo", database: "postgres" });
  await admin.connect();
});
afterAll(async () => {
  await admin?.end();
  await cluster?.stop();
});

let schemas = 0;
const freshUrl = () => cluster.url(`migrated_${schemas++}`, "&pool_size=4");

test("the tables are those of SQLite, with all of their columns", async () => {
  await (await openStore(cluster.url("shape"))).close();
  for (const table of TABLE_NAMES) {
    const { rows } = await admin.query(
      "select column_name from information_schema.columns where table_schema = 'shape' and table_name = $1",
      [table],
    );
    expect(rows.map((row) => String(row.column_name)).toSorted()).toEqual(COLUMNS[table].columns.toSorted());
  }
});

test("replicas that start at once on an empty database migrate it once", async () => {
  const url = freshUrl();
  const stores = await Promise.all(Array.from({ length: 5 }, () => openStore(url)));
  const claims = await Promise.all(stores.map((store, index) => store.claim(POOL, `replica-${index}`, NOON)));
  expect(claims.map(({ epoch }) => epoch).toSorted()).toEqual(["0.1", "0.2", "0.3", "0.4", "0.5"]);
  await Promise.all(stores.map((store) => store.close()));
});

test("an old replica goes on without one error while a newer one adds columns under it, and a new one of the old release starts after that", async () => {
  const url = freshUrl();
  const old = await openStore(url);
  const owner = await claimed(old);
  let isOver = false;
  let commits = 0;
  const busy = (async () => {
    for (; !isOver; commits++) {
      await old.commit(owner, [create(`i-${commits}`), recordStep(`s-${commits}`)], NOON);
      await old.readPool(POOL);
      await old.listNotices(10);
      await old.listGateways();
    }
  })();
  await expect.poll(() => commits, { timeout: 20_000 }).toBeGreaterThan(3);
  const newer = await openStore({ path: url, migrations: [...MIGRATIONS, EXPANDS] });
  const before = commits;
  await expect.poll(() => commits, { timeout: 20_000 }).toBeGreaterThan(before + 3);
  const again = await openStore(url);
  isOver = true;
  await busy;
  expect((await newer.readPool(POOL))?.instances).toHaveLength(commits);
  expect((await again.describeStore()).schema).toBe(EXPANDS.number);
  for (const store of [old, newer, again]) await store.close();
});

test("after a step that took something away the old release is refused, at its start and on each new connection, and changes nothing", async () => {
  const url = freshUrl();
  const old = await openStore(url);
  await (await openStore({ path: url, migrations: [...MIGRATIONS, EXPANDS, CONTRACTS] })).close();
  await expect(openStore(url)).rejects.toMatchObject({
    code: "store_from_newer_version",
    found: CONTRACTS.number,
    allowed: `schema 0 to ${MIGRATIONS.length}`,
  });
  await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'relevo'");
  await expect
    .poll(async () => (await Promise.allSettled([old.listPools()]))[0])
    .toMatchObject({
      status: "rejected",
      reason: { code: "store_from_newer_version" },
    });
  await old.close();
});

test("a migration that fails leaves nothing of itself", async () => {
  const url = freshUrl();
  await (await openStore(url)).close();
  const broken = {
    number: MIGRATIONS.length + 1,
    statements: ["CREATE TABLE later (x TEXT) STRICT", "CREATE TABLE later (x TEXT) STRICT"],
  };
  await expect(openStore({ path: url, migrations: [...MIGRATIONS, broken] })).rejects.toThrow("already exists");
  const store = await openStore(url);
  expect((await store.describeStore()).schema).toBe(MIGRATIONS.length);
  await store.close();
});

test("a migration that meets a transaction which took its locks in another order is done anew", async () => {
  const url = freshUrl();
  await (await openStore(url)).close();
  const schema = /schema=(\w+)/.exec(url)?.[1] ?? "";
  // Of the two the migration looks for a circle, once, when it has waited for so long: by then it must be closed.
  await admin.query("alter role relevo set deadlock_timeout = '700ms'");
  const options = `-c search_path=${schema} -c deadlock_timeout=30s`;
  const other = new pg.Client({ host: "127.0.0.1", port: cluster.port, user: "relevo", database: "postgres", options });
  await other.connect();
  await other.query("begin; select 1 from instances");
  const added = ["pools", "instances"].map((table) => `ALTER TABLE ${table} ADD COLUMN later INTEGER`);
  const opened = openStore({ path: url, migrations: [...MIGRATIONS, { number: MIGRATIONS.length + 1, statements: added }] });
  const waiting = () => admin.query("select count(*)::int as n from pg_locks where not granted").then(({ rows }) => rows[0]?.n);
  await expect.poll(waiting, { timeout: 5_000, interval: 5 }).toBe(1);
  await other.query("select 1 from pools");
  await other.query("commit");
  await other.end();
  const store = await opened;
  await admin.query("alter role relevo reset deadlock_timeout");
  expect((await store.describeStore()).schema).toBe(MIGRATIONS.length + 1);
  await store.close();
});

test("a schema with tables of another program is refused and left as it is", async () => {
  await admin.query("create schema theirs; create table theirs.users (id int)");
  await expect(openStore(cluster.url("theirs"))).rejects.toMatchObject({ code: "store_corrupt" });
});

test("a role that may only use the tables needs no more, once the schema is there", async () => {
  await (await openStore(cluster.url("granted"))).close();
  await admin.query(
    `create role plain login; grant usage on schema granted to plain; grant select, insert, update, delete on all tables in schema granted to plain;
     grant usage on all sequences in schema granted to plain; revoke update, insert, delete on granted.schema_migrations from plain`,
  );
  const url = cluster.url("granted").replace("relevo@", "plain@");
  const store = await openStore(url);
  await store.commit(await claimed(store), [create("i-1")], NOON);
  await store.close();
  await expect(openStore({ path: url, migrations: [...MIGRATIONS, EXPANDS] })).rejects.toMatchObject({
    code: "store_unavailable",
    todo: expect.stringContaining("relevo store migrate"),
  });
});

test("whether a second disk confirms is told; a commit that no standby confirmed is not said to be kept", async () => {
  const url = `${freshUrl()}&statement_timeout_ms=300`;
  const store = await openStore(url);
  const owner = await claimed(store);
  expect((await store.describeStore()).synchronous).toBe("disk");
  await admin.query("alter system set synchronous_standby_names = 'second'");
  await admin.query("select pg_reload_conf()");
  try {
    await expect.poll(async () => (await store.describeStore()).synchronous, { timeout: 5_000 }).toBe("standby_missing");
    await expect(store.commit(owner, [create("i-1")], NOON)).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("did not say whether it kept"),
    });
  } finally {
    await admin.query("set synchronous_commit = local");
    await admin.query("alter system reset synchronous_standby_names");
    await admin.query("select pg_reload_conf()");
  }
  expect((await store.readPool(POOL))?.instances.map(({ id }) => id)).toEqual(["i-1"]);
  await store.close();
});
