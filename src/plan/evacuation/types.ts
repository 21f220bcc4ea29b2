/**
 * What the evacuation schedule sees and says. One schedule per supply of standby, over all pools that share it: release = the notice, deadline = the loss of
 * the node, work = boot + state move + warm-up. Times are ms since the epoch, durations ms.
 */
import type { Instant } from "../../kernel/clock.ts";
import type { Priority } from "../../model/membership.ts";

/** An instance whose capacity goes, or is gone. */
export interface Evacuee {
  /** The instance's id. */
  readonly id: string;
  readonly pool: string;
  readonly priority: Priority;
  /** Its first notice; the duplicates that follow change nothing. */
  readonly noticedAt: Instant;
  /** When its node goes; null when that is not known, or has happened. */
  readonly deadline: Instant | null;
  /** Of what must be moved, in ms at the supply's full speed: the delta since the last checkpoint, or all of it. */
  readonly stateMoveMs: number;
  readonly warmUpMs: number;
  /** Latency above which a place counts as a breach (S5). */
  readonly latencyLimitMs: number;
}

export const SUPPLY_KINDS = ["standby", "on_demand"] as const;
export type SupplyKind = (typeof SUPPLY_KINDS)[number];

/** Places of one kind at one spot. */
export interface Supply {
  /** `site/zone/type`, and for standby the pool. */
  readonly id: string;
  readonly site: string;
  readonly provider: string;
  readonly zone: string;
  readonly instanceType: string;
  readonly kind: SupplyKind;
  /** Standby is made from one pool's blueprint and serves that pool alone; null: any pool. */
  readonly pool: string | null;
  /** Measured, from where the clients are. */
  readonly latencyMs: number;
  /** Places that nobody holds or has reserved. */
  readonly free: number;
  /** From the decision to a process that can take state: 0 for standby, node start + boot for on demand. */
  readonly readyInMs: number;
  /** Capacity health: 0 is well, 1 is dying; see `heat.ts`. */
  readonly heat: number;
  /** Its health check: nothing is shifted to a place that fails it (S4). */
  readonly passing: boolean;
  /** Of a batch pool's standby, whose room a critical one may take. */
  readonly preemptible: { readonly priority: Priority; readonly count: number } | null;
  /** What the spot absorbs, tokens a second and at once; learned, see `bucket.ts`. */
  readonly absorption: { readonly site: string; readonly perSecond: number; readonly burst: number; readonly tokens: number };
}

/** A place that was given and is not used yet; it ends at `until`. */
export interface Reservation {
  readonly evacuee: string;
  readonly supply: string;
  readonly until: Instant;
}

export interface EvacuationInput {
  readonly now: Instant;
  readonly evacuees: readonly Evacuee[];
  readonly supplies: readonly Supply[];
  readonly reservations: readonly Reservation[];
}

/** What one evacuee gets. Every evacuee has exactly one. */
export type Grant =
  /** Go now: the reservation is made. */
  | {
      readonly kind: "go";
      readonly evacuee: string;
      readonly supply: string;
      readonly servingAt: Instant;
      /** The place is farther than its limit: only because nothing nearer had supply (S5). */
      readonly breach: boolean;
      /** The room that a standby of lower priority must give up. */
      readonly preempts: Priority | null;
      readonly reservedUntil: Instant;
    }
  /** Its turn comes: paced by what the supply absorbs, after those that are more urgent. */
  | { readonly kind: "wait"; readonly evacuee: string; readonly supply: string; readonly startAt: Instant; readonly servingAt: Instant }
  /** It cannot be saved in time, said early (S12): why. It still gets a place when one is left over, late. */
  | { readonly kind: "unsavable"; readonly evacuee: string; readonly why: "supply" | "time" | "quota"; readonly missing: string };

export interface EvacuationPlan {
  readonly grants: readonly Grant[];
  /** How many the schedule will have serving within `within` ms of their own notice, and in all before their deadline. */
  readonly prediction: { readonly withinMs: number; readonly within: number; readonly beforeDeadline: number; readonly of: number };
  /** When time alone changes the answer; null when only an event can. */
  readonly nextLookAt: Instant | null;
}
