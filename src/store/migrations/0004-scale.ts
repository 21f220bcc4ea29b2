/** What is kept of a pool's size: the last decision and what was proven of it in the pool's own row, each change, and what was promoted before its gate. */
import type { Migration } from "./migration.ts";

export const scale: Migration = {
  number: 4,
  statements: [
    "ALTER TABLE pools ADD COLUMN scale TEXT",
    "ALTER TABLE pools ADD COLUMN proven TEXT",
    `CREATE TABLE scale_changes (
      seq INTEGER PRIMARY KEY,
      pool TEXT NOT NULL,
      at INTEGER NOT NULL,
      size_from INTEGER NOT NULL,
      size_to INTEGER NOT NULL,
      reason TEXT NOT NULL,
      message TEXT NOT NULL
    ) STRICT`,
    "CREATE INDEX scale_changes_of_pool ON scale_changes (pool, seq)",
    "CREATE INDEX scale_changes_at ON scale_changes (at)",
    `CREATE TABLE promotion_exceptions (
      id TEXT NOT NULL PRIMARY KEY,
      pool TEXT NOT NULL,
      what TEXT NOT NULL,
      gate TEXT NOT NULL,
      why TEXT NOT NULL,
      by_whom TEXT NOT NULL,
      at INTEGER NOT NULL,
      follow_ups TEXT NOT NULL
    ) STRICT`,
    "CREATE INDEX promotion_exceptions_of_pool ON promotion_exceptions (pool, at)",
  ],
};
