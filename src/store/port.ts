/**
 * The store: who may act for a pool, what was proven, what was begun. The only durable truth of the controller.
 *
 * 1. Every change of a pool is one `commit`: a list of changes as data, applied in one transaction under the pool's authorityEpoch, all or none. An epoch
 *    that is not the current one commits nothing (I4).
 * 2. Evidence is first write wins and never changes (I3).
 * 3. A phase moves only along the table of `model/phase.ts`, and only from the phase that the caller saw (compare-and-set).
 * 4. A route's generation rises in the transaction that changes who may get traffic and until when, and in no other.
 * 5. A step is recorded before its effect and leaves `unknown` once; the same id with another payload is a conflict.
 * 6. A recovery after a rewind puts every epoch above all that was seen before it.
 * 7. The epochs of a workload never fall and none is given twice, also after the pool was forgotten (I1, I2).
 *
 * One port call is one transaction and holds SQL only, so that the simulator can crash between calls and never inside one.
 */
import { RelevoError } from "../kernel/errors.ts";
import type { Instant } from "../kernel/clock.ts";
import type { Epoch } from "../kernel/epoch.ts";
import type { Evidence, EvidenceDraft } from "../model/evidence.ts";
import type { Incarnation, InstanceRecord, OwnedObject, Purpose } from "../model/instance.ts";
import type { Loss, Phase, Seal, Trust } from "../model/phase.ts";
import type { Reason } from "../model/reasons.ts";
import type { PromotionException } from "../model/promotion.ts";
import type { ProvenCapacity } from "../model/proven.ts";
import type { ScaleChange, ScaleState } from "../model/scale.ts";
import type { StepDraft, StepRecord, StepState } from "../model/step.ts";
import type { Workload, WriterHolder } from "../model/writer.ts";

/** The right to act for a pool, as `claim` gave it. */
export interface Authority {
  readonly pool: string;
  readonly epoch: Epoch;
}

export type Change =
  | { readonly kind: "record_evidence"; readonly id: string; readonly evidence: EvidenceDraft }
  | { readonly kind: "create_instance"; readonly instance: NewInstance }
  /** Compare-and-set of the phase and, where given, of the incarnation. `set` changes facts that belong to the move. */
  | {
      readonly kind: "move_instance";
      readonly instance: string;
      readonly incarnation?: number;
      readonly from: Phase;
      readonly to: Phase;
      readonly set?: InstanceFacts;
    }
  /** A standby becomes the replacement of `replaces`, in its place; compare-and-set on phase and purpose `standby`. Its time in the phase begins anew. */
  | { readonly kind: "take_standby"; readonly instance: string; readonly replaces: string; readonly ordinal: number }
  /** Facts without a move, while the phase is still `phase`. */
  | { readonly kind: "update_instance"; readonly instance: string; readonly phase: Phase; readonly set: InstanceFacts }
  /** A new process: its number is the former one plus one; trust is `ok` again. Conflict when another number is stored than `after`. */
  | { readonly kind: "renew_incarnation"; readonly instance: string; readonly after: number; readonly incarnation: Incarnation }
  | { readonly kind: "set_trust"; readonly instance: string; readonly incarnation: number; readonly from: Trust; readonly to: Trust }
  /** `unknown` unless the same id is there with the same payload, which changes nothing. */
  | { readonly kind: "record_step"; readonly step: StepDraft }
  | {
      readonly kind: "end_step";
      readonly step: string;
      readonly state: Exclude<StepState, "unknown">;
      readonly outcome: string;
      readonly result?: unknown;
    }
  | { readonly kind: "retry_step"; readonly step: string; readonly notBefore: Instant; readonly error: string }
  /** Obligations that were lost or cut with an instance, by class of loss (D18); adds up. */
  | { readonly kind: "count_loss"; readonly instance: string; readonly loss: Loss; readonly obligations: number; readonly seal: Seal }
  /**
   * Hands the writer lease of (pool, ordinal) to this process, or, with null, fences whoever held it: `minAcceptedEpoch` rises above what was given so far.
   * Compare-and-set on `writerEpoch`, `EPOCH_ZERO` before the first writer. `to` must be a process that takes traffic and is trusted, at this ordinal.
   */
  | { readonly kind: "pass_writer"; readonly ordinal: number; readonly after: Epoch; readonly to: WriterHolder | null }
  /** The size that was decided, with what is remembered of it; kept among the pool's changes of size. */
  | { readonly kind: "set_desired"; readonly from: number; readonly to: number; readonly state: ScaleState; readonly reason: Reason }
  /** The reasons that hold now, replacing the former ones; written only when they differ. */
  | { readonly kind: "set_reasons"; readonly reasons: readonly StandingReason[] };

