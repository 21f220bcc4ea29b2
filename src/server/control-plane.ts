/**
 * All that the HTTP API asks of the controller. Implemented in `control/`; the API adds only forms, limits and words. Times are in ms since the epoch, a pool
 * is named `namespace/name`.
 */
import type { Instant } from "../kernel/clock.ts";
import type { Epoch } from "../kernel/epoch.ts";
import type { KubeObjectDraft } from "../kube/api.ts";
import type { Evidence } from "../model/evidence.ts";
import type { Finding } from "../model/finding.ts";
import type { InstanceRecord } from "../model/instance.ts";
import type { ControllerLine, GatewayReport, RouteCounts } from "../model/membership.ts";
import type { Phase } from "../model/phase.ts";
import type { PodLossCounts } from "../model/pod-loss.ts";
import type { PoolDocument, PoolSpec } from "../model/pool.ts";
import type { EffectReport } from "../model/effect.ts";
import type { PreflightRow } from "../model/preflight.ts";
import type { SuspensionStatus } from "../model/suspension.ts";
import type { Reason } from "../model/reasons.ts";
import type { PromotionDraft, PromotionException } from "../model/promotion.ts";
import type { ProvenCapacity } from "../model/proven.ts";
import type { SenderState } from "../model/sender.ts";
import type { StepRecord } from "../model/step.ts";
import type { LeaseGrant } from "../model/protocol.ts";
import type { Workload } from "../model/writer.ts";
import type { Plan } from "../plan/decision.ts";
import type { CapacityView, EvacuationOverview } from "../plan/evacuation/capacity-view.ts";
import type { LeaseState, Rewound } from "../plan/snapshot.ts";
import type { Witness } from "../model/witness.ts";
import type { AdoptCommand, AdoptionResult } from "./adoption-state.ts";
import type { PoolScale, PoolScaleChange, PoolScaleExplained, ProvenDraft } from "./scale-state.ts";
import type { Freeze, LeaseRenewal, LossCounts, NoticeRecord, StandingReason, StoreEra } from "../store/port.ts";

export interface ControlPlane {
  listPools(): Promise<readonly PoolState[]>;
  findPool(pool: string): Promise<PoolState | undefined>;
  /** Deleted ones too; newest first. */
  listInstances(query: RecordQuery): Promise<readonly InstanceState[]>;
  listEvidence(query: RecordQuery): Promise<readonly Evidence[]>;
  /** Who else spoke of these losses, by the evidence's id; absent: nobody. */
  witnessesOf(evidence: readonly Evidence[]): Promise<ReadonlyMap<string, readonly Witness[]>>;
  listSteps(query: RecordQuery): Promise<readonly StepRecord[]>;
  /** Who writes for each place of a pool with a writer lease, and who may land results. */
  listWorkloads(query: RecordQuery): Promise<readonly WorkloadState[]>;
  /** Transitions that this replica told, newest first; those before its start are not among them. */
  listEvents(query: RecordQuery): Promise<readonly JournalEntry[]>;
  /** Changes of size, newest first. */
  listScaleChanges(query: RecordQuery): Promise<readonly PoolScaleChange[]>;
  /** What was promoted before its gate, newest first, those without anything open too (K10). */
  listExceptions(query: RecordQuery): Promise<readonly PromotionException[]>;
  listNotices(limit: number): Promise<readonly NoticeRecord[]>;
  /** Who sends notices to this replica and should be heard again and again: queues, agents. */
  listSenders(): readonly SenderState[];
  /** Nodes that Relevo cordoned and nobody uncordoned since. */
  listCordons(): Promise<readonly CordonState[]>;
  listNodes(): Promise<readonly NodeState[]>;
  listGateways(): Promise<readonly GatewayReplicaState[]>;
  /** The replicas of the controller, and which pools each has. */
  listControllers(): Promise<readonly ControllerState[]>;
  /** Which other replica of the controller is to be asked; undefined: none. Absent where there is one. */
  readonly elsewhere?: (subject: Subject) => Promise<{ readonly id: string; readonly api: string | null } | undefined>;
  /** Capacity health, and what could take over. */
  capacity(): Promise<CapacityState>;

