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
  /** `site/zone/type`, and for standby the pool; unique. */
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
  /** What `free` ends at: what was agreed with the provider, or what is there. Absent: what is there. */
  readonly boundBy?: "quota" | "capacity";
  /** From the decision to a process that can take state: 0 for standby, node start + boot for on demand. */
  readonly readyInMs: number;
  /** Capacity health: 0 is well, 1 is dying; see `heat.ts`. */
  readonly heat: number;
  /** Its health check: nothing is shifted to a place that fails it (S4). */
  readonly passing: boolean;
  /**
   * Of a standby of lower priority: how many of `free` may make room for a higher one of any pool. What comes into the room boots there, on a node that runs:
   * `readyInMs`, as on demand without the node's start (absent: `readyInMs` of the supply).
   */
  readonly preemptible: { readonly priority: Priority; readonly count: number; readonly readyInMs?: number } | null;
  /** What the site absorbs, tokens a second and at once; learned, see `bucket.ts`. The same for all supplies of a site. */
  readonly absorption: Absorption;
}

export interface Absorption {
  readonly site: string;
  readonly perSecond: number;
  readonly burst: number;
  /** What is in the bucket now. */
  readonly tokens: number;
}

/** A place that was given and is not used yet; it ends at `until`. Neither it nor its token is in `free` and `tokens` any more. */
export interface Reservation {
  readonly evacuee: string;
  readonly supply: string;
  readonly until: Instant;
  /** As the grant said; absent: what was promised is reckoned anew, from now. */
  readonly servingAt?: Instant;
  readonly preempts?: Priority | null;
}

/** A pool of which some had to go a moment ago: the others may have to as well, and nobody has told of them yet. */
export interface Exposed {
  readonly pool: string;
  readonly priority: Priority;
  readonly latencyLimitMs: number;
  /** How many of it still are where they were. */
  readonly count: number;
  /** The shortest time between notice and deadline that was seen of it. */
  readonly leadMs: number;
  /** State move and warm-up of one of them. */
  readonly workMs: number;
  /** Until then that is expected. */
  readonly until: Instant;
}

export interface EvacuationInput {
  readonly now: Instant;
  readonly evacuees: readonly Evacuee[];
  readonly supplies: readonly Supply[];
  readonly reservations: readonly Reservation[];
  /** Absent: nobody is expected to follow. */
  readonly exposed?: readonly Exposed[];
}

/** Where and when one is to be moved. */
export interface Placement {
  readonly supply: string;
  readonly startAt: Instant;
  readonly servingAt: Instant;
  /** The place is farther than its limit: only because nothing nearer had supply (S5). */
  readonly breach: boolean;
  /** The room that a standby of lower priority must give up. */
  readonly preempts: Priority | null;
}

/** What one evacuee gets. Every evacuee has exactly one. */
export type Grant =
  /** Go now: the reservation is made. */
  | ({ readonly kind: "go"; readonly evacuee: string; readonly reservedUntil: Instant } & Omit<Placement, "startAt">)
  /**
   * Its turn comes: paced by what the supply absorbs, after those that are more urgent. `heldBack`: the place is kept for more important ones that may have to
   * follow, and is its own at the last moment.
   */
  | ({ readonly kind: "wait"; readonly evacuee: string; readonly heldBack?: true } & Placement)
  /**
   * It cannot be saved in time, said early (S12): why. `late` is the place that is left over for it, after those of its class that can be saved and before
   * the lower classes; when that starts now, it is reserved until `reservedUntil`.
   */
  | {
      readonly kind: "unsavable";
      readonly evacuee: string;
      readonly why: UnsavableReason;
      readonly missing: string;
      readonly late: Placement | null;
      readonly reservedUntil: Instant | null;
    };

export type UnsavableReason = "supply" | "time" | "quota";

export interface EvacuationPlan {
  /** In the order of their turns, not that of the input. */
  readonly grants: readonly Grant[];
  readonly prediction: Prediction;
  /** When time alone changes the answer; null when only an event can. */
  readonly nextLookAt: Instant | null;
}

/** How many the schedule will have serving within `withinMs` of their own notice, and in all before their deadline. */
export interface Prediction {
  readonly withinMs: number;
  readonly within: number;
  readonly beforeDeadline: number;
  readonly of: number;
  /** Places beyond their evacuee's latency limit. */
  readonly breaches: number;
  /** Whether 98 % within `withinMs` can still be had. */
  readonly attainable: boolean;
  /** What holds it back, as a sentence, when it cannot. */
  readonly bottleneck: string | null;
}
