/** Opens a store for what moves all of it: alone, in one transaction, of which nothing stays when it fails. */
import { existsSync } from "node:fs";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import type { ClientBase } from "pg";
import { RelevoError } from "../kernel/errors.ts";
import { TABLE_NAMES } from "./columns.ts";
import { requireKnownSchema, schemaOf } from "./migrate.ts";
import { MIGRATIONS } from "./migrations/index.ts";
import { openSqliteFile } from "./sqlite-file.ts";
import type { PostgresOptions } from "./postgres-store.ts";
import { toStoreError } from "./sqlite-errors.ts";
import { isPostgresUrl } from "./store.ts";
import type { RowAccess } from "./transfer.ts";
import type { TransferRow } from "./transfer-format.ts";

export interface TransferTarget {
  /** A file, or a `postgresql://` URL. */
  readonly store: string;
  readonly storePassword?: PostgresOptions["password"] | undefined;
}

/** Everything of one moment; others may go on writing to PostgreSQL, and not to a file. Errors: `store_missing`, those of `openStore`. */
export async function reading<T>(target: TransferTarget, work: (access: RowAccess) => Promise<T>): Promise<T> {
  if (isPostgresUrl(target.store)) return inPostgres(target, "begin isolation level repeatable read read only", false, work);
  if (!existsSync(target.store))
    throw new RelevoError("store_missing", `there is no store ${target.store}`, {
      todo: "name the file of a store, or the URL of a database",
    });
  return inSqlite(target.store, "BEGIN", "COMMIT", work);
}

/** All or nothing; nothing when `isDry`. The store is made when it is not there, also when `isDry`. Errors: those of `openStore` and of `work`. */
export async function filling<T>(target: TransferTarget, isDry: boolean, work: (access: RowAccess) => Promise<T>): Promise<T> {
  if (!isPostgresUrl(target.store)) return inSqlite(target.store, "BEGIN IMMEDIATE", isDry ? "ROLLBACK" : "COMMIT", work);
  const [{ eraLock }, { parsePostgresUrl }, { migratePostgresStore }] = await Promise.all([
    import("./postgres-migrate.ts"),
    import("./postgres-url.ts"),
    import("./postgres-store.ts"),
  ]);
  const { schema } = parsePostgresUrl(target.store);
  await migratePostgresStore(optionsOf(target), false);
  return inPostgres(target, `begin; ${eraLock(schema, "exclusive")}`, !isDry, work);
}

/** From which schema to which; with `isDry` nothing is changed. Errors: those of `openStore`. */
export async function migrateStore(target: TransferTarget, isDry: boolean): Promise<{ readonly from: number; readonly to: number }> {
  if (isPostgresUrl(target.store)) {
    const { migratePostgresStore } = await import("./postgres-store.ts");
    return migratePostgresStore(optionsOf(target), isDry);
  }
  const from = existsSync(target.store) ? numberOf(target.store) : 0;
  if (!isDry) openSqliteFile({ path: target.store }).close();
  return { from, to: Math.max(from, MIGRATIONS.length) };
}

function numberOf(path: string): number {
  try {
    const database = new DatabaseSync(path, { readOnly: true });
    try {
      requireKnownSchema(database, MIGRATIONS);
      return schemaOf(database);
    } finally {
      database.close();
    }
  } catch (error) {
    throw toStoreError(error);
  }
}

async function inSqlite<T>(path: string, begin: string, end: string, work: (access: RowAccess) => Promise<T>): Promise<T> {
  const { database, schema, close } = openSqliteFile({ path });
  try {
    database.exec(begin);
    const done = await work({
      kind: "sqlite",
      schema: async () => schema(),
      query: async (sql, values) => database.prepare(sql).all(...(values as SQLInputValue[])) as unknown as TransferRow[],
      parameter: (number) => `?${number}`,
      finish: async () => {}, // the next seq is always above the highest
    });
    database.exec(end);
    return done;
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw toStoreError(error);
  } finally {
    close();
  }
}

/** What is not kept goes with the connection. */
async function inPostgres<T>(target: TransferTarget, begin: string, isKept: boolean, work: (access: RowAccess) => Promise<T>): Promise<T> {
  const [{ poolOf }, { readSchema }, { toStoreError: toError }, { commit }] = await Promise.all([
    import("./postgres-store.ts"),
    import("./postgres-migrate.ts"),
    import("./postgres-errors.ts"),
    import("./postgres-turns.ts"),
  ]);
  const { storable } = await import("./postgres-dialect.ts");
  const { target: parsed, pool } = poolOf(optionsOf(target));
  let client: (ClientBase & { release(isOver: boolean): void }) | undefined;
  try {
    const connected = await pool.connect();
    client = connected;
    // Where the rows come from, or go to, may be slow: a pipe, a person.
    await connected.query("set idle_in_transaction_session_timeout = 0");
    await connected.query(begin);
    const done = await work({
      kind: "postgresql",
      schema: async () => (await readSchema(connected, parsed.schema)).number,
      query: async (sql, values) => (await connected.query<TransferRow>(sql, values.map(storable))).rows,
      parameter: (number) => `$${number}`,
      finish: () => goOnCounting(connected, parsed.schema),
    });
    if (isKept) await commit(connected);
    return done;
  } catch (error) {
    throw toError(error);
  } finally {
    client?.release(true);
    await pool.end();
  }
}

async function goOnCounting(client: ClientBase, schema: string): Promise<void> {
  const counted = await client.query<{ table_name: string }>(
    "select table_name from information_schema.columns where table_schema = $1 and column_name = 'seq' and table_name = any($2)",
    [schema, TABLE_NAMES],
  );
  for (const { table_name: table } of counted.rows)
    await client.query(
      `select setval(pg_get_serial_sequence($1, 'seq'), (select coalesce(max(seq), 0) + 1 from "${schema}".${table}), false)`,
      [`"${schema}".${table}`],
    );
}

function optionsOf({ store, storePassword }: TransferTarget): PostgresOptions {
  return { url: store, ...(storePassword === undefined ? {} : { password: storePassword }) };
}
