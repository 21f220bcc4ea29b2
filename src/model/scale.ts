/** How a pool's size follows its demand: the policy in the document, and what is kept of what was decided. */
import { z } from "zod";
import type { Instant } from "../kernel/clock.ts";
import { duration, someTime } from "./duration.ts";
import { signalSchema } from "./demand.ts";
import type { Adoption } from "./scale-owner.ts";

/** At most the larger of both within `per`. */
const stepSchema = z.strictObject({
  instances: z.int().min(1).max(10_000).default(4),
  percent: z.int().min(1).max(10_000).default(100),
  per: someTime.prefault("15s"),
});

export const scaleSchema = z.strictObject({
  signal: signalSchema,
  /** Work (waiting and taken) that one instance is to have. */
  target: z.number().positive().max(1e9),
  /** Where nobody tells of changes it is asked this often. */
  pollEvery: someTime.prefault("5s"),
  /** A value that is older, by the source's own clock, is stale. */
  maxAge: someTime.prefault("1m"),
  /** No change while the size that is wanted is within this share of the size that is. */
  tolerance: z.number().min(0).max(1).default(0.1),
  /** The lowest size that was wanted within the window is what it is raised to. */
  up: z.strictObject({ window: duration.prefault("0s"), step: stepSchema.prefault({}) }).prefault({}),
  /** The highest size that was wanted within the window is what it is lowered to. Of 2m to 5m, 3m has less surplus and less time above target than a HPA (bench scaling). */
  down: z.strictObject({ window: duration.prefault("3m"), step: stepSchema.prefault({ percent: 50 }) }).prefault({}),
  /** At least so long between a change and one in the other direction. */
  cooldown: duration.prefault("30s"),
  /** When nothing valid was read for `after`: at least so many, from zero too. Absent: the last decision holds for ever. */
  fallback: z.strictObject({ after: someTime.prefault("5m"), instances: z.int().min(0).max(10_000) }).optional(),
  /** No more instances while more than `share` of the busy slots are stuck; held so for longer than `holdFor` is an alert (K6). */
  stuck: z.strictObject({ share: z.number().min(0).max(1).default(0.2), holdFor: someTime.prefault("15m") }).prefault({}),
  /** Stays at this size whatever the demand. */
  pausedAt: z.int().min(0).max(10_000).optional(),
});
export type ScalePolicy = z.output<typeof scaleSchema>;

export const workerSchema = z.strictObject({
  /** What its workers take their jobs from, named as the signal names it: `queue/captures`. A signal of another flow is refused (K1). */
  flow: z.string().min(1).max(600).optional(),
  /** A busy slot without progress for so long is stuck. */
  stuckAfter: someTime.prefault("2m"),
});

/** What was decided last, in the store. */
export interface ScaleState {
  readonly desired: number;
  readonly changedAt: Instant;
  readonly direction: "up" | "down" | null;
  /** Of the last rise, or the first one since that could not be judged yet: what was done before it, to be compared with what is done after it; null where less was there than could have been done. */
  readonly lastUp: { readonly at: Instant; readonly from: number; readonly to: number; readonly throughput: number | null } | null;
  /** What was changed within the longest `per` of the policy, oldest first: what a step may still change. */
  readonly recent: readonly { readonly at: Instant; readonly by: number }[];
  /** Of a Pool with a target that it owns. */
  readonly adopted?: Adoption;
}

/** One change of the size, as it is kept for people. */
export interface ScaleChange {
  readonly at: Instant;
  readonly from: number;
  readonly to: number;
  readonly reason: string;
  readonly message: string;
}
