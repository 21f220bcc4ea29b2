/** Who may write for each workload, that is for each (pool, ordinal). A row is never deleted: an epoch that was given once is never given again. */
import { type Migration, refusal } from "./migration.ts";

export const workloads: Migration = {
  number: 2,
  statements: [
    `CREATE TABLE workloads (
      pool TEXT NOT NULL,
      ordinal INTEGER NOT NULL,
      writer_era INTEGER NOT NULL,
      writer_counter INTEGER NOT NULL,
      min_era INTEGER NOT NULL,
      min_counter INTEGER NOT NULL,
      holder TEXT,
      incarnation INTEGER,
      boot_id TEXT,
      renewals INTEGER NOT NULL,
      PRIMARY KEY (pool, ordinal),
      CHECK ((holder IS NULL) = (boot_id IS NULL) AND (holder IS NULL) = (incarnation IS NULL))
    ) STRICT, WITHOUT ROWID`,
    // A renewal names its holder; an instance has one place, so it holds one lease at most.
    `CREATE UNIQUE INDEX workloads_of_holder ON workloads (pool, holder) WHERE holder IS NOT NULL`,
    // I2 holds even against a fault of ours.
    refusal({
      name: "workloads_never_fall",
      event: "UPDATE",
      table: "workloads",
      when: `(NEW.min_era, NEW.min_counter) < (OLD.min_era, OLD.min_counter)
        OR (NEW.writer_era, NEW.writer_counter) < (OLD.writer_era, OLD.writer_counter)`,
      says: "a writer epoch never falls",
    }),
    refusal({ name: "workloads_never_go", event: "DELETE", table: "workloads", says: "a tombstone is kept for ever" }),
  ],
};
