/**
 * The tables as kysely sees them. Epochs are two numbers, so that SQL compares them part by part; JSON is canonical text, so that equal values are equal
 * text; times are ms since the Unix epoch. `seq` is the order of insertion.
 */
import type { Generated } from "kysely";
import type { EvidenceReason } from "../model/evidence.ts";
import type { Purpose } from "../model/instance.ts";
import type { Loss, Phase, Seal, Trust } from "../model/phase.ts";
import type { StepState } from "../model/step.ts";

export interface Schema {
  meta: MetaTable;
  pools: PoolTable;
  blueprints: BlueprintTable;
  instances: InstanceTable;
  evidence: EvidenceTable;
  /** Of one pod each, as `evidence` is of instances. */
  member_evidence: EvidenceTable;
  steps: StepTable;
  losses: LossTable;
  loss_totals: LossTotalTable;
  notices: NoticeTable;
  gateways: GatewayTable;
  workloads: WorkloadTable;
  scale_changes: ScaleChangeTable;
  promotion_exceptions: PromotionExceptionTable;
}

export interface MetaTable {
  name: string;
  value: string;
}

export interface PoolTable {
  pool: string;
  /** 0 while the pool is forgotten or was only frozen: its counters must outlive it, or an old epoch would become valid again. */
  claimed: number;
  owner: string | null;
  claimed_at: number | null;
  epoch_era: number;
  epoch_counter: number;
  generation_era: number;
  generation_counter: number;
  freeze_until: number | null;
  freeze_why: string | null;
  freeze_by: string | null;
  reasons: string;
  /** JSON of a ScaleState, and of a ProvenCapacity. */
  scale: string | null;
  proven: string | null;
}

export interface BlueprintTable {
  hash: string;
  body: string;
}

/** What a change may change; the rest of an instance is fixed at its creation. */
export interface InstanceState {
  phase: Phase;
  phase_since: number;
  trust: Trust;
  incarnation: number;
  pod_name: string | null;
  pod_uid: string | null;
  container_id: string | null;
  boot_id: string | null;
  node_name: string | null;
  node_uid: string | null;
  host: string | null;
  port: number | null;
  objects: string;
  admitted_era: number | null;
  admitted_counter: number | null;
  drain_era: number | null;
  drain_counter: number | null;
  drain_loss: Loss | null;
  drain_since: number | null;
  drain_deadline: number | null;
  seal: Seal | null;
  failure: string | null;
  failed_at: number | null;
}

export interface InstanceTable extends InstanceState {
  seq: Generated<number>;
  id: string;
  pool: string;
  ordinal: number;
  purpose: Purpose;
  replaces: string | null;
  created_at: number;
  blueprint_hash: string;
}

export interface EvidenceTable {
  seq: Generated<number>;
  id: string;
  pool: string;
  instance: string;
  incarnation: number;
  loss: Loss;
  reason: EvidenceReason;
  pod_name: string | null;
  pod_uid: string | null;
  node_name: string | null;
  node_uid: string | null;
  node_claim_name: string | null;
  node_claim_uid: string | null;
  deadline: number | null;
  notice_id: string | null;
  first_seen: number;
  epoch_era: number;
  epoch_counter: number;
}

export interface StepTable {
  seq: Generated<number>;
  id: string;
  operation: string;
  pool: string;
  instance: string | null;
  kind: string;
  payload: string;
  reason: string;
  state: StepState;
  attempts: number;
  not_before: number;
  recorded_at: number;
  ended_at: number | null;
  outcome: string | null;
  result: string | null;
  epoch_era: number;
  epoch_counter: number;
}

/** Which instances were counted, so that each counts once per class. */
export interface LossTable {
  instance: string;
  loss: Loss;
  assumed: number;
}

/** The counts of a pool; they outlive the instances. */
export interface LossTotalTable {
  pool: string;
  loss: Loss;
  instances: number;
  obligations: number;
  assumed_seals: number;
}

export interface NoticeTable {
  seq: Generated<number>;
  id: string;
  source: string;
  dedupe_key: string;
  received_at: number;
  body: string;
  outcome: string;
  machine_ids: string;
  deadline: number | null;
  reason: string | null;
}

export interface GatewayTable {
  replica: string;
  registered_at: number;
}

/** One row per (pool, ordinal) that ever had a writer; never deleted. */
export interface WorkloadTable {
  pool: string;
  ordinal: number;
  writer_era: number;
  writer_counter: number;
  min_era: number;
  min_counter: number;
  /** The instance; null while nobody may write, and with it `incarnation` and `boot_id`. */
  holder: string | null;
  incarnation: number | null;
  boot_id: string | null;
  renewals: number;
  ttl_ms: number;
}

export interface ScaleChangeTable {
  seq: Generated<number>;
  pool: string;
  at: number;
  size_from: number;
  size_to: number;
  reason: string;
  message: string;
}

export interface PromotionExceptionTable {
  id: string;
  pool: string;
  what: string;
  gate: string;
  why: string;
  by_whom: string;
  at: number;
  /** JSON of FollowUps. */
  follow_ups: string;
}
