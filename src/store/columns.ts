/** Every table with its columns, in the order in which rows can be filled in, and by what its rows are told apart and ordered: for what moves whole stores. */
import type { Schema } from "./schema.ts";

export type TableName = keyof Schema;

interface TableShape<T extends TableName> {
  readonly key: readonly (keyof Schema[T] & string)[];
  readonly columns: readonly (keyof Schema[T] & string)[];
}

const EPOCH = ["epoch_era", "epoch_counter"] as const;

export const COLUMNS: { readonly [T in TableName]: TableShape<T> } = {
  meta: { key: ["name"], columns: ["name", "value"] },
  pools: {
    key: ["pool"],
    columns: [
      ...(["pool", "claimed", "owner", "claimed_at", ...EPOCH, "generation_era", "generation_counter"] as const),
      ...(["freeze_until", "freeze_why", "freeze_by", "reasons", "scale", "proven"] as const),
    ],
  },
  blueprints: { key: ["hash"], columns: ["hash", "body"] },
  instances: {
    key: ["seq"],
    columns: [
      ...([
        "seq",
        "id",
        "pool",
        "ordinal",
        "purpose",
        "replaces",
        "created_at",
        "blueprint_hash",
        "phase",
        "phase_since",
        "trust",
      ] as const),
      ...(["incarnation", "pod_name", "pod_uid", "container_id", "boot_id", "node_name", "node_uid", "host", "port", "objects"] as const),
      ...(["admitted_era", "admitted_counter", "drain_era", "drain_counter", "drain_loss", "drain_since", "drain_deadline"] as const),
      ...(["seal", "failure", "failed_at"] as const),
    ],
  },
  evidence: {
    key: ["seq"],
    columns: [
      ...(["seq", "id", "pool", "instance", "incarnation", "loss", "reason", "pod_name", "pod_uid", "node_name", "node_uid"] as const),
      ...(["node_claim_name", "node_claim_uid", "deadline", "notice_id", "first_seen", ...EPOCH] as const),
    ],
  },
  member_evidence: {
    key: ["seq"],
    columns: [
      ...(["seq", "id", "pool", "instance", "incarnation", "loss", "reason", "pod_name", "pod_uid", "node_name", "node_uid"] as const),
      ...(["node_claim_name", "node_claim_uid", "deadline", "notice_id", "first_seen", ...EPOCH] as const),
    ],
  },
  steps: {
    key: ["seq"],
    columns: [
      ...(["seq", "id", "operation", "pool", "instance", "kind", "payload", "reason", "state", "attempts", "not_before"] as const),
      ...(["recorded_at", "ended_at", "outcome", "result", ...EPOCH] as const),
    ],
  },
  losses: { key: ["instance", "loss"], columns: ["instance", "loss", "assumed"] },
  loss_totals: { key: ["pool", "loss"], columns: ["pool", "loss", "instances", "obligations", "assumed_seals"] },
  notices: {
    key: ["seq"],
    columns: ["seq", "id", "source", "dedupe_key", "received_at", "body", "outcome", "machine_ids", "deadline", "reason"],
  },
  gateways: { key: ["replica"], columns: ["replica", "registered_at"] },
  workloads: {
    key: ["pool", "ordinal"],
    columns: [
      ...(["pool", "ordinal", "writer_era", "writer_counter", "min_era", "min_counter"] as const),
      ...(["holder", "incarnation", "boot_id", "renewals", "ttl_ms"] as const),
    ],
  },
  scale_changes: { key: ["seq"], columns: ["seq", "pool", "at", "size_from", "size_to", "reason", "message"] },
  promotion_exceptions: { key: ["id"], columns: ["id", "pool", "what", "gate", "why", "by_whom", "at", "follow_ups"] },
};

export const TABLE_NAMES = Object.keys(COLUMNS) as readonly TableName[];
