/**
 * What the planner sees: one pool at one moment, already interpreted. Built by `observe`, consumed by `plan`; plain data, no I/O.
 */
import type { Instant } from "../kernel/clock.ts";
import type { Epoch } from "../kernel/epoch.ts";
import type { Evidence } from "../model/evidence.ts";
import type { InstanceRecord, Incarnation, OwnedObject, Purpose } from "../model/instance.ts";
import type { Loss } from "../model/phase.ts";
import type { Placement, Spot } from "../model/placement.ts";
import type { PlacementTrouble } from "../model/pod-loss.ts";
import type { MadeCluster, PoolSpec } from "../model/pool.ts";
import type { RetryPolicy } from "../model/trino.ts";
import type { StepRecord } from "../model/step.ts";
import type { Workload } from "../model/writer.ts";
import type { DemandView } from "../model/demand.ts";
import type { ProvenCapacity } from "../model/proven.ts";
import type { ScaleState } from "../model/scale.ts";
import type { ScaleOwner, TargetView } from "../model/scale-owner.ts";
import type { InstanceSlots, PoolSlots } from "../model/slots.ts";
import type { Grant } from "./evacuation/types.ts";
import type { Recommendation } from "./scaling/types.ts";
import type { Freeze, StandingReason } from "../store/port.ts";

export interface PoolSnapshot {
  readonly pool: string;
  readonly namespace: string;
  readonly name: string;
  readonly spec: PoolSpec;
  readonly blueprintHash: string;
  /** The pool's document is being deleted. */
  readonly deleting: boolean;
  readonly authorityEpoch: Epoch;
  readonly generation: Epoch;
  readonly freeze: Freeze | null;
  /** It is being deleted, and why cannot be read: what was found instead. Absent: it is known. Its freeze holds it meanwhile. */
  readonly deletionCauseUnknown?: string;
  readonly instances: readonly InstanceSnapshot[];
  readonly openSteps: readonly StepRecord[];
  readonly failures: readonly {
    readonly instance: string;
    readonly at: Instant;
    readonly failure: string;
    readonly replaces: string | null;
    readonly purpose: Purpose;
  }[];
  readonly reasons: readonly StandingReason[];
  readonly inventory: InventoryState;
  /** Where what is made now shall rather go. */
  readonly placement: Placement;
  /** By instance that must be replaced: what the schedule over all pools says. Empty when there is none: then each pool goes by itself. */
  readonly evacuation: ReadonlyMap<string, Grant>;
  /** So many of its standby must make room for those of a higher class. */
  readonly makesRoom: number;
  readonly gateways: readonly GatewayState[];
  /** No pool-wide decision before this time: the controller is new or was away. */
  readonly settledAt: Instant;
  /** Set while more than `brake.share` of the site became suspect at once without a notice and no second witness agrees. */
  readonly brake: { readonly suspect: number; readonly total: number } | null;
  /** All that ever had a writer. */
  readonly workloads: readonly Workload[];
  /** Set while more than half of all leases that are watched ran late at once and no second witness agrees. */
  readonly leaseBrake: { readonly late: number; readonly total: number } | null;
  /** Set while somebody has seen more of the store than is in it: nothing is decided from these rows. */
  readonly rewound: Rewound | null;
  /** While this controller is new and those who may know more than the store have not all spoken: until when they are waited for. Null: nobody is. */
  readonly witnessesAwaitedUntil: Instant | null;
  /** When the store was last recovered from a rewind. */
  readonly recoveredAt: Instant | null;
  /** By UID of a pod that waits for a place: why it finds none, where that is known. */
  readonly noPlace?: ReadonlyMap<string, PlacementTrouble>;
  /** Of a pool with `scale`; null: it has none. */
  readonly demand: DemandView | null;
  /** What its instances say of their slots, together; null: none says anything. */
  readonly slots: PoolSlots | null;
  /** What was decided last of its size; null: nothing yet. */
  readonly scale: ScaleState | null;
  /** What a load test has shown of it; null: none was made. */
  readonly proven: ProvenCapacity | null;
  /** What was wanted at the looks before this one, oldest first. */
  readonly recommended: readonly Recommendation[];
  /** Of a pool with a `target`; null or absent: it was not looked at yet. */
  readonly target?: TargetView | null;
  /** Who else sets the replicas of the workloads of its instances; absent: nobody. */
  readonly scaleOwners?: readonly OtherOwner[];
  /** Objects under this pool's label whose instance is in no row, by instance. */
  readonly strangers: readonly Stranger[];
  /** Null or absent: nothing was proven. */
  readonly proofs?: Proofs | null;
}

