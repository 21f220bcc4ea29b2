/** What is known of capacity now, as data: its health place by place, and what could take over. Made by `observe/capacity.ts` and `control/evacuation-desk.ts`. */
import type { Instant } from "../../kernel/clock.ts";
import type { Placement, Spot } from "../../model/placement.ts";
import type { Absorption, Prediction, Supply } from "./types.ts";

export interface SpotHealth {
  readonly spot: Spot;
  readonly heat: number;
  /** That are there and not announced to go. */
  readonly machines: number;
  /** Within the last six half-lives. */
  readonly losses: number;
  readonly failedLaunches: number;
  readonly launches: number;
  readonly lastLossAt: Instant | null;
  readonly lastFailureAt: Instant | null;
}

/** How many machines may be there, by what was agreed with their provider. */
export interface Quota {
  readonly nodePool: string;
  /** In machines; null: no such limit. */
  readonly limit: number | null;
  readonly machines: number;
  readonly spots: readonly Spot[];
}

export interface CapacityView {
  readonly at: Instant;
  readonly spots: readonly SpotHealth[];
  readonly placement: Placement;
  readonly quotas: readonly Quota[];
  /** From the decision to make an instance to one that is ready, as measured. */
  readonly readyInMs: number;
}

export interface EvacuationOverview {
  readonly supplies: readonly { readonly supply: Supply; readonly reserved: number }[];
  readonly absorption: Absorption;
  /** Null while nobody has to be moved. */
  readonly prediction: Prediction | null;
}
