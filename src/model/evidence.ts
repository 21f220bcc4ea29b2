/**
 * Evidence: the durable, first-write-wins fact that an instance must be replaced. One row per instance and class of loss, never changed afterwards (I3);
 * the gravest class counts. Typed and sanitised: no free text of others (D16).
 *
 * Evidence about a member is the fact that this one pod of an instance must be replaced, and nothing else of it: one row per pod and class of loss. It is served
 * when no pod of that UID is there any more.
 */
import type { Instant } from "../kernel/clock.ts";
import type { Epoch } from "../kernel/epoch.ts";
import type { Loss } from "./phase.ts";

export const EVIDENCE_REASONS = {
  node_drifted: "voluntary",
  node_deleting: "voluntary",
  node_rebalance: "voluntary",
  operator_drain: "voluntary",
  spot_interruption: "deadline",
  instance_state_change: "deadline",
  scheduled_maintenance: "deadline",
  node_terminating_at: "deadline",
  node_lost: "forced",
  pod_lost: "forced",
  process_unreachable: "forced",
  machine_taken: "forced",
  lease_expired: "forced",
  writer_fenced: "forced",
} as const satisfies Readonly<Record<string, Loss>>;
export type EvidenceReason = keyof typeof EVIDENCE_REASONS;

export interface EvidenceDraft {
  readonly instance: string;
  readonly incarnation: number;
  readonly loss: Loss;
  readonly reason: EvidenceReason;
  /** It concerns only the pod that it names, which is not the lead. Absent: the instance. */
  readonly isOfMember?: true;
  readonly podName: string | null;
  readonly podUid: string | null;
  readonly nodeName: string | null;
  readonly nodeUid: string | null;
  readonly nodeClaimName: string | null;
  readonly nodeClaimUid: string | null;
  /** When the node goes, where known: only with loss `deadline`. */
  readonly deadline: Instant | null;
  /** The notice that said so, where one did. */
  readonly noticeId: string | null;
}

export interface Evidence extends EvidenceDraft {
  readonly id: string;
  readonly pool: string;
  readonly firstSeen: Instant;
  readonly authorityEpoch: Epoch;
}
