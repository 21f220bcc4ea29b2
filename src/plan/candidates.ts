/**
 * How often a candidate may fail (D14, I18): after each failure a longer pause, after too many within the window a hold with its reason. Counted for what
 * the candidate was to take over from, so that one bad place never stops an unrelated repair (I15).
 */
import { formatInstant, type Instant } from "../kernel/clock.ts";
import { formatDuration } from "../kernel/units.ts";
import { reason, type Reason } from "../model/reasons.ts";
import { isCandidate } from "../model/phase.ts";
import type { PoolSnapshot } from "./snapshot.ts";
import { compareText } from "./view.ts";

/** The pause after the first failure; it doubles with each further one. */
export const FIRST_BACKOFF_MS = 1_000;
export const LONGEST_BACKOFF_MS = 60_000;
/**
 * Where the machines themselves go, the next candidate may land on another that goes: tried three times as long after each, three tries outlast the two minutes
 * of a spot warning. As fast as otherwise, all tries would be spent before there is a machine that stays.
 */
export const FIRST_BACKOFF_GOING_MS = 10_000;
const GOING: readonly string[] = ["node_about_to_go", "node_deleting"];
/** Given up because it is no longer wanted: that says nothing against its place. */
export const NOT_WANTED = "not_wanted";
/** Of a standby whose room somebody more important needs. */
export const MAKES_ROOM = "makes_room";
/** Of a standby that was made from a blueprint that the pool no longer has: neither does that. */
export const OUTDATED = "outdated";

const BLAMELESS: readonly string[] = [NOT_WANTED, MAKES_ROOM, OUTDATED];

export type CandidateGate =
  | { readonly open: true }
  /** With `until` null, only what becomes of those on their way opens it. */
  | { readonly open: false; readonly reason: Reason; readonly until: Instant | null };

type Failure = PoolSnapshot["failures"][number];

/** May another candidate be made that replaces `predecessor`? */
export function candidateGate(pool: PoolSnapshot, predecessor: string, now: Instant): CandidateGate {
  return gateAfter(pool, ({ replaces, purpose }) => replaces === predecessor && purpose !== "standby", now);
}

/**
 * May another candidate be made that fills a place nobody left; `begun` of them are in this plan already? They have their failures in common. Those that were on
 * their way when the first one failed count as one, else a fleet that lost all its machines at once would have spent all its tries with the first. Then one goes
 * ahead; when it serves the others follow, and never do more fail in the window than were on their way at first and as many as may be tried again.
 */
export function fillGate(pool: PoolSnapshot, begun: number, now: Instant): CandidateGate {
  const all = failuresWithin(pool, ({ replaces, purpose }) => replaces === null && purpose !== "standby", now);
  const tries = withoutCompany(all);
  const gate = gateOf(pool, tries, now);
  if (!gate.open || tries.length === all.length) return gate;
  const last = all.at(-1)?.at ?? now;
  const fills = pool.instances.map(({ record }) => record).filter(({ replaces, purpose }) => replaces === null && purpose === "fill");
  const coming = fills.filter(({ phase }) => isCandidate(phase)).length + begun;
  const isProven = fills.some(({ phase, createdAt }) => phase === "serving" && createdAt >= last);
  const most = isProven ? pool.spec.size.max + pool.spec.disruption.candidates.retries - all.length : 1;
  if (coming < most) return gate;
  return { open: false, until: null, reason: reason("candidates_few", { failures: all.length, most: Math.max(0, most) }) };
}

/** May another standby be made? What fails there keeps nobody's replacement back. */
export function standbyGate(pool: PoolSnapshot, now: Instant): CandidateGate {
  return gateAfter(pool, ({ purpose }) => purpose === "standby", now);
}

function gateAfter(pool: PoolSnapshot, concerns: (failure: Failure) => boolean, now: Instant): CandidateGate {
  return gateOf(pool, failuresWithin(pool, concerns, now), now);
}

function failuresWithin(pool: PoolSnapshot, concerns: (failure: Failure) => boolean, now: Instant): readonly Failure[] {
  const { per } = pool.spec.disruption.candidates;
  return pool.failures
    .filter((each) => concerns(each) && each.at > now - per && !BLAMELESS.includes(each.failure))
    .toSorted((a, b) => a.at - b.at || compareText(a.instance, b.instance));
}

/** The last of those that failed before the pause after the first one was over stands for all of them. */
function withoutCompany(failures: readonly Failure[]): readonly Failure[] {
  const [first] = failures;
  if (first === undefined) return failures;
  const pauseUntil = first.at + backoffMs([first]);
  const company = failures.filter(({ at }) => at < pauseUntil).length;
  return failures.slice(company - 1);
}

function gateOf(pool: PoolSnapshot, failures: readonly Failure[], now: Instant): CandidateGate {
  const { retries, per } = pool.spec.disruption.candidates;
  const recent = failures.map(({ at }) => at);
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
  const until = last + backoffMs(failures);
  if (now >= until) return { open: true };
  return { open: false, until, reason: reason("candidate_backoff", { until: formatInstant(until) }) };
}

function backoffMs(failures: readonly Failure[]): number {
  const last = failures.at(-1)?.failure ?? "";
  if (GOING.includes(last)) return FIRST_BACKOFF_GOING_MS * 3 ** (failures.length - 1);
  return Math.min(FIRST_BACKOFF_MS * 2 ** (failures.length - 1), LONGEST_BACKOFF_MS);
}