export interface NewInstance {
  readonly id: string;
  readonly ordinal: number;
  readonly purpose: Purpose;
  readonly replaces: string | null;
  readonly blueprintHash: string;
  /** The immutable snapshot, stored once per hash. */
  readonly blueprint: unknown;
}

/** What may change beside the phase; absent keeps. */
export interface InstanceFacts {
  readonly objects?: readonly OwnedObject[];
  readonly bootId?: string | null;
  readonly drainLoss?: Loss;
  readonly drainDeadline?: Instant | null;
  readonly seal?: Seal;
  readonly failure?: string;
}

/** A reason with what it is about; the planner's answer to "why nothing?" (D11). */
export interface StandingReason {
  /** An instance id, a node name, or the empty string for the pool. */
  readonly subject: string;
  readonly reason: Reason;
  readonly since: Instant;
}

export interface CommitResult {
  /** The route's generation after the commit. */
  readonly generation: Epoch;
}

/** All that the planner needs of the store about one pool, read in one transaction. */
export interface PoolRows {
  readonly pool: string;
  readonly authorityEpoch: Epoch;
  readonly owner: string | null;
  readonly generation: Epoch;
  readonly freeze: Freeze | null;
  /** All that are not `deleted`. */
  readonly instances: readonly InstanceRecord[];
  /** Of these instances. */
  readonly evidence: readonly Evidence[];
  /** All that are `unknown` or `held`. */
  readonly openSteps: readonly StepRecord[];
  /** When candidates failed, newest last, bounded to the last 100. */
  readonly failures: readonly {
    readonly instance: string;
    readonly at: Instant;
    readonly failure: string;
    readonly replaces: string | null;
    readonly purpose: Purpose;
  }[];
  readonly reasons: readonly StandingReason[];
  /** All that ever had a writer, by ordinal. */
  readonly workloads: readonly Workload[];
  readonly scale: ScaleState | null;
  /** What a load test has shown; null: none was made. */
  readonly proven: ProvenCapacity | null;
}

/** What a holder asks with: its own process, and the epoch that it believes to hold, null before it knows of one. */
export interface LeaseRenewal {
  readonly pool: string;
  readonly instance: string;
  readonly bootId: string;
  readonly epoch: Epoch | null;
  /** Of the place at which the epoch was given, as the holder says. */
  readonly ordinal?: number | undefined;
  /** That the epoch was given, as the grant had it; the store does not look at it. */
  readonly proof?: string | undefined;
}

export interface Freeze {
  readonly until: Instant;
  readonly why: string;
  readonly by: string;
}

/** Null also when its end has come: the row stays until somebody unfreezes. */
export function standingFreeze(freeze: Freeze | null, now: Instant): Freeze | null {
  return freeze !== null && now < freeze.until ? freeze : null;
}

export interface NoticeRecord {
  readonly id: string;
  /** `eventbridge`, `karpenter`, … */
  readonly source: string;
  /** What makes two deliveries the same notice, within its source. */
  readonly dedupeKey: string;
  readonly receivedAt: Instant;
  /** As received, at most 64 KiB. */
  readonly body: string;
  /** `matched`, `unknown_machine`, `other_cluster`, `duplicate`, `malformed`, `node_gone`, `passed`, `ignored`, … */
  readonly outcome: string;
  readonly machineIds: readonly string[];
  readonly deadline: Instant | null;
  readonly reason: string | null;
}

/** More open notices than this are a flood, not information; the newest are kept in sight. */
export const MAX_OPEN_NOTICES = 50_000;

export interface GatewayReplicaRecord {
  readonly id: string;
  readonly registeredAt: Instant;
}

/** Every epoch is of an era; it rises only by a recovery. */
export interface StoreEra {
  readonly era: number;
  /** The last one; null: there was none. */
  readonly recovered: StoreRecovery | null;
}