/** Of one workload: `Deployment/orders-a`. */
export interface OtherOwner {
  readonly workload: string;
  readonly owner: ScaleOwner;
}

export interface Rewound {
  /** `gateway gw-1`, `instance orders-a`, `this controller`. */
  readonly witness: string;
  readonly what: "generation" | "authority epoch" | "writer epoch" | "instance";
  /** An epoch, or an instance's id. */
  readonly seen: string;
  /** Null: nothing of it is stored. */
  readonly stored: Epoch | null;
}

/** What the create step of an instance made that the store does not know, or knows as deleted. */
export interface Stranger {
  readonly instance: string;
  /** The store says that its instance was deleted: a leader that was overtaken made these objects too late. */
  readonly outlived: boolean;
  readonly objects: readonly OwnedObject[];
  /** When the newest of them was made. */
  readonly createdAt: Instant;
}

/**
 * Of the writer lease of the instance's workload, as this controller has watched it on its own monotonic clock: how its holder stands. `late` for a TTL,
 * then `expired`.
 */
export type LeaseState =
  /** This process does not hold it. */
  | { readonly state: "none" }
  /** It holds it, and the pool has no lease any more: it is not judged. */
  | { readonly state: "unwatched" }
  /** It holds it and has never asked for it: it cannot write, and is not judged. */
  | { readonly state: "unasked"; readonly since: Instant }
  /** No renewal was seen since the watch began, or began anew; that was less than a TTL ago. */
  | { readonly state: "unproven"; readonly lateAt: Instant }
  | { readonly state: "renewed"; readonly lateAt: Instant }
  | { readonly state: "late"; readonly since: Instant; readonly expiresAt: Instant }
  | { readonly state: "expired"; readonly since: Instant };

/** See `inventory.ts`. */
export type InventoryState =
  | { readonly state: "complete" }
  /** Pods, or their nodes, of an instance that was admitted once are not all seen, or somewhere one is on a node that is not. */
  | { readonly state: "incomplete"; readonly missing: string }
  /** `isOfOwnersOnly`: all is seen but to whom nodes belong. */
  | { readonly state: "error"; readonly error: string; readonly isOfOwnersOnly?: true };

export interface GatewayState {
  readonly replica: string;
  /** Of this pool's route; null before its first. */
  readonly applied: Epoch | null;
  /** Silent for longer than its TTL. */
  readonly silent: boolean;
  /** Given up at this time: it may go on for ever with what it has, and knows of nothing that was made since. Null: it was not. */
  readonly lostAt: Instant | null;
}

/** What was proven to be effective in the running processes of a pool: a setting that only stands in a document is none (I24). */
export interface Proofs {
  /** Of Trino clusters; null: not proven. */
  readonly retryPolicy: RetryPolicy | null;
}

/** As a member says itself; `silent`: it was asked and gave no answer. */
export interface MemberStateSeen {
  readonly state: "active" | "draining" | "drained" | "shutting_down" | "gone" | "silent";
  readonly since: Instant;
}

