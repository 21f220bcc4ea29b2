/**
 * Whether more instances would help (K6, I23). They would not while slots are stuck, while a busy slot finishes far less than is usual, or when the last rise
 * raised nothing: then what is wrong is repaired first, and the size does not grow. That never ends by itself; what lasts longer than `stuck.holdFor` is told by
 * a code of its own, which is an alert.
 */
import { formatInstant, type Instant } from "../../kernel/clock.ts";
import { formatDuration } from "../../kernel/units.ts";
import { reason, sentenceOf, type Reason, type ReasonCode } from "../../model/reasons.ts";
import type { PoolSlots } from "../../model/slots.ts";
import { earliest } from "./earliest.ts";
import type { ScalingInput } from "./types.ts";

/** A busy slot that finishes less than this share of what is usual, and by more than chance. */
const SLOW_SHARE = 0.5;
/** A rise by half that brings less than this share of a half more brought nothing. */
const GAIN_SHARE = 0.25;
/** Throughput is told over so long. */
const MEASURED_MS = 60_000;
/** So many jobs one after the other must have had the time to end before a rise is judged. */
const JOBS_BEFORE_JUDGED = 2;
const LONGEST_UNJUDGED_MS = 15 * 60_000;

/** By cause: what a person can do when it lasts. */
const TODO = {
  scale_held_stuck:
    "see with relevo explain which slots are stuck and why their jobs are not reaped; restart those instances, or raise scale.stuck.share",
  scale_held_slowing: "see what the jobs wait for (a dependency, memory, a limit of others); what is slow for good becomes usual by itself",
  scale_held_no_gain: "see what all instances share (a database, a rate limit); raise size.floor to have more instances all the same",
  scale_held_blind: "see why the instances do not answer for their slots",
} as const satisfies Partial<Record<ReasonCode, string>>;

export type HoldCode = keyof typeof TODO | "scale_held_long";

/** Reasons for which the growth is held back; time is counted over all of them together, for one sign often follows another. */
export const GROWTH_HOLDS: ReadonlySet<ReasonCode> = new Set<HoldCode>([
  "scale_held_stuck",
  "scale_held_slowing",
  "scale_held_no_gain",
  "scale_held_blind",
  "scale_held_long",
]);

export interface GrowthHold {
  readonly reason: Reason;
  /** When time alone changes the answer, or how it is told. */
  readonly until: Instant | null;
}

/** Why the size may not grow to `wanted`; undefined: it may. `waiting`: pieces of work that nobody has taken. */
export function growthHold(input: ScalingInput, wanted: number, waiting: number, now: Instant): GrowthHold | undefined {
  const { instances, settledAt, heldSince, policy } = input;
  if (heldSince === null && isBlind(input) && now < settledAt)
    return {
      reason: reason("scale_settling", { wanted, until: formatInstant(settledAt), serving: instances.serving }),
      until: settledAt,
    };
  const cause = causeOf(input, waiting, now);
  if (cause === undefined) return undefined;
  const since = heldSince ?? now;
  const params = { ...cause.params, wanted, since: formatInstant(since) };
  const longAt = since + policy.stuck.holdFor;
  if (now < longAt) return { reason: reason(cause.code, params), until: earliest(longAt, cause.until) };
  return {
    reason: reason("scale_held_long", {
      wanted,
      since: formatInstant(since),
      holdFor: formatDuration(policy.stuck.holdFor),
      cause: sentenceOf(reason(cause.code, params)),
      todo: TODO[cause.code],
    }),
    until: cause.until,
  };
}

interface Cause {
  readonly code: keyof typeof TODO;
  readonly params: Readonly<Record<string, string | number>>;
  /** When it is judged otherwise by then; null: no time alone does that. */
  readonly until: Instant | null;
}

