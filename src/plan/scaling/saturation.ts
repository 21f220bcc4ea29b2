/**
 * Whether more instances would help (K6, I23). They would not while slots are stuck, while a busy slot finishes far less than is usual, or when the last rise
 * raised nothing: then what is wrong is repaired first, and the size does not grow. That never ends by itself; what lasts longer than `stuck.holdFor` is told by
 * a code of its own, which is an alert.
 */
import { formatInstant, type Instant } from "../../kernel/clock.ts";
import { formatDuration } from "../../kernel/units.ts";
import { reason, sentenceOf, type Reason, type ReasonCode } from "../../model/reasons.ts";
import type { ScaleState } from "../../model/scale.ts";
import type { PoolSlots } from "../../model/slots.ts";
import { earliest } from "./earliest.ts";
import type { ScalingInput } from "./types.ts";

/** A busy slot that finishes less than this share of what is usual, and by more than chance. */
const SLOW_SHARE = 0.5;
/** A rise by half that brings less than this share of a half more brought nothing. */
const GAIN_SHARE = 0.25;
/** Smaller rises are judged together: what they bring would be lost in chance. */
const JUDGED_RATIO = 1.5;
/** Throughput is told over so long. */
const MEASURED_S = 60;
const MEASURED_MS = MEASURED_S * 1_000;
/** So many jobs one after the other must have had the time to end before a rise is judged. */
const JOBS_BEFORE_JUDGED = 2;
const LONGEST_JUDGED_AFTER_MS = 15 * 60_000;

type LastUp = NonNullable<ScaleState["lastUp"]>;

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

