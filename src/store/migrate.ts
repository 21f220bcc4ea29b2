/** Brings a file to this version's schema, each migration in a transaction of its own. A file that this version must not write stays as it is. */
import type { DatabaseSync } from "node:sqlite";
import { RelevoError } from "../kernel/errors.ts";
import { type Migration, sqliteStatements } from "./migrations/migration.ts";
import { storeCorrupt } from "./port.ts";

/** In the header of the file, so that a database of another program is told apart: "RELV". */
const APPLICATION_ID = 0x52454c56;

/** Writes nothing; throws when the file is another program's, or when a newer version took something away that this one needs. */
export function requireKnownSchema(database: DatabaseSync, migrations: readonly Migration[]): void {
  const found = schemaOf(database);
  requireOwnFile(database, found);
  requireUnderstood(found, found === 0 ? 0 : leastOf(database), migrations);
}

/**
 * What was only added by a newer version (expanded) is no matter: this one does not see it. `least` is the number of the last step that took something away.
 * Error: `store_from_newer_version`.
 */
export function requireUnderstood(found: number, least: number, migrations: readonly Migration[]): void {
  const newest = migrations.length;
  if (least <= newest) return;
  throw new RelevoError("store_from_newer_version", "a newer version of Relevo changed the store in a way that this one does not know", {
    found,
    allowed: `schema 0 to ${newest}`,
    todo: "run that version, or restore a backup from before its first start; nothing was changed",
  });
}

export function migrate(database: DatabaseSync, migrations: readonly Migration[]): void {
  for (const migration of migrations.slice(schemaOf(database))) applyMigration(database, migration);
}

/** The number of the newest migration that was applied. */
export function schemaOf(database: DatabaseSync): number {
  return readNumber(database, "user_version");
}

const LEAST = "schema_least";

function applyMigration(database: DatabaseSync, migration: Migration): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    for (const statement of sqliteStatements(migration)) database.exec(statement);
    database.exec(`PRAGMA user_version = ${migration.number}`);
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    if (migration.contracts === true)
      database.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)").run(LEAST, String(migration.number));
    database.exec("COMMIT");
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

function leastOf(database: DatabaseSync): number {
  return Number(database.prepare("SELECT value FROM meta WHERE name = ?").get(LEAST)?.["value"] ?? 0);
}

function requireOwnFile(database: DatabaseSync, version: number): void {
  const id = readNumber(database, "application_id");
  if (id === APPLICATION_ID) return;
  const { tables } = database.prepare("SELECT count(*) AS tables FROM sqlite_schema").get() as { tables: number };
  if (version !== 0 || id !== 0 || tables > 0) throw storeCorrupt("the file is a database of another program", undefined);
}

function readNumber(database: DatabaseSync, pragma: "user_version" | "application_id"): number {
  return Number(database.prepare(`PRAGMA ${pragma}`).get()?.[pragma]);
}