function causeOf(input: ScalingInput, waiting: number, now: Instant): Cause | undefined {
  const { slots, instances } = input;
  if (isBlind(input))
    // What was known to be sick is not well because nobody says anything now.
    return input.heldSince === null
      ? undefined
      : { code: "scale_held_blind", params: { answering: slots?.instances ?? 0, serving: instances.serving }, until: null };
  if (slots === null) return undefined;
  return stuck(input, slots) ?? slowing(input, slots, waiting, now) ?? withoutGain(input, slots, waiting, now);
}

/** Most of those that serve say nothing of their slots. */
function isBlind({ slots, instances }: ScalingInput): boolean {
  return instances.serving > 0 && (slots === null || slots.instances * 2 <= instances.serving);
}

function stuck({ policy }: ScalingInput, slots: PoolSlots): Cause | undefined {
  const busy = slots.progressing + slots.stuck;
  if (busy === 0 || slots.stuck / busy <= policy.stuck.share) return undefined;
  return { code: "scale_held_stuck", params: { stuck: slots.stuck, busy, share: Math.round(policy.stuck.share * 100) }, until: null };
}

/**
 * Slots of new instances have finished nothing yet, so that after a rise the finishing per slot falls for a while whatever happens. Until that is over it is told
 * by all slots together: they must not finish less than the fewer did before.
 */
function slowing(input: ScalingInput, slots: PoolSlots, waiting: number, now: Instant): Cause | undefined {
  const { perBusySlot, usualPerBusySlot: usual, throughput } = slots;
  if (waiting === 0 || perBusySlot === null || usual === null || usual <= 0) return undefined;
  const busy = slots.progressing + slots.stuck;
  const lastUp = input.state?.lastUp ?? null;
  const judgedAt = lastUp === null ? now : lastUp.at + judgedAfter(slots);
  const isYoung = now < judgedAt;
  const before = lastUp?.throughput ?? null;
  const isSlow = isYoung
    ? before !== null && isFarBelow(throughput ?? perBusySlot * busy, before)
    : isFarBelow(perBusySlot * busy, usual * busy);
  if (!isSlow) return undefined;
  const params = { now: perMinute(perBusySlot), usual: perMinute(usual) };
  return { code: "scale_held_slowing", params, until: isYoung ? judgedAt : null };
}

/** Both in jobs per second over a minute; of few jobs it is often chance. */
function isFarBelow(perSecond: number, usual: number): boolean {
  const expected = (usual * MEASURED_MS) / 1_000;
  return (perSecond * MEASURED_MS) / 1_000 + Math.sqrt(expected) < expected * SLOW_SHARE;
}

/** Judged where instances are what is missing: more waits than the free slots could take, and all that the rise asked for serve long enough. */
function withoutGain({ state, instances }: ScalingInput, slots: PoolSlots, waiting: number, now: Instant): Cause | undefined {
  const lastUp = state?.lastUp ?? null;
  if (lastUp === null || state?.direction !== "up" || lastUp.from === 0 || waiting <= slots.free) return undefined;
  const { throughput: before, from, to } = lastUp;
  if (before === null || before === 0 || slots.throughput === null) return undefined;
  if (instances.fullSince === null || now < Math.max(lastUp.at, instances.fullSince) + judgedAfter(slots)) return undefined;
  if (slots.throughput > before * (1 + GAIN_SHARE * (to / from - 1))) return undefined;
  return { code: "scale_held_no_gain", params: { from, to, before: perMinute(before), now: perMinute(slots.throughput) }, until: null };
}

/** So long after more instances came what they do cannot be told. */
function judgedAfter({ usualPerBusySlot: usual }: PoolSlots): number {
  const jobMs = usual === null || usual <= 0 ? 0 : 1_000 / usual;
  return Math.min(MEASURED_MS + JOBS_BEFORE_JUDGED * jobMs, LONGEST_UNJUDGED_MS);
}

function perMinute(perSecond: number): number {
  return Math.round(perSecond * 600) / 10;
}
