/** Slots: the units of a worker's concurrency. GET /relevo/v1/slots; any language can answer it. Ages, not times: clocks differ. */
import { z } from "zod";

/** More slots than this in one process are a mistake. */
export const MAX_SLOTS = 1_000;

/** Of each job, apart from whether the pool scales well (K4). `nothing`: there was nothing to do, which is an end in good order. */
export const JOB_OUTCOMES = ["done", "nothing", "reaped", "failed"] as const;
export type JobOutcome = (typeof JOB_OUTCOMES)[number];

export const slotsSchema = z.object({
  bootId: z.string(),
  /** What it takes its jobs from, named as `DemandReading.flow`; null: it does not say. */
  flow: z.string().max(600).nullable(),
  total: z.int().min(0).max(MAX_SLOTS),
  busy: z
    .array(
      z.object({
        slot: z.int().min(0),
        job: z.string().max(250),
        /** Since it was taken, in milliseconds. */
        ageMs: z.number().min(0),
        /** Since work was last done (bytes, rows, frames), in milliseconds; liveness is no progress (K5). */
        quietMs: z.number().min(0),
        /** How much was done, in units of the worker's own. */
        progress: z.number().min(0),
      }),
    )
    .max(MAX_SLOTS),
  /** Since the process began. */
  outcomes: z.object({ done: z.int().min(0), nothing: z.int().min(0), reaped: z.int().min(0), failed: z.int().min(0) }),
});
export type Slots = z.infer<typeof slotsSchema>;

/** What the planner sees of one instance's slots. */
export interface InstanceSlots {
  readonly total: number;
  readonly free: number;
  readonly progressing: number;
  /** Busy, and without progress for the pool's `worker.stuckAfter`. */
  readonly stuck: number;
  /** Of the stuck one that has been quiet longest; 0 without one. */
  readonly longestQuietMs: number;
  readonly flow: string | null;
}

/**
 * Of all instances of a pool that take work and answered, and the busy slots of those that finish theirs: a stuck job is a sign against growth also when its
 * worker is on its way out (K6).
 */
export interface PoolSlots {
  /** That take work. */
  readonly instances: number;
  readonly total: number;
  readonly free: number;
  readonly progressing: number;
  readonly stuck: number;
  /** Jobs that ended (`done` and `nothing`) per second, over the last minute; null: not watched that long. */
  readonly throughput: number | null;
  /** How long slots were busy in that minute, all together, in seconds; null: not watched that long. */
  readonly busySeconds: number | null;
  /** Jobs that ended per second of a busy slot, over the last minute; null: not watched that long, or none was busy. */
  readonly perBusySlot: number | null;
  /** `perBusySlot` as it was over the ten minutes before the last one: what is usual here. */
  readonly usualPerBusySlot: number | null;
}
