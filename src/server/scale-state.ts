/** What the HTTP API tells and takes of the sizes of pools. */
import type { Instant } from "../kernel/clock.ts";
import type { DemandView } from "../model/demand.ts";
import type { PromotionException } from "../model/promotion.ts";
import type { ProvenCapacity } from "../model/proven.ts";
import type { Reason } from "../model/reasons.ts";
import type { ScaleChange } from "../model/scale.ts";
import type { JobOutcome, PoolSlots } from "../model/slots.ts";

export const PROOFS = ["nothing_proven", "proven_for_other", "above_proven", "within_proven"] as const;

/** How a pool's size follows its demand. */
export interface PoolScale {
  /** `queue captures through main`. */
  readonly signal: string;
  readonly flow: string | null;
  readonly target: number;
  readonly demand: DemandView;
  readonly slots: PoolSlots | null;
  readonly desired: number;
  readonly floor: number;
  /** What somebody configured; `proven` is what a load test has shown (K7). */
  readonly max: number;
  readonly proven: ProvenCapacity | null;
  readonly proof: (typeof PROOFS)[number];
  readonly pausedAt: number | null;
  /** What the demand wants now; null: nothing can be said. */
  readonly wanted: number | null;
  readonly changedAt: Instant | null;
  /** What is about to be done; null: nothing. */
  readonly next: { readonly size: number; readonly reason: Reason } | null;
  readonly holds: readonly Reason[];
  readonly isGrowthHeld: boolean;
}

/** What `relevo explain` says beside it. */
export interface PoolScaleExplained extends PoolScale {
  /** Who sets the number of replicas. */
  readonly owner: string;
  /** Others that would fight over it (K3). */
  readonly otherOwners: readonly string[];
  /** How jobs ended since this controller began; null: nobody counts them. */
  readonly jobs: Readonly<Record<JobOutcome, number>> | null;
  /** With something still to be done (K10). */
  readonly exceptions: readonly PromotionException[];
  /** Newest first. */
  readonly changes: readonly ScaleChange[];
}

/** What a load test has shown; when, by whom and of which configuration is the controller's to say. */
export type ProvenDraft = Omit<ProvenCapacity, "at" | "by" | "configHash" | "slotsPerInstance" | "slotTotals">;

export interface PoolScaleChange extends ScaleChange {
  readonly pool: string;
}
