/** For how long each holder was told that its lease lasts: a judge that begins anew must not expect it to stop itself earlier. */
import type { Migration } from "./migration.ts";

export const leaseTtl: Migration = {
  number: 3,
  statements: ["ALTER TABLE workloads ADD COLUMN ttl_ms INTEGER NOT NULL DEFAULT 0"],
};
