/**
 * Brings a schema of a database to this version's, each migration in a transaction of its own with its number. One replica at a time, by an advisory lock; the
 * others wait and find it done. Old replicas may go on meanwhile (see `migrations/migration.ts`).
 */
import type { ClientBase } from "pg";
import { requireUnderstood } from "./migrate.ts";
import { type Migration, postgresStatements } from "./migrations/migration.ts";
import { storeCorrupt } from "./port.ts";

/** "RELV": the first half of our advisory locks, so that they are nobody else's. */
const LOCKS = 0x52454c56;
/** Others may be migrating; and a table that is in use is locked only between its transactions. */
const PATIENCE_MS = 30_000;

export interface Applied {
  readonly from: number;
  readonly to: number;
}

/** `select` of an advisory lock that ends with the transaction; for everything of this schema. */
export function advisoryLock(schema: string, mode: "shared" | "exclusive", of: "era" | "schema"): string {
  const key = (hash(schema) & 0x7fff_fffe) | (of === "era" ? 0 : 1);
  return `select pg_advisory_xact_lock${mode === "shared" ? "_shared" : ""}(${LOCKS}, ${key})`;
}

/** Applies what is missing. Errors: `store_from_newer_version`, `store_corrupt`. */
export async function migratePostgres(client: ClientBase, schema: string, migrations: readonly Migration[]): Promise<Applied> {
  const found = await readSchema(client, schema);
  requireUnderstood(found.number, found.least, migrations);
  let number = found.number;
  while (number < migrations.length) number = await applyNext(client, schema, migrations);
  return { from: found.number, to: number };
}

/** 0 where there is none yet. */
export async function readSchema(client: ClientBase, schema: string): Promise<{ readonly number: number; readonly least: number }> {
  const there = await client.query("select to_regclass($1) is not null as there", [`${schema}.schema_migrations`]);
  if (there.rows[0]?.there !== true) {
    await requireEmpty(client, schema);
    return { number: 0, least: 0 };
  }
  const { rows } = await client.query(
    `select coalesce(max(number), 0) as number, coalesce(max(number) filter (where contracts), 0) as least from "${schema}".schema_migrations`,
  );
  return { number: Number(rows[0]?.number), least: Number(rows[0]?.least) };
}

async function requireEmpty(client: ClientBase, schema: string): Promise<void> {
  const { rows } = await client.query("select count(*) as tables from information_schema.tables where table_schema = $1", [schema]);
  if (Number(rows[0]?.tables) > 0) throw storeCorrupt(`the schema ${schema} holds tables of another program`, undefined);
}

/** Returns the number that is reached: by this call, or by another replica while it waited. */
async function applyNext(client: ClientBase, schema: string, migrations: readonly Migration[]): Promise<number> {
  await client.query(
    `begin; set local lock_timeout = ${PATIENCE_MS}; set local statement_timeout = ${2 * PATIENCE_MS}; ${advisoryLock(schema, "exclusive", "schema")}`,
  );
  try {
    const { number } = await readSchema(client, schema);
    const migration = migrations[number];
    if (migration !== undefined) {
      if (number === 0) await client.query(createTable(schema));
      for (const statement of postgresStatements(migration)) await client.query(statement);
      await client.query(`insert into "${schema}".schema_migrations (number, contracts) values ($1, $2)`, [
        migration.number,
        migration.contracts === true,
      ]);
    }
    await client.query("commit");
    return migration === undefined ? number : number + 1;
  } catch (error) {
    await client.query("rollback").catch(() => undefined); // the first error says more
    throw error;
  }
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