  /** The pure planner on the live snapshot; changes nothing. Throws `pool_not_found`. */
  plan(pool: string): Promise<PlanResult>;
  /** Ends the held steps of an operation, or the one of this id, and answers their ids; throws `step_not_held`. */
  release(command: ReleaseCommand): Promise<readonly string[]>;
  /** Throws `instance_not_found`, `instance_not_draining`. */
  forceSeal(command: ForceSealCommand): Promise<ForcedSeal>;
  /** Forced by an operator, and somebody must still look at them; newest first. */
  listForcedSeals(): Promise<readonly ForcedSeal[]>;

  /** Of a pool (`namespace/name`) or an instance id. Throws `subject_not_found`. */
  explain(subject: string): Promise<Explanation>;

  /** Creates or replaces the Pool in the Kubernetes API; `document` is the text's content, `parsed` the same with defaults. */
  apply(document: KubeObjectDraft, parsed: PoolDocument, options: { readonly dryRun: boolean }): Promise<ApplyResult>;
  /** Records evidence `operator_drain`; throws `instance_not_found`, `instance_leaving`. */
  drain(command: DrainCommand): Promise<{ readonly evidence: string }>;
  /** What a load test has shown, in the place of what was shown before. Throws `pool_not_found`. */
  recordProven(pool: string, proof: ProvenDraft, by: string): Promise<ProvenCapacity>;
  /** Throws `pool_not_found`. */
  recordException(pool: string, draft: PromotionDraft, by: string): Promise<PromotionException>;
  /** The follow-up with this number, from 0. Throws `follow_up_not_found`. */
  finishFollowUp(exception: string, index: number): Promise<PromotionException>;
  /**
   * The Pool owns the replica count of its target from now on. Throws `pool_not_found`, and with nothing changed `adopt_no_target`, `adopt_target_gone`,
   * `adopt_signal_invalid`, `adopt_other_owners`, `adopt_owner_refused`; after the removal `adopt_owner_remains`, `adopt_target_replaced`.
   */
  adopt(command: AdoptCommand): Promise<AdoptionResult>;
  /** Throws `pool_not_found`, `adopt_not_adopted`, `adopt_busy`. */
  releaseTarget(pool: string, by: string): Promise<AdoptionResult>;
  /** Throws `pool_not_found`, and with nothing changed `suspend_running`, `suspend_owner_paused`, `suspend_gone`. */
  suspension(command: SuspensionCommand): Promise<SuspensionStatus>;
  /** Own cordons only; throws `node_not_found`, `not_our_cordon`. */
  uncordon(node: string, by: string): Promise<void>;
  /** `pool: null` means all. Returns the pools that it concerns; throws `pool_not_found`. */
  freeze(pool: string | null, freeze: Freeze): Promise<readonly string[]>;
  /** What a ConfigMap freezes stays so: `PoolState.freeze` says it. */
  unfreeze(pool: string | null, by: string): Promise<readonly string[]>;

  /** Throws `notice_source_unknown`, `notice_malformed` (with its field), `machine_not_yours`, `store_unavailable`; whatever it throws, nothing was changed. */
  receiveNotice(notice: IncomingNotice): Promise<NoticeReceipt>;

  /** An agent lives; throws `notice_source_unknown`. */
  receiveHeartbeat(heartbeat: SourceHeartbeat): void;

  /** Calls `listener` at each transition from now on, never before it returned. The listener must not throw and must not wait. */
  subscribe(listener: (entry: JournalEntry) => void): () => void;

  /**
   * A gateway replica opened its stream: it is registered, and `send` gets all routes at once, later those that changed. Another stream of the same replica
   * replaces this one. `send` returns false when the stream is over. Nothing of `predecessor` is waited for any more: its process has ended.
   */
  connectGateway(replica: string, send: (line: ControllerLine) => boolean, predecessor?: string): Promise<GatewayLink>;
  receiveReport(report: GatewayReport): Promise<void>;

  /**
   * The caller has proven to be this very process (`LeaseTokens`). Errors: `lease_not_held` (ask again: it may still get it), `lease_fenced` (it never will),
   * `lease_epoch_unproven`, `lease_too_often`, `store_unavailable`.
   */
  renewLease(renewal: LeaseRenewal): Promise<LeaseGrant>;

  /** Whether somebody has seen more of the store than is in it. */
  checkStore(): Promise<StoreState>;
  /** Goes on with a store that was rewound, above all that was seen. Throws `store_not_rewound`. */
  recoverStore(command: RecoverStoreCommand): Promise<StoreState>;

  readiness(): Promise<Readiness>;

