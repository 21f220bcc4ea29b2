/** Brings a file to this version's schema, each migration in a transaction of its own. A file of a newer version, or of somebody else, stays as it is. */
import type { DatabaseSync } from "node:sqlite";
import { RelevoError } from "../kernel/errors.ts";
import type { Migration } from "./migrations/migration.ts";
import { storeCorrupt } from "./port.ts";

/** In the header of the file, so that a database of another program is told apart: "RELV". */
const APPLICATION_ID = 0x52454c56;

/** Writes nothing; throws when the file is a newer version's or another program's. */
export function requireKnownSchema(database: DatabaseSync, migrations: readonly Migration[]): void {
  const found = readNumber(database, "user_version");
  requireOwnFile(database, found);
  const newest = migrations.length;
  if (found <= newest) return;
  throw new RelevoError("store_from_newer_version", "the store was written by a newer version of Relevo", {
    found,
    allowed: `schema 0 to ${newest}`,
    todo: "run that version, or restore a backup from before its first start; the file was not changed",
  });
}

export function migrate(database: DatabaseSync, migrations: readonly Migration[]): void {
  for (const migration of migrations.slice(readNumber(database, "user_version"))) applyMigration(database, migration);
}

function applyMigration(database: DatabaseSync, { number, statements }: Migration): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    for (const statement of statements) database.exec(statement);
    database.exec(`PRAGMA user_version = ${number}`);
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    database.exec("COMMIT");
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
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
