import { MIGRATIONS } from "../../src/store/migrations/index.ts";
import type { Migration } from "../../src/store/migrations/migration.ts";

/** The next release only adds: a column that each table's rows get, one that may be null, a table, an index. */
export const EXPANDS: Migration = {
  number: MIGRATIONS.length + 1,
  statements: [
    ...["pools", "instances", "evidence", "steps", "notices", "workloads"].map(
      (table) => `ALTER TABLE ${table} ADD COLUMN later INTEGER NOT NULL DEFAULT 7`,
    ),
    "ALTER TABLE gateways ADD COLUMN later TEXT",
    "CREATE TABLE later (id TEXT NOT NULL PRIMARY KEY) STRICT",
    "CREATE INDEX instances_later ON instances (later)",
  ],
};