/** Why the size may not grow to `wanted`; undefined: it may. */
export function growthHold(input: ScalingInput, wanted: number, now: Instant): GrowthHold | undefined {
  const { settledAt, heldSince, policy } = input;
  if (heldSince === null && isBlind(input) && now < settledAt) return { reason: settling(input, wanted), until: settledAt };
  const cause = causeOf(input, now);
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

/** Why nothing follows yet from what the slots do not say. */
export function settling({ settledAt, instances }: Pick<ScalingInput, "settledAt" | "instances">, wanted: number): Reason {
  return reason("scale_settling", { wanted, until: formatInstant(settledAt), serving: instances.serving });
}

interface Cause {
  readonly code: keyof typeof TODO;
  readonly params: Readonly<Record<string, string | number>>;
  /** When it is judged otherwise by then; null: no time alone does that. */
  readonly until: Instant | null;
}

function causeOf(input: ScalingInput, now: Instant): Cause | undefined {
  const { slots, instances, heldSince } = input;
  // Also when only few of them say so.
  const known = slots === null ? undefined : stuck(input, slots);
  if (known !== undefined) return known;
  // What was known to be sick is not well because nobody says anything now, or because whoever looks has not looked for a minute yet.
  if (isBlind(input) || (slots !== null && isToBeJudgedUnseen(input, slots, now)))
    return heldSince === null
      ? undefined
      : { code: "scale_held_blind", params: { answering: slots?.instances ?? 0, serving: instances.serving }, until: null };
  return slots === null ? undefined : (slowing(input, slots, now) ?? withoutGain(input, slots, now));
}

/** Most of those that serve say nothing of their slots. */
export function isBlind({ slots, instances }: ScalingInput): boolean {
  return instances.serving > 0 && (slots === null || slots.instances * 2 <= instances.serving);
}

function stuck({ policy }: ScalingInput, slots: PoolSlots): Cause | undefined {
  const busy = slots.progressing + slots.stuck;
  if (busy === 0 || slots.stuck / busy <= policy.stuck.share) return undefined;
  return { code: "scale_held_stuck", params: { stuck: slots.stuck, busy, share: Math.round(policy.stuck.share * 100) }, until: null };
}

/**
 * What ends in the minute is compared with what that much time in busy slots usually brings. A slot that became busy within it holds a job that has not ended yet.
 * Where a job takes more than half of that minute, none may have ended in those that a rise brought: until that is over, all together must not finish less than the
 * fewer did before. Whether anything waits is not asked: jobs that take ever longer fill more and more slots, and each of them would ask for more instances.
 */
function slowing(input: ScalingInput, slots: PoolSlots, now: Instant): Cause | undefined {
  const { perBusySlot, usualPerBusySlot: usual, throughput, busySeconds } = slots;
  if (perBusySlot === null || usual === null || usual <= 0 || busySeconds === null) return undefined;
  const params = { now: perMinute(perBusySlot), usual: perMinute(usual) };
  const lastUp = input.state?.lastUp ?? null;
  const judgedAt = lastUp === null ? now : lastUp.at + judgedAfter(slots);
  if (now < judgedAt && 1_000 / usual > MEASURED_MS / 2) {
    if (lastUp === null || lastUp.throughput === null || throughput === null) return undefined;
    const isLess = isFarBelow(throughput * MEASURED_S, lastUp.throughput * MEASURED_S);
    return isLess ? { code: "scale_held_slowing", params, until: judgedAt } : undefined;
  }
  const busy = slots.progressing + slots.stuck;
  // Between the beginning of the minute and now the number rose, on the average at half time.
  const begun = Math.min(busy, Math.max(0, 2 * (busy - busySeconds / MEASURED_S)));
  const isSlow = isFarBelow(perBusySlot * busySeconds + begun, usual * busySeconds);
  return isSlow ? { code: "scale_held_slowing", params, until: null } : undefined;
}

/** By more than chance: both are numbers of jobs, and of few it is often chance. */
function isFarBelow(ended: number, expected: number): boolean {
  return ended + Math.sqrt(expected) < expected * SLOW_SHARE;
}

/**
 * What all can do together is compared with what the fewer could do before the rise: both only where more waits than the free slots could take, for else it is what
 * arrives that is measured. All that have served for long enough must have brought their part.
 */
function withoutGain(input: ScalingInput, slots: PoolSlots, now: Instant): Cause | undefined {
  const { state, desired } = input;
  const lastUp = state?.lastUp ?? null;
  if (lastUp === null || state?.direction !== "up" || !isSaturated(input) || !isJudged(input, lastUp, now)) return undefined;
  const { throughput: before, from } = lastUp;
  if (before === null || before === 0 || slots.throughput === null) return undefined;
  const to = Math.min(desired, seasoned(input, now));
  if (slots.throughput > before * (1 + GAIN_SHARE * (to / from - 1))) return undefined;
  return { code: "scale_held_no_gain", params: { from, to, before: perMinute(before), now: perMinute(slots.throughput) }, until: null };
}

/** Whether a rise would be judged by a throughput that a controller which was begun anew cannot tell yet. */
function isToBeJudgedUnseen(input: ScalingInput, slots: PoolSlots, now: Instant): boolean {
  const { state } = input;
  const lastUp = state?.lastUp ?? null;
  if (slots.throughput !== null || lastUp === null || !lastUp.throughput || state?.direction !== "up") return false;
  return isSaturated(input) && isJudged(input, lastUp, now);
}

/** More waits than the free slots could take. */
export function isSaturated({ demand, slots }: Pick<ScalingInput, "demand" | "slots">): boolean {
  return slots !== null && demand.reading !== null && demand.reading.backlog > slots.free;
}

type Judged = Pick<ScalingInput, "instances" | "slots">;

/** Whether what the rise brought can be told: it and those that followed it made enough of a difference, and it was long enough ago. */
export function isJudged(input: Judged, { at, from, to }: LastUp, now: Instant): boolean {
  if (input.slots === null || now < at + judgedAfter(input.slots)) return false;
  return seasoned(input, now) >= Math.max(to, from * JUDGED_RATIO);
}

/** How many have served for so long that what they do can be told. */
function seasoned({ instances, slots }: Judged, now: Instant): number {
  if (slots === null) return 0;
  const from = now - judgedAfter(slots);
  return instances.since.filter((since) => since <= from).length;
}

/** One that could not be judged for so long is not waited for: places that nobody gets, instances that do not stay. */
export const LONGEST_UNJUDGED_MS = 30 * 60_000;

/** So long after more instances came what they do cannot be told. */
function judgedAfter({ usualPerBusySlot: usual }: PoolSlots): number {
  const jobMs = usual === null || usual <= 0 ? 0 : 1_000 / usual;
  return Math.min(MEASURED_MS + JOBS_BEFORE_JUDGED * jobMs, LONGEST_JUDGED_AFTER_MS);
}

function perMinute(perSecond: number): number {
  return Math.round(perSecond * 600) / 10;
}
