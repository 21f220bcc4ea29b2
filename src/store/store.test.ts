import { DatabaseSync } from "node:sqlite";
import type { CompiledQuery, QueryResult } from "kysely";
import { expect, test } from "vitest";
import { claimed, create, NOON, POOL, recordStep } from "../../test/contracts/store-fixtures.ts";
import { MIGRATIONS } from "./migrations/index.ts";
import { sqliteStatements } from "./migrations/migration.ts";
import { EvidenceRepository } from "./evidence.ts";
import { InstanceRepository } from "./instances.ts";
import { NoticeRepository } from "./notices.ts";
import { PoolRepository } from "./pools.ts";
import type { Schema } from "./schema.ts";
import { SqliteKysely } from "./sqlite-dialect.ts";
import { openSqliteFile } from "./sqlite-file.ts";
import { StepRepository } from "./steps.ts";
import { openStore } from "./store.ts";
import { WorkloadRepository } from "./workloads.ts";

test("in memory every call settles by microtasks alone, in the order of the calls, so that the simulator can drain it", async () => {
  const store = await openStore({ path: ":memory:" });
  const owner = await claimed(store);
  const settled: string[] = [];
  const note = (name: string) => () => settled.push(name);

  void store.commit(owner, [create("i-1"), recordStep("s-1")], NOON).then(note("first"));
  void store.commit(owner, [create("i-1")], NOON).catch(note("refused"));
  void store.readPool(POOL).then((rows) => settled.push(`read ${rows?.instances.length}`));
  void store.commit(owner, [create("i-2")], NOON).then(note("last"));
  await drainMicrotasks();

  expect(settled).toEqual(["first", "refused", "last", "read 2"]);
  await store.close();
});

/** Long enough for any chain of ours, and not one turn of the event loop. */
async function drainMicrotasks(): Promise<void> {
  for (let count = 0; count < 2_000; count++) await Promise.resolve();
}

test("after the era rose, epochs and generations are above all that the former era gave", async () => {
  const { database } = openSqliteFile({ path: ":memory:" });
  const pools = new PoolRepository(new SqliteKysely<Schema>(database));
  expect(await pools.claim(POOL, "controller-a", NOON)).toBe("0.1");
  expect(await pools.nextGeneration(POOL)).toBe("0.1");

  database.exec("UPDATE meta SET value = '3' WHERE name = 'era'");

  expect(await pools.claim(POOL, "controller-a", NOON)).toBe("3.2");
  expect(await pools.nextGeneration(POOL)).toBe("3.2");
  expect(await pools.claim("shop/other", "controller-a", NOON)).toBe("3.1");
});

test("evidence cannot be changed even by a fault of ours (I3)", async () => {
  const { database } = openSqliteFile({ path: ":memory:" });
  database.exec("PRAGMA foreign_keys = OFF");
  database.exec(
    "INSERT INTO evidence (id, pool, instance, incarnation, loss, reason, first_seen, epoch_era, epoch_counter) VALUES ('e', 'p', 'i', 0, 'forced', 'node_lost', 0, 0, 1)",
  );
  expect(() => database.exec("UPDATE evidence SET loss = 'voluntary'")).toThrow("evidence never changes");
});

test("a tombstone can neither fall nor go, even by a fault of ours (I2)", () => {
  const { database } = openSqliteFile({ path: ":memory:" });
  const insert = (ordinal: number, holder: string) =>
    database.exec(`INSERT INTO workloads VALUES ('p', ${ordinal}, 1, 5, 1, 5, '${holder}', 1, 'boot', 0, 0)`);
  insert(0, "i-1");
  for (const [fall, what] of [
    ["min_counter = 4", "a writer epoch never falls"],
    ["min_era = 0, min_counter = 99", "a writer epoch never falls"],
    ["writer_counter = 4", "a writer epoch never falls"],
    ["holder = NULL", "CHECK constraint failed"],
  ] as const)
    expect(() => database.exec(`UPDATE workloads SET ${fall}`)).toThrow(what);
  expect(() => database.exec("DELETE FROM workloads")).toThrow("a tombstone is kept for ever");
  expect(() => insert(1, "i-1"), "one instance, one lease").toThrow("UNIQUE constraint failed");
  database.exec("UPDATE workloads SET min_era = 2, min_counter = 0, writer_counter = 6, renewals = 1");
});

