/**
 * The writer lease: who may write for a workload, that is for one (pool, ordinal). Safety lies only where results land: each landing compares the epoch
 * that a result carries with `minAcceptedEpoch`, the workload's tombstone; timers serve availability alone.
 */
import { compareEpochs, type Epoch } from "../kernel/epoch.ts";

export interface Workload {
  /** `namespace/name`. */
  readonly pool: string;
  readonly ordinal: number;
  /** Of the newest writer that there was; rises by one each time the lease passes to another process, and is never given twice. */
  readonly writerEpoch: Epoch;
  /** Results of an older epoch are stale. Never falls. Above `writerEpoch` while nobody may write. */
  readonly minAcceptedEpoch: Epoch;
  /** Null while nobody may write. */
  readonly holder: WriterHolder | null;
  /** How often the holder has renewed: a judge sees it change, and trusts no clock but its own. */
  readonly renewals: number;
  /** For how long its newest renewal lasts, as it was told; 0 before its first. */
  readonly ttlMs: number;
}

export interface WriterHolder {
  readonly instance: string;
  readonly incarnation: number;
  readonly bootId: string;
}

/** Whether a result of this epoch may land (I1, I2). */
export function isAcceptedWriter(epoch: Epoch, minAccepted: Epoch): boolean {
  return compareEpochs(epoch, minAccepted) >= 0;
}

/** The header in which an instance that holds a lease tells its epoch with each answer; lower case. */
export const WRITER_EPOCH_HEADER = "relevo-writer-epoch";