export interface StoreRecovery {
  readonly at: Instant;
  /** The era before it. */
  readonly from: number;
  readonly why: string;
  readonly by: string;
}

export interface RecoverCommand {
  /** The highest era that anybody has seen; the new one is above it and above the store's own. */
  readonly above: number;
  readonly at: Instant;
  readonly why: string;
  readonly by: string;
}

export interface StoreDescription {
  readonly kind: "sqlite" | "postgresql";
  /** Of the database: `3.50.4`, `15.8`. */
  readonly version: string;
  /** Where it is, without a password: a path, `:memory:`, `postgresql://host:port/database`. */
  readonly where: string;
  /** The number of the newest migration that was applied. */
  readonly schema: number;
  /**
   * What is behind a commit that was answered: `memory` nothing; `disk` the database's own disk; `standby` a second server's disk too; `standby_missing` one
   * is wanted and none is connected, so commits wait; `none` not even a disk (`fsync` is off); `unknown`: the role may not see it.
   */
  readonly synchronous: "memory" | "disk" | "standby" | "standby_missing" | "none" | "unknown";
}

export interface LossCounts {
  readonly loss: Loss;
  readonly instances: number;
  readonly obligations: number;
  readonly assumedSeals: number;
}

/** Both oldest first. */
export interface OpenNoticeRows {
  readonly ids: readonly string[];
  readonly unknown: readonly NoticeRecord[];
}

export interface Store {
  /** Takes over the pool: raises its authorityEpoch and returns it. Makes the pool's row when there is none. */
  claim(pool: string, owner: string, now: Instant): Promise<Authority>;
  /**
   * Hands the pool over in good order: nobody owns it, and its authorityEpoch is one higher, so that nothing that was begun under the former one commits any
   * more. Error: `stale_epoch`: somebody else has it already.
   */
  letGo(authority: Authority): Promise<void>;
  /** Forgets a pool that has nothing left but deleted instances. */
  release(authority: Authority): Promise<void>;
  commit(authority: Authority, changes: readonly Change[], now: Instant): Promise<CommitResult>;
  /** Undefined when the pool was never claimed. */
  readPool(pool: string): Promise<PoolRows | undefined>;
  listPools(): Promise<readonly string[]>;
  /** The authorityEpoch of each pool that is claimed, in one read: a replica asks it whose a pool is, whoever claimed it. */
  poolEpochs(): Promise<ReadonlyMap<string, Epoch>>;
  /** Who has each pool that somebody has, in one read. */
  poolOwners(): Promise<ReadonlyMap<string, string>>;

  /**
   * Counts a renewal of the lease that this very process holds, keeps for how long it is told that it lasts, and answers the workload. Needs no authority:
   * holder, boot id and epoch are compared in the same transaction. Errors: `lease_not_held` (conflict: it may still get it), `lease_fenced` (terminal: this process never will), `store_rewound` (retryable:
   * it has an epoch that this store did not give to it).
   */
  renewLease(renewal: LeaseRenewal, ttlMs: number): Promise<Workload>;

  readEra(): Promise<StoreEra>;
  /**
   * After the store was rewound: raises the era, and with it every pool's authority and generation and every workload's epochs. Nobody has an authority or a
   * writer lease afterwards, and what the gateways had confirmed of living instances must be confirmed anew. Needs no authority. Error: `era_invalid`.
   */
  recover(command: RecoverCommand): Promise<StoreEra>;

  /** Works under any epoch: freezing must be possible whoever owns the pool. `null` lifts it. */
  setFreeze(pool: string, freeze: Freeze | null): Promise<void>;

  /** False when the same notice of the same source is there already (its row stays as it was). */
  saveNotice(notice: NoticeRecord): Promise<boolean>;
  settleNotice(id: string, outcome: string): Promise<void>;
  /** Newest first. */
  listNotices(limit: number): Promise<readonly NoticeRecord[]>;
  /** Received and neither matched to an end nor older than `since`: the ones that evidence may still come from; the newest `MAX_OPEN_NOTICES`, oldest first. */
  openNotices(since: Instant): Promise<readonly NoticeRecord[]>;
  /** The same for who knows some of them and asks often: the ids of all, and only of those that are not known the rows, whose bodies may be large. */
  openNoticesBeside(since: Instant, known: ReadonlySet<string>): Promise<OpenNoticeRows>;