  /** How each live pod of a pool is protected, as it was seen last. Throws `pool_not_found`, `pool_not_ready`. */
  protection(pool: string): Promise<readonly PodProtection[]>;
  /** Whether the size of a pool (`namespace/name`), or of one as this document has it, could be left to Relevo; changes nothing. Throws `pool_not_found`. */
  preflight(subject: string | PoolDocument): Promise<readonly PreflightRow[]>;
  /** How far each setting of its instances has come; asks their processes, changes nothing. Throws `pool_not_found`. */
  proveEffect(pool: string): Promise<EffectReport>;
  /** As its document has it, with defaults. Throws `pool_not_found`. */
  specOf(pool: string): Promise<PoolSpec>;
  /** What is wrong with the cluster and the store under this controller; changes nothing. */
  examine(): Promise<readonly Finding[]>;
}

export interface PodProtection {
  readonly instance: string;
  readonly pod: string;
  readonly uid: string;
  readonly node: string | null;
  /** Who owns the node; null: nobody that is known. */
  readonly provisioner: string | null;
  /** By UID, from the pod upwards: `ReplicaSet orders-a-7d`, `Deployment orders-a`. */
  readonly owners: readonly string[];
  /** They lead to an object that Relevo made for this instance (D2). */
  readonly isOwned: boolean;
  /** Relevo's own mark is on it. */
  readonly isMarked: boolean;
  /** What others read: is each as it keeps a voluntary disruption away? */
  readonly marks: Readonly<Record<string, boolean>>;
}

export interface StoreState extends StoreEra {
  readonly pools: readonly StorePoolState[];
}

export interface StorePoolState {
  readonly pool: string;
  /** Null while it was not looked at yet. */
  readonly authorityEpoch: Epoch | null;
  readonly generation: Epoch | null;
  readonly rewound: Rewound | null;
  /** Instances whose objects are there and that the store does not know; looked for after a recovery. */
  readonly strangers: readonly string[];
}

export interface RecoverStoreCommand {
  readonly why: string;
  readonly by: string;
  /** Also when no witness is left. */
  readonly force: boolean;
}

export interface RecordQuery {
  /** Absent: all pools. */
  readonly pool?: string | undefined;
  readonly limit: number;
}

export interface SuspensionCommand {
  readonly pool: string;
  readonly deed: "status" | "suspend" | "resume";
  /** What runs is waited for; nothing new is taken. */
  readonly drain: boolean;
}

export interface PoolState {
  readonly pool: string;
  /** As applied. */
  readonly document: PoolDocument;
  readonly resourceVersion: string | null;
  readonly authorityEpoch: Epoch;
  readonly owner: string | null;
  readonly generation: Epoch;
  readonly serving: number;
  /** Warm and not taken. */
  readonly standby: number;
  /** Of all that are not deleted. */
  readonly phases: Partial<Readonly<Record<Phase, number>>>;
  readonly freeze: Freeze | null;
  readonly reasons: readonly StandingReason[];
  readonly losses: readonly LossCounts[];
  /** Pods of its instances that were lost since this controller began, by cause; null where nobody counts them. */
  readonly podLosses: PodLossCounts | null;
  readonly heldSteps: number;
  /** Of its route, over all gateway replicas; null before the first report. */
  readonly traffic: RouteCounts | null;
  /** As decided; else as the document says. */
  readonly desired: number;
  /** Of a pool whose size follows its demand, as of the last pass; null: it does not, or there was none yet. */
  readonly scale: PoolScale | null;
}

export interface InstanceState {
  readonly record: InstanceRecord;
  /** Null while no complete report is there. */
  readonly obligations: { readonly requests: number; readonly sessions: number } | null;
  readonly health: "unknown" | "passing" | "failing";
}

export interface WorkloadState {
  readonly workload: Workload;
  /** How its holder stands, as of the last pass. */
  readonly lease: LeaseState["state"];
}

export interface CordonState {
  readonly node: string;
  readonly nodeUid: string;
  readonly step: string;
  readonly evidence: string | null;
  readonly at: Instant | null;
}

export interface NodeState {
  readonly name: string;
  readonly uid: string;
  readonly zone: string | null;
  readonly instanceType: string | null;
  /** `spot`, `on-demand`, … */
  readonly capacityType: string | null;
  readonly machineId: string | null;
  readonly ready: boolean;
  readonly unschedulable: boolean;
  readonly cordonedByUs: boolean;
  readonly deleting: boolean;
  /** Null when no declared provisioner owns it. */
  readonly owner: { readonly provisioner: string; readonly name: string; readonly uid: string } | null;
  readonly findings: readonly { readonly reason: string; readonly loss: string; readonly deadline: Instant | null }[];
  readonly instances: readonly string[];
}

