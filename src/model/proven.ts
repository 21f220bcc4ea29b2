/** What a load test has shown of a pool, with its evidence. `size.max` is only what somebody configured; nothing but a load test writes this (K7). */
import { z } from "zod";
import { MAX_SLOTS } from "./slots.ts";

const figure = z.number().min(0);

export const provenCapacitySchema = z.strictObject({
  /** When the load test ended, ms since the epoch. */
  at: z.int().min(0),
  /** Hash of what was tested: blueprint or target, worker, and what decides the size (docs/scaling.md). Another one now means: proven for something else. */
  configHash: z.string().min(1).max(100),
  /** As the workers told when it ended; null: none told. Another number now means the same: it need not be in the document. */
  slotsPerInstance: z.number().min(0).max(MAX_SLOTS).nullable().default(null),
  /** The different totals that they told, ascending: workers of these sizes were tested, in whatever mix. Null: none told, or an older version wrote it. */
  slotTotals: z.array(z.number().min(0).max(MAX_SLOTS)).max(1_000).nullable().default(null),
  /** The most instances that worked at once in it. */
  instances: z.int().min(0).max(10_000),
  /** Jobs per second, of each instance at that size. */
  throughputPerInstance: figure,
  /** With this share of jobs stuck on purpose. */
  stuckShare: z.number().min(0).max(1),
  /** From the end of the stuck jobs' injection to the drained backlog; null: it was not tried. */
  recoveryMs: figure.nullable(),
  jobs: z.int().min(0),
  /** Who ran it, and where its full report is. */
  by: z.string().max(250),
  evidence: z.string().max(1_000),
});
export type ProvenCapacity = z.output<typeof provenCapacitySchema>;