  /** A row says whom a seal must wait for. */
  registerGateway(replica: string, now: Instant): Promise<void>;
  removeGateway(replica: string): Promise<void>;
  listGateways(): Promise<readonly GatewayReplicaRecord[]>;

  /** Steps of a pool, newest first; what `relevo get steps` and `explain` show. With `base` only the step of that id and its further attempts, `base#2`, … */
  listSteps(pool: string, limit: number, base?: string): Promise<readonly StepRecord[]>;
  /** All evidence of a pool, that of deleted instances too, newest first. */
  listEvidence(pool: string, limit: number): Promise<readonly Evidence[]>;
  /** Deleted ones too, newest first. */
  listInstances(pool: string, limit: number): Promise<readonly InstanceRecord[]>;
  /** A deleted one too, as long as its row is kept. */
  findInstance(pool: string, id: string): Promise<InstanceRecord | undefined>;
  getBlueprint(hash: string): Promise<unknown>;
  countLosses(pool: string): Promise<readonly LossCounts[]>;

  /** Newest first; at most 30 days and the newest 2,000 of a pool are kept. */
  listScaleChanges(pool: string, limit: number): Promise<readonly ScaleChange[]>;
  /** Under any epoch: what a load test has shown, in the place of what was shown before. Error: `store_conflict` for a pool that nobody has claimed. */
  recordProven(pool: string, proof: ProvenCapacity): Promise<void>;
  /** Under any epoch; the same id again changes nothing. */
  recordException(exception: PromotionException): Promise<void>;
  /** The follow-up with this number, from 0, is done; a second time changes nothing. Error: `store_conflict` when there is none. */
  finishFollowUp(id: string, index: number, at: Instant): Promise<PromotionException>;
  /** Newest first, those with nothing open too; null: of all pools. */
  listExceptions(pool: string | null, limit: number): Promise<readonly PromotionException[]>;

  /** The secret of this name, the same for all replicas and after each restart: the first that was offered is kept. */
  sharedSecret(name: string, offered: string): Promise<string>;
  describeStore(): Promise<StoreDescription>;

  /** Deletes what is past its time, in one small batch; returns how many rows went. `unknown` and `held` steps are never touched. */
  collect(now: Instant): Promise<number>;
  close(): Promise<void>;
}

/** The caller's epoch is not the pool's: somebody else owns it now. */
export function staleEpoch(pool: string, found: Epoch | null, used: Epoch): RelevoError {
  return new RelevoError("stale_epoch", `pool ${pool} is owned under another epoch`, {
    class: "terminal",
    found,
    allowed: used,
    todo: "stop acting for this pool and read again",
  });
}

/** What the caller saw is not what is stored: nothing of the commit was applied. */
export function storeConflict(what: string, found: unknown, allowed: string): RelevoError {
  return new RelevoError("store_conflict", what, { class: "conflict", found, allowed });
}

/** Disk full, busy, input/output error, no database to be reached: nothing of the commit was applied. */
export function storeUnavailable(
  why: string,
  cause: unknown,
  todo = "free space or repair the disk; nothing was half-written",
): RelevoError {
  return new RelevoError("store_unavailable", `the store cannot be written: ${why}`, { class: "retryable", cause, todo });
}

/**
 * The connection was lost while a commit was on its way: the change may be there or not, as a whole. A caller reads again and decides anew, as after every
 * `store_unavailable`; to repeat it blindly is refused or harmless too: moves compare, steps and evidence have ids.
 */
export function storeOutcomeUnknown(why: string, cause: unknown): RelevoError {
  return new RelevoError("store_unavailable", `the store did not say whether it kept the change: ${why}`, {
    class: "retryable",
    cause,
    todo: "read again: the change is there as a whole or not at all",
  });
}

/** The store itself failed the caller, whatever it was asked. */
export function isStoreUnavailable(error: unknown): boolean {
  return error instanceof RelevoError && error.code === "store_unavailable";
}

/** The file is no store, or damaged. */
export function storeCorrupt(why: string, cause: unknown): RelevoError {
  return new RelevoError("store_corrupt", `the store is damaged: ${why}`, { cause, todo: "restore the newest backup of the file" });
}
