/** What may be done about an error of a step, and when. The one place that decides it. */
import { type ErrorClass, RelevoError } from "../kernel/errors.ts";
import type { Random } from "../kernel/random.ts";
import { isForbidden } from "../kube/api.ts";

export const RETRY_FIRST_MS = 250;
/** Also the longest time that a healed fault goes unnoticed. */
export const RETRY_MAX_MS = 30_000;
/** Conflicts are answered by reading again at once, this many times in a row; then like any other fault. */
export const CONFLICTS_AT_ONCE = 5;
/** Probes that could not tell, before the step is held for an operator. */
export const DOUBTS_MAX = 5;
/** Between an attempt that ended in vain and the next one of the same decision. */
export const COOLDOWN_MAX_MS = 300_000;

/** Exponential, with a jitter of half: between half of the step and the whole of it. `failures` counts from 1. */
export function backoffMs(failures: number, random: Random, maxMs: number = RETRY_MAX_MS): number {
  const step = Math.min(maxMs, RETRY_FIRST_MS * 2 ** Math.min(failures - 1, 20));
  return Math.round(step / 2 + (random.next() * step) / 2);
}

/** Without chance: whoever looks again later must come to the same answer. */
export function cooldownMs(attempt: number): number {
  return Math.min(COOLDOWN_MAX_MS, RETRY_FIRST_MS * 2 ** Math.min(attempt - 1, 20));
}

export type Verdict =
  /** Read again and decide anew, at once. */
  | "again"
  /** After a back-off, without an end of its own. */
  | "later"
  /** The effect is not there and will not be. */
  | "never"
  /** Somebody else owns the pool, or this process ends: the step is left as it is. */
  | "stop";

const VERDICTS: Readonly<Record<ErrorClass, Verdict>> = { conflict: "again", retryable: "later", terminal: "never", cancelled: "stop" };

/** An error that is not ours is a fault of the program: nothing is known about the effect, so the step must not be given up as failed. */
export function verdictOf(error: unknown): Verdict {
  if (!(error instanceof RelevoError)) return "later";
  // A permission that is missing, or a quota that is used up, is for somebody else to give: the decision stands until then.
  if (isForbidden(error)) return "later";
  return error.code === "stale_epoch" ? "stop" : VERDICTS[error.class];
}

export function codeOf(error: unknown): string {
  return error instanceof RelevoError ? error.code : "unexpected_error";
}
