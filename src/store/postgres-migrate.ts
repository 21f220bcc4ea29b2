/**
 * Brings a schema of a database to this version's, each migration in a transaction of its own with its number. One replica at a time, by an advisory lock; the
 * others wait and find it done. Old replicas may go on meanwhile (see `migrations/migration.ts`).
 */
import type { ClientBase, QueryConfig } from "pg";
import { requireUnderstood } from "./migrate.ts";
import { type Migration, postgresStatements } from "./migrations/migration.ts";
import { storeCorrupt } from "./port.ts";

/** "RELV": the first half of our advisory locks, so that they are nobody else's. */
const LOCKS = 0x52454c56;
/** Another replica may be migrating. */
const PATIENCE_MS = 60_000;
/** A table that others use is locked between their transactions; who waits for it longer than this makes them wait too. */
const TABLE_LOCK_MS = 1_000;
const TABLE_LOCK_ATTEMPTS = 30;
/** A lock is not to be had in time; or a transaction that works meanwhile took its locks in another order than ours. */
const LOCKED = ["55P03", "40P01"];

export interface Applied {
  readonly from: number;
  readonly to: number;
}

/** `select` of the advisory lock that ends with the transaction, under which whatever has epochs is written. */
export function eraLock(schema: string, mode: "shared" | "exclusive"): string {
  return `select pg_advisory_xact_lock${mode === "shared" ? "_shared" : ""}(${LOCKS}, ${lockOf(schema, "era")})`;
}

function lockOf(schema: string, of: "era" | "schema"): number {
  return (hash(schema) & 0x7fff_fffe) | (of === "era" ? 0 : 1);
}

/** Applies what is missing; the connection is to be ended afterwards. Errors: `store_from_newer_version`, `store_corrupt`. */
export async function migratePostgres(client: ClientBase, schema: string, migrations: readonly Migration[]): Promise<Applied> {
  const found = await readSchema(client, schema);
  requireUnderstood(found.number, found.least, migrations);
  if (found.number >= migrations.length) return { from: found.number, to: found.number };
  // Of the session and before its transaction: a transaction does not see the tables that were made while it waited.
  await patiently(client, `set lock_timeout = ${PATIENCE_MS}; set statement_timeout = ${PATIENCE_MS}`);
  await patiently(client, `select pg_advisory_lock(${LOCKS}, ${lockOf(schema, "schema")})`);
  let { number, least } = await readSchema(client, schema);
  requireUnderstood(number, least, migrations);
  for (const migration of migrations.slice(number)) {
    await apply(client, schema, migration);
    number = migration.number;
  }
  return { from: found.number, to: number };
}

/** The driver has a limit of its own, which is that of a quick statement. */
function patiently(client: ClientBase, text: string): Promise<unknown> {
  return client.query({ text, query_timeout: PATIENCE_MS } as QueryConfig);
}

/** 0 where there is none yet. */
export async function readSchema(client: ClientBase, schema: string): Promise<{ readonly number: number; readonly least: number }> {
  const { rows: tables } = await client.query<{ ours: boolean | null }>(
    "select bool_or(tablename = 'schema_migrations') as ours from pg_tables where schemaname = $1",
    [schema],
  );
  const ours = tables[0]?.ours ?? null;
  if (ours === null) return { number: 0, least: 0 };
  if (!ours) throw storeCorrupt(`the schema ${schema} holds tables of another program`, undefined);
  const { rows } = await client.query(
    `select coalesce(max(number), 0) as number, coalesce(max(number) filter (where contracts), 0) as least from "${schema}".schema_migrations`,
  );
  return { number: Number(rows[0]?.number), least: Number(rows[0]?.least) };
}

async function apply(client: ClientBase, schema: string, migration: Migration): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await applyOnce(client, schema, migration);
      return;
    } catch (error) {
      await client.query("rollback").catch(() => undefined); // the first error says more
      if (!LOCKED.includes(String((error as { readonly code?: unknown }).code)) || attempt >= TABLE_LOCK_ATTEMPTS) throw error;
    }
  }
}

async function applyOnce(client: ClientBase, schema: string, migration: Migration): Promise<void> {
  await client.query(`begin; set local lock_timeout = ${TABLE_LOCK_MS}`);
  if (migration.number === 1) await client.query(createTable(schema));
  for (const statement of postgresStatements(migration)) await patiently(client, statement);
  await client.query(`insert into "${schema}".schema_migrations (number, contracts) values ($1, $2)`, [
    migration.number,
    migration.contracts === true,
  ]);
  await client.query("commit");
}

function createTable(schema: string): string {
  return `create schema if not exists "${schema}"; create table "${schema}".schema_migrations (
    number bigint not null primary key, contracts boolean not null, applied_at timestamptz not null default now())`;
}

/** FNV-1a, 32 bits: only to tell the schemas of one database apart. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const character of Buffer.from(text)) value = Math.imul(value ^ character, 0x01000193);
  return value;
}
