/**
 * How often a candidate may fail (D14, I18): after each failure a longer pause, after too many within the window a hold with its reason. Counted for what
 * the candidate was to take over from, so that one bad place never stops an unrelated repair (I15).
 */
import { formatInstant, type Instant } from "../kernel/clock.ts";
import { formatDuration } from "../kernel/units.ts";
import { reason, type Reason } from "../model/reasons.ts";
import type { PoolSnapshot } from "./snapshot.ts";

/** The pause after the first failure; it doubles with each further one. */
export const FIRST_BACKOFF_MS = 1_000;
export const LONGEST_BACKOFF_MS = 60_000;
/** Given up because it is no longer wanted: that says nothing against its place. */
export const NOT_WANTED = "not_wanted";
/** Of a standby that was made from a blueprint that the pool no longer has: neither does that. */
export const OUTDATED = "outdated";

export type CandidateGate = { readonly open: true } | { readonly open: false; readonly reason: Reason; readonly until: Instant };

/** May another candidate be made that replaces `predecessor` (null: that fills a place nobody left)? */
export function candidateGate(pool: PoolSnapshot, predecessor: string | null, now: Instant): CandidateGate {
  return gateAfter(pool, ({ replaces, purpose }) => replaces === predecessor && purpose !== "standby", now);
}

/** May another standby be made? What fails there keeps nobody's replacement back. */
export function standbyGate(pool: PoolSnapshot, now: Instant): CandidateGate {
  return gateAfter(pool, ({ purpose }) => purpose === "standby", now);
}

function gateAfter(pool: PoolSnapshot, concerns: (failure: PoolSnapshot["failures"][number]) => boolean, now: Instant): CandidateGate {
  const { retries, per } = pool.spec.disruption.candidates;
  const recent = pool.failures
    .filter((each) => concerns(each) && each.at > now - per && each.failure !== NOT_WANTED && each.failure !== OUTDATED)
    .map(({ at }) => at)
    .toSorted((a, b) => a - b);
  const last = recent.at(-1);
  if (last === undefined) return { open: true };
  if (recent.length > retries) {
    const until = (recent[recent.length - 1 - retries] ?? last) + per;
    return {
      open: false,
      until,
      reason: reason("candidates_held", { failures: recent.length, per: formatDuration(per), until: formatInstant(until) }),
    };
  }
  const until = last + Math.min(FIRST_BACKOFF_MS * 2 ** (recent.length - 1), LONGEST_BACKOFF_MS);
  if (now >= until) return { open: true };
  return { open: false, until, reason: reason("candidate_backoff", { until: formatInstant(until) }) };
}
