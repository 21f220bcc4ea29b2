/** What the scaling policy sees and says. Pure data. */
import type { Instant } from "../../kernel/clock.ts";
import type { DemandView } from "../../model/demand.ts";
import type { Reason } from "../../model/reasons.ts";
import type { ScalePolicy, ScaleState } from "../../model/scale.ts";
import type { PoolSlots } from "../../model/slots.ts";

/** What was wanted at one look, before windows, steps and cool-down. */
export interface Recommendation {
  readonly at: Instant;
  readonly size: number;
}

export interface ScalingInput {
  readonly policy: ScalePolicy;
  readonly bounds: {
    readonly floor: number;
    readonly max: number;
    /** More than so many were refused by a quota; null: none is known. */
    readonly quota: number | null;
  };
  /** Of the last decision, else of the document. */
  readonly desired: number;
  readonly state: ScaleState | null;
  readonly demand: DemandView;
  /** Null: no instance says anything of its slots. */
  readonly slots: PoolSlots | null;
  readonly instances: {
    readonly serving: number;
    /** Being made: they are counted as capacity already. */
    readonly coming: number;
    /** Since when each of those that serve does, oldest first. */
    readonly since: readonly Instant[];
  };
  /** Before it the controller is new or was away: that nobody says anything of slots means nothing yet. */
  readonly settledAt: Instant;
  /** As `rememberRecommendation` keeps them: of the longer of both windows, and what was wanted when it began; since this controller looks. */
  readonly recommended: readonly Recommendation[];
  /** Since when the growth is held back without a pause because more instances would not help (K6), whichever of its signs was seen; null: it is not. */
  readonly heldSince: Instant | null;
}

export interface ScalingOutcome {
  /** To be remembered as what was wanted now; null: nothing can be said. */
  readonly recommendation: number | null;
  /** floor ≤ desired ≤ min(max, quota) (I21). */
  readonly desired: number;
  /** Of the change; null when the size stays. */
  readonly change: Reason | null;
  /** Why it is not otherwise. The first one is what `heldSince` is about. */
  readonly holds: readonly Reason[];
  /** When time alone changes the answer; null: never. */
  readonly nextLookAt: Instant | null;
}