test("no query reads a pool's whole history, however long it is", async () => {
  const database = new DatabaseSync(":memory:");
  for (const migration of MIGRATIONS) for (const statement of sqliteStatements(migration)) database.exec(statement);
  const statements: string[] = [];
  class SpiedKysely extends SqliteKysely<Schema> {
    override run<R>(query: CompiledQuery<R>): QueryResult<R> {
      statements.push(query.sql);
      return super.run(query);
    }
  }
  const db = new SpiedKysely(database);
  const [workloads, instances, evidence, steps, notices] = [
    new WorkloadRepository(db),
    new InstanceRepository(db),
    new EvidenceRepository(db),
    new StepRepository(db),
    new NoticeRepository(db),
  ];
  /** Of the last statements that a query is made of. */
  const planOf = async (query: Promise<unknown>, last = 1) => {
    await query;
    const plans = statements.slice(-last).map((statement) => database.prepare(`EXPLAIN QUERY PLAN ${statement}`).all());
    return plans.flat().map(({ detail }) => detail);
  };

  expect(await planOf(instances.listLiving(POOL))).toEqual(["SEARCH instances USING INDEX instances_living (pool=?)"]);
  expect(await planOf(instances.listFailures(POOL))).toEqual(["SEARCH instances USING INDEX instances_failed (pool=? AND failed_at>?)"]);
  expect(await planOf(instances.list(POOL, 10))).toEqual(["SEARCH instances USING INDEX instances_of_pool (pool=?)"]);
  expect(await planOf(evidence.listLiving(POOL), 2)).toEqual([
    "SEARCH instances USING INDEX instances_living (pool=?)",
    "SEARCH recorded USING INDEX sqlite_autoindex_evidence_2 (instance=?)",
    "USE TEMP B-TREE FOR LAST TERM OF ORDER BY",
    "SEARCH instances USING INDEX instances_living (pool=?)",
    "SEARCH recorded USING INDEX sqlite_autoindex_member_evidence_2 (instance=?)",
    "USE TEMP B-TREE FOR LAST TERM OF ORDER BY",
  ]);
  expect(await planOf(evidence.list(POOL, 10), 2)).toEqual([
    "SEARCH evidence USING INDEX evidence_of_pool (pool=?)",
    "SEARCH member_evidence USING INDEX member_evidence_of_pool (pool=?)",
  ]);
  expect(await planOf(steps.listOpen(POOL))).toEqual(["SEARCH steps USING INDEX steps_open (pool=?)"]);
  expect(await planOf(steps.list(POOL, 10))).toEqual(["SEARCH steps USING INDEX steps_of_pool (pool=?)"]);
  expect(await planOf(steps.listAttempts(POOL, 10, "cordon"))).toEqual([
    "SEARCH steps USING INDEX sqlite_autoindex_steps_1 (id>? AND id<?)",
    "USE TEMP B-TREE FOR ORDER BY",
  ]);
  const renewal = { pool: POOL, instance: "i-1", bootId: "boot-1", epoch: null };
  expect(await planOf(workloads.renew(renewal, 9_000, async () => undefined).catch(() => undefined))).toEqual([
    "SEARCH workloads USING INDEX workloads_of_holder (pool=? AND holder=?)",
  ]);
  expect(await planOf(workloads.list(POOL))).toEqual(["SEARCH workloads USING PRIMARY KEY (pool=?)"]);
  expect(await planOf(notices.list(10))).toEqual(["SCAN notices USING INDEX notices_received"]);
  expect(await planOf(notices.listOpen(NOON))).toEqual(["SEARCH notices USING INDEX notices_received (received_at>?)"]);
});
