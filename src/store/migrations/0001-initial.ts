/** The first schema. A migration that was released never changes: the next one follows it. */
import { type Migration, refusal } from "./migration.ts";

export const initial: Migration = {
  number: 1,
  statements: [
    `CREATE TABLE meta (
      name TEXT NOT NULL PRIMARY KEY,
      value TEXT NOT NULL
    ) STRICT`,
    `INSERT INTO meta (name, value) VALUES ('era', '0')`,

    `CREATE TABLE pools (
      pool TEXT NOT NULL PRIMARY KEY,
      claimed INTEGER NOT NULL CHECK (claimed IN (0, 1)),
      owner TEXT,
      claimed_at INTEGER,
      epoch_era INTEGER NOT NULL,
      epoch_counter INTEGER NOT NULL,
      generation_era INTEGER NOT NULL,
      generation_counter INTEGER NOT NULL,
      freeze_until INTEGER,
      freeze_why TEXT,
      freeze_by TEXT,
      reasons TEXT NOT NULL
    ) STRICT`,

    `CREATE TABLE blueprints (
      hash TEXT NOT NULL PRIMARY KEY,
      body TEXT NOT NULL
    ) STRICT`,

    `CREATE TABLE instances (
      seq INTEGER PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      pool TEXT NOT NULL REFERENCES pools (pool),
      ordinal INTEGER NOT NULL,
      purpose TEXT NOT NULL,
      replaces TEXT,
      created_at INTEGER NOT NULL,
      blueprint_hash TEXT NOT NULL REFERENCES blueprints (hash),
      phase TEXT NOT NULL,
      phase_since INTEGER NOT NULL,
      trust TEXT NOT NULL,
      incarnation INTEGER NOT NULL,
      pod_name TEXT,
      pod_uid TEXT,
      container_id TEXT,
      boot_id TEXT,
      node_name TEXT,
      node_uid TEXT,
      host TEXT,
      port INTEGER,
      objects TEXT NOT NULL,
      admitted_era INTEGER,
      admitted_counter INTEGER,
      drain_era INTEGER,
      drain_counter INTEGER,
      drain_loss TEXT,
      drain_since INTEGER,
      drain_deadline INTEGER,
      seal TEXT,
      failure TEXT,
      failed_at INTEGER
    ) STRICT`,
    `CREATE INDEX instances_living ON instances (pool, seq) WHERE phase <> 'deleted'`,
    // Not by seq: SQLite would take it for the living ones too and read the whole history.
    `CREATE INDEX instances_of_pool ON instances (pool, created_at, seq)`,
    `CREATE INDEX instances_failed ON instances (pool, failed_at, seq) WHERE failed_at IS NOT NULL`,
    `CREATE INDEX instances_deleted ON instances (phase_since) WHERE phase = 'deleted'`,
    `CREATE INDEX instances_blueprint ON instances (blueprint_hash)`,

    `CREATE TABLE evidence (
      seq INTEGER PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      pool TEXT NOT NULL,
      instance TEXT NOT NULL REFERENCES instances (id),
      incarnation INTEGER NOT NULL,
      loss TEXT NOT NULL,
      reason TEXT NOT NULL,
      pod_name TEXT,
      pod_uid TEXT,
      node_name TEXT,
      node_uid TEXT,
      node_claim_name TEXT,
      node_claim_uid TEXT,
      deadline INTEGER,
      notice_id TEXT,
      first_seen INTEGER NOT NULL,
      epoch_era INTEGER NOT NULL,
      epoch_counter INTEGER NOT NULL,
      UNIQUE (instance, loss)
    ) STRICT`,
    `CREATE INDEX evidence_of_pool ON evidence (pool, seq)`,
    // I3 holds even against a fault of ours.
    refusal({
      name: "evidence_never_changes",
      event: "UPDATE",
      table: "evidence",
      says: "evidence never changes",
    }),

    `CREATE TABLE steps (
      seq INTEGER PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      operation TEXT NOT NULL,
      pool TEXT NOT NULL,
      instance TEXT,
      kind TEXT NOT NULL,
      payload TEXT NOT NULL,
      reason TEXT NOT NULL,
      state TEXT NOT NULL,
      attempts INTEGER NOT NULL,
      not_before INTEGER NOT NULL,
      recorded_at INTEGER NOT NULL,
      ended_at INTEGER,
      outcome TEXT,
      result TEXT,
      epoch_era INTEGER NOT NULL,
      epoch_counter INTEGER NOT NULL
    ) STRICT`,
    `CREATE INDEX steps_of_pool ON steps (pool, recorded_at, seq)`,
    `CREATE INDEX steps_open ON steps (pool, seq) WHERE ended_at IS NULL`,
    `CREATE INDEX steps_ended ON steps (ended_at) WHERE ended_at IS NOT NULL`,

    `CREATE TABLE losses (
      instance TEXT NOT NULL REFERENCES instances (id),
      loss TEXT NOT NULL,
      assumed INTEGER NOT NULL,
      PRIMARY KEY (instance, loss)
    ) STRICT`,
    `CREATE TABLE loss_totals (
      pool TEXT NOT NULL,
      loss TEXT NOT NULL,
      instances INTEGER NOT NULL,
      obligations INTEGER NOT NULL,
      assumed_seals INTEGER NOT NULL,
      PRIMARY KEY (pool, loss)
    ) STRICT`,

    `CREATE TABLE notices (
      seq INTEGER PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      source TEXT NOT NULL,
      dedupe_key TEXT NOT NULL,
      received_at INTEGER NOT NULL,
      body TEXT NOT NULL,
      outcome TEXT NOT NULL,
      machine_ids TEXT NOT NULL,
      deadline INTEGER,
      reason TEXT,
      UNIQUE (source, dedupe_key)
    ) STRICT`,
    `CREATE INDEX notices_received ON notices (received_at)`,

    `CREATE TABLE gateways (
      replica TEXT NOT NULL PRIMARY KEY,
      registered_at INTEGER NOT NULL
    ) STRICT`,
  ],
};