export interface InstanceSnapshot {
  readonly record: InstanceRecord;
  /** That it must be replaced as a whole. */
  readonly evidence: readonly Evidence[];
  /** That one of its members must, by the pod that it names; absent: none. */
  readonly memberEvidence?: readonly Evidence[];
  /** By pod UID, of members with evidence: what they say; absent of one that nobody has asked yet. */
  readonly memberStates?: ReadonlyMap<string, MemberStateSeen>;
  /** Of a Trino cluster, as it was made. */
  readonly cluster?: MadeCluster;
  /** Its pods as they are seen now, in no order. */
  readonly pods: readonly PodSnapshot[];
  /** How many pods the blueprint wants. */
  readonly podsWanted: number;
  /** The process that is seen now at the lead pod, where it differs from the record's: a new incarnation. */
  readonly newIncarnation: Incarnation | null;
  /** The controller's own check of the lead's process. */
  readonly health: HealthState;
  /** A gateway replica's own check of this process fails too: the second witness. */
  readonly witnessed: boolean;
  /** A gateway replica gets no answer from this process either. One that answers 503 may only lack what it cannot get from us: its lease. */
  readonly unreached: boolean;
  /** Set when the process of the record's incarnation is known to be lost, with the witness. */
  readonly lost: "node_lost" | "pod_lost" | "process_unreachable" | "machine_taken" | null;
  readonly lease: LeaseState;
  /** Over all gateway replicas that report; null while one of them has not reported since the drain was committed. */
  readonly obligations: { readonly requests: number; readonly sessions: number } | null;
  /** What the instance itself says, where it speaks the protocol; null otherwise. */
  readonly ownObligations: number | null;
  /** All registered replicas have applied the generation of its admission, and their own check passes. */
  readonly appliedEverywhere: boolean;
  /** As `appliedEverywhere`, for the generation in which its drain was committed. */
  readonly drainAppliedEverywhere: boolean;
  /** Of a worker that says so; null otherwise. */
  readonly slots: InstanceSlots | null;
  /** Set where `slots` is null and may not be so for long: nobody has asked it yet, or it did say and does not answer now. */
  readonly slotsAwaited?: true;
  /** Whether its objects are still there, by UID; null when not known. */
  readonly objectsGone: boolean | null;
}

export type HealthState =
  | { readonly state: "unknown" }
  | { readonly state: "passing"; readonly since: Instant; readonly bootId: string | null }
  | { readonly state: "failing"; readonly since: Instant; readonly code: string };

export interface PodSnapshot {
  readonly name: string;
  readonly uid: string;
  readonly lead: boolean;
  readonly ready: boolean;
  readonly deleting: boolean;
  /** Its owners lead, by UID, to an object that the create step made (D2). */
  readonly owned: boolean;
  /** Nobody's of ours for sure: not owned, and not for want of something that is not seen. */
  readonly foreign: boolean;
  readonly protectedByUs: boolean;
  /** Of one that was kept away from where capacity is dying: from where. */
  readonly placement: Placement | null;
  /** When it got its place; null while it waits for one. */
  readonly scheduledAt: Instant | null;
  /** Null while it waits for a place, and when its node is gone (then `scheduledAt` is set). */
  readonly node: NodeSnapshot | null;
  /** Of a pod beside the lead: what runs in it; absent when nothing does. */
  readonly process?: MemberProcess;
}

export interface MemberProcess {
  readonly host: string;
  readonly containerId: string;
  readonly startedAt: Instant | null;
}

export interface NodeSnapshot {
  readonly name: string;
  readonly uid: string;
  readonly ready: boolean;
  readonly unschedulable: boolean;
  /** The step that cordoned it, when that was ours. */
  readonly cordonedBy: string | null;
  readonly deleting: boolean;
  /** The NodeClaim (or the other provisioner's object) that owns it; null when it has none. */
  readonly owner: NodeOwner | null;
  readonly spot: Spot;
  /** Why the node will go, as far as it can be seen now; empty when it is well. Order has no meaning. */
  readonly findings: readonly NodeFinding[];
}

export interface NodeOwner {
  readonly provisioner: "karpenter" | "cluster-autoscaler" | "instance-group";
  readonly name: string;
  readonly uid: string;
}

export interface NodeFinding {
  readonly reason: Evidence["reason"];
  readonly loss: Loss;
  readonly deadline: Instant | null;
  readonly noticeId: string | null;
}
