/**
 * What the planner wants, as data. An *effect* becomes a journaled step with a proof; a *move* changes the store alone; a *hold* is the reason why
 * something is left as it is (D11).
 */
import type { Instant } from "../kernel/clock.ts";
import type { EvidenceDraft } from "../model/evidence.ts";
import type { Incarnation, Purpose } from "../model/instance.ts";
import type { Loss, Phase, Seal, Trust } from "../model/phase.ts";
import type { Placement } from "../model/placement.ts";
import type { Reason } from "../model/reasons.ts";
import type { ScaleState } from "../model/scale.ts";
import type { WriterHolder } from "../model/writer.ts";
import type { Epoch } from "../kernel/epoch.ts";

export type Decision = Effect | Move | Hold;

/** Steps, one file each in `act/steps`. `key` makes the step's id: the same decision in the same world has the same key. */
export type Effect =
  | { readonly kind: "create_instance"; readonly instance: string; readonly placement?: Placement; readonly reason: Reason }
  | {
      /** `unprotect_pod`: it bears our marks and is none of the instance's any more. */
      readonly kind: "protect_pod" | "unprotect_pod";
      readonly instance: string;
      readonly pod: { readonly name: string; readonly uid: string };
      readonly reason: Reason;
    }
  | {
      readonly kind: "cordon_node";
      readonly instance: string;
      readonly node: { readonly name: string; readonly uid: string };
      readonly evidence: string;
      readonly reason: Reason;
    }
  /** Of a standby: what admission would have to wait for is done before. */
  | { readonly kind: "prepare_instance"; readonly instance: string; readonly incarnation: number; readonly reason: Reason }
  | { readonly kind: "admit_instance"; readonly instance: string; readonly incarnation: number; readonly reason: Reason }
  /** Also for one that drains already, when its deadline became known since. */
  | {
      readonly kind: "drain_instance";
      readonly instance: string;
      readonly incarnation: number;
      readonly loss: Loss;
      readonly deadline: Instant | null;
      readonly reason: Reason;
    }
  | { readonly kind: "close_instance"; readonly instance: string; readonly incarnation: number; readonly reason: Reason }
  | { readonly kind: "delete_instance"; readonly instance: string; readonly reason: Reason }
  /**
   * Of one pod beside the lead, because its node goes: it takes no new work; with `back` it takes work again, because its node stays after all. `since`: when it
   * was first seen in the state that it is to leave.
   */
  | {
      readonly kind: "drain_member";
      readonly instance: string;
      readonly pod: { readonly name: string; readonly uid: string };
      readonly how: MemberDrain;
      /** When its node goes; null: it does not. */
      readonly deadline: Instant | null;
      readonly since: Instant;
      readonly reason: Reason;
    }
  /** This pod is deleted under its UID, and its own workload makes the next one. */
  | {
      readonly kind: "replace_member";
      readonly instance: string;
      readonly pod: { readonly name: string; readonly uid: string };
      readonly reason: Reason;
    }
  /** The target's replicas become as many as were decided at `decidedAt`. */
  | {
      readonly kind: "scale_target";
      readonly uid: string;
      readonly from: number;
      readonly to: number;
      readonly decidedAt: Instant;
      readonly reason: Reason;
    }
  /** Of an instance that has no row. */
  | { readonly kind: "delete_stranger"; readonly instance: string; readonly reason: Reason };

/** `reversible`: it finishes what it has and stays; `final`: it ends after that, and nothing takes it back. */
export type MemberDrain = "reversible" | "final" | "back";

/** Changes of the store alone. */
export type Move =
  | {
      readonly kind: "add_instance";
      readonly ordinal: number;
      readonly purpose: Purpose;
      readonly replaces: string | null;
      readonly reason: Reason;
    }
  /** A standby becomes the replacement of `replaces`, in its place. */
  | {
      readonly kind: "take_standby";
      readonly instance: string;
      readonly replaces: string;
      readonly ordinal: number;
      readonly reason: Reason;
    }
  /** The size follows the demand from now on to `to`. */
  | { readonly kind: "set_desired"; readonly from: number; readonly to: number; readonly state: ScaleState; readonly reason: Reason }
  | { readonly kind: "record_evidence"; readonly evidence: EvidenceDraft; readonly reason: Reason }
  | {
      readonly kind: "move";
      readonly instance: string;
      readonly from: Phase;
      readonly to: Phase;
      readonly drain?: { readonly loss: Loss; readonly deadline: Instant | null };
      readonly seal?: Seal;
      readonly failure?: string;
      readonly lostObligations?: number;
      readonly reason: Reason;
    }
  | {
      readonly kind: "renew_incarnation";
      readonly instance: string;
      readonly after: number;
      readonly incarnation: Incarnation;
      readonly phase: Phase;
      /** What was tied to the former process of one that took traffic; null when it took none. */
      readonly lostObligations: number | null;
      readonly reason: Reason;
    }
  | {
      /** The writer lease of a workload goes to this process, or, with null, from whoever held it to nobody. */
      readonly kind: "pass_writer";
      /** Who gets it; else who loses it. */
      readonly instance: string;
      readonly ordinal: number;
      /** The workload's `writerEpoch`; zero before its first writer. */
      readonly after: Epoch;
      readonly to: WriterHolder | null;
      readonly reason: Reason;
    }
  | {
      readonly kind: "trust";
      readonly instance: string;
      readonly incarnation: number;
      readonly from: Trust;
      readonly to: Trust;
      readonly reason: Reason;
    };

export interface Hold {
  readonly kind: "hold";
  /** An instance, a node, or empty for the pool. */
  readonly subject: string;
  readonly reason: Reason;
  /** When to look again at the latest, where time alone changes the answer. */
  readonly until?: Instant;
}

export interface Plan {
  readonly decisions: readonly (Effect | Move)[];
  readonly holds: readonly Hold[];
  /** The earliest time at which the same snapshot would plan otherwise; null when only an event can change it. */
  readonly nextLookAt: Instant | null;
  /** The size that the demand wants now, to be remembered for the next looks; null: nothing can be said, or the pool has no `scale`. */
  readonly recommendation: number | null;
}