export interface GatewayReplicaState {
  readonly replica: string;
  readonly registeredAt: Instant;
  readonly connected: boolean;
  readonly lastReportAt: Instant | null;
  readonly silent: boolean;
  readonly routes: readonly { readonly route: string; readonly applied: Epoch; readonly current: Epoch; readonly counts: RouteCounts }[];
}

export interface ControllerState {
  readonly id: string;
  /** How other replicas and gateways reach it; null when it says nothing. */
  readonly api: string | null;
  /** It is the one that answers. */
  readonly isSelf: boolean;
  /** False: it is gone and still has pools, which are about to be taken. */
  readonly isLive: boolean;
  /** As the store says. */
  readonly pools: readonly string[];
}

/** Whom a request concerns; `any`: a pool of whom does not matter, but all replicas mean the same one. */
export interface Subject {
  readonly pool?: string;
  readonly instance?: string;
  readonly poolOrInstance?: string;
  /** Of which a step is held. */
  readonly operation?: string;
  readonly any?: boolean;
}

export interface CapacityState {
  readonly view: CapacityView;
  readonly evacuation: EvacuationOverview;
}

export interface PlanResult {
  readonly pool: string;
  readonly at: Instant;
  readonly plan: Plan;
}

export interface Explanation {
  readonly kind: "pool" | "instance";
  readonly subject: string;
  readonly pool: string;
  readonly at: Instant;
  /** Why it does what it does, or nothing; the most important first. */
  readonly reasons: readonly { readonly subject: string; readonly reason: Reason; readonly since: Instant | null }[];
  /** Of a pool whose size follows its demand; null for any other one, and for an instance. */
  readonly scale: PoolScaleExplained | null;
  /** Of a pool; null for an instance. */
  readonly podLosses: PodLossCounts | null;
  readonly instance: InstanceState | null;
  readonly evidence: readonly Evidence[];
  readonly steps: readonly StepRecord[];
}

export interface ApplyResult {
  readonly pool: string;
  readonly result: "created" | "configured" | "unchanged";
}

export interface ReleaseCommand {
  /** An operation, or a step's id. */
  readonly operation: string;
  readonly by: string;
  readonly why: string;
}

export interface ForceSealCommand {
  readonly instance: string;
  readonly by: string;
  readonly why: string;
  /** Until then somebody must look after what was lost. */
  readonly until: Instant;
}

export interface ForcedSeal {
  readonly pool: string;
  readonly instance: string;
  readonly at: Instant;
  readonly phase: Phase;
  readonly by: string;
  readonly why: string;
  readonly until: Instant;
  /** Requests and sessions that were given up; null: no complete report was there. */
  readonly obligations: number | null;
}

export interface DrainCommand {
  readonly instance: string;
  readonly by: string;
  readonly why: string;
}

export interface SourceHeartbeat {
  readonly source: string;
  readonly from: string;
  readonly everyMs: number;
  readonly trouble: string | null;
}

export interface IncomingNotice {
  /** `eventbridge`, … */
  readonly source: string;
  readonly body: string;
  /** Lower-case names; without credentials. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whose agent sent it: it may speak for the machine of this node alone. Absent: of somebody who may speak for all. */
  readonly node?: string;
}

export interface NoticeReceipt {
  readonly accepted: readonly string[];
  readonly duplicates: readonly string[];
  /** Of no concern, or of a kind that is not known: kept, never acted upon. */
  readonly ignored: readonly string[];
}

export interface JournalEntry {
  readonly at: Instant;
  readonly kind: "phase" | "evidence" | "step" | "notice" | "hold" | "freeze" | "cordon" | "pool" | "gateway" | "writer" | "size";
  readonly pool: string | null;
  /** An instance, a node, a step, a replica. */
  readonly subject: string;
  /** A short code: `serving`, `cordoned`, `spot_interruption`, … */
  readonly code: string;
  readonly from: string | null;
  readonly reason: Reason | null;
}

export interface GatewayLink {
  close(): void;
}

export interface Readiness {
  readonly ready: boolean;
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly message: string }[];
}
