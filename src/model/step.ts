/**
 * The journal's words. An operation groups the steps of one purpose; a step is one effect. A step is recorded `unknown` before its effect and leaves
 * `unknown` once; the same id with another payload is a conflict.
 */
import type { Instant } from "../kernel/clock.ts";
import type { Epoch } from "../kernel/epoch.ts";
import type { Reason } from "./reasons.ts";

export const STEP_STATES = ["unknown", "done", "failed", "superseded", "held"] as const;
/**
 * `done`: the effect is there. `failed`: it is not and will not be, the retries are used up. `superseded`: the world moved on, there was nothing to do
 * any more. `held`: nobody can tell whether it happened; an operator must release it.
 */
export type StepState = (typeof STEP_STATES)[number];

export interface StepDraft {
  /** Derived from the decision and its attempt, so that a second look at the same world makes the same id. */
  readonly id: string;
  readonly operation: string;
  readonly pool: string;
  readonly instance: string | null;
  /** With its version: `cordon_node/1`. */
  readonly kind: string;
  /** JSON; parsed once by the step kind. */
  readonly payload: unknown;
  readonly reason: Reason;
}

export interface StepRecord extends StepDraft {
  readonly state: StepState;
  readonly attempts: number;
  /** Not before this time, while `unknown` after a retryable error. */
  readonly notBefore: Instant;
  readonly recordedAt: Instant;
  readonly endedAt: Instant | null;
  /** A code that the step kind gave: `cordoned`, `already_unschedulable`, … or the error's. */
  readonly outcome: string | null;
  readonly result: unknown;
  readonly authorityEpoch: Epoch;
}
