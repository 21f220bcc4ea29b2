/** Evidence that concerns one member of an instance: a row for each pod, beside the one that an instance has for each class of loss. */
import { type Migration, refusal } from "./migration.ts";

export const memberEvidence: Migration = {
  number: 5,
  statements: [
    `CREATE TABLE member_evidence (
      seq INTEGER PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      pool TEXT NOT NULL,
      instance TEXT NOT NULL REFERENCES instances (id),
      incarnation INTEGER NOT NULL,
      loss TEXT NOT NULL,
      reason TEXT NOT NULL,
      pod_name TEXT,
      pod_uid TEXT NOT NULL,
      node_name TEXT,
      node_uid TEXT,
      node_claim_name TEXT,
      node_claim_uid TEXT,
      deadline INTEGER,
      notice_id TEXT,
      first_seen INTEGER NOT NULL,
      epoch_era INTEGER NOT NULL,
      epoch_counter INTEGER NOT NULL,
      UNIQUE (instance, pod_uid, loss)
    ) STRICT`,
    "CREATE INDEX member_evidence_of_pool ON member_evidence (pool, seq)",
    refusal({ name: "member_evidence_never_changes", event: "UPDATE", table: "member_evidence", says: "evidence never changes" }),
  ],
};
