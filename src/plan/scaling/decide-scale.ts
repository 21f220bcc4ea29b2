/**
 * How many instances a pool is to have for its demand. Pure.
 *
 * 1. The size is within floor and the lower of maximum and quota, always (I21). Who changed those is followed at once.
 * 2. A demand that cannot be believed changes nothing, until `fallback` says what is to be there then (K11).
 * 3. Up to the lowest and down to the highest that was wanted within a window; in steps; not in the other direction before the cool-down is over.
 * 4. It does not grow where more instances would not help (K6, I23); it may shrink then as ever.
 */
import { formatInstant, type Instant } from "../../kernel/clock.ts";
import { formatDuration } from "../../kernel/units.ts";
import { reason, type Reason } from "../../model/reasons.ts";
import { wantedFor, workOf, type Work } from "./demand.ts";
import { earliest } from "./earliest.ts";
import { stable } from "./recommended.ts";
import { growthHold, isBlind, settling } from "./saturation.ts";
import { isSetBack } from "./set-back.ts";
import { stride } from "./steps.ts";
import type { ScalingInput, ScalingOutcome } from "./types.ts";

interface Limits {
  readonly floor: number;
  readonly limit: number;
  readonly bound: "size.max" | "quota";
}

export function decideScale(input: ScalingInput, now: Instant): ScalingOutcome {
  const limits = limitsOf(input.bounds);
  if (input.policy.pausedAt !== undefined) return paused(input, input.policy.pausedAt, limits);
  const work = workOf(input.demand, input.policy, input.slots, now);
  const recommendation = work.valid ? clamp(wantedFor(work.pieces, input.policy.target), limits) : null;
  const outside = outsideOf(input, limits);
  if (outside !== undefined) return { recommendation, ...outside, nextLookAt: now + 1 };
  return work.valid ? follow(input, limits, work, now) : withoutDemand(input, limits, work, now);
}

function limitsOf({ floor, max, quota }: ScalingInput["bounds"]): Limits {
  const limit = Math.min(max, quota ?? max);
  return { floor: Math.min(floor, limit), limit, bound: limit < max ? "quota" : "size.max" };
}

function clamp(size: number, { floor, limit }: Limits): number {
  return Math.max(floor, Math.min(limit, size));
}

function paused({ desired }: ScalingInput, pausedAt: number, limits: Limits): ScalingOutcome {
  const size = clamp(pausedAt, limits);
  const why = reason("scale_paused", { pausedAt, size });
  return { recommendation: null, desired: size, change: size === desired ? null : why, holds: [why], nextLookAt: null };
}

function outsideOf({ desired }: ScalingInput, limits: Limits): Pick<ScalingOutcome, "desired" | "change" | "holds"> | undefined {
  const to = clamp(desired, limits);
  if (to === desired) return undefined;
  const { floor, limit, bound } = limits;
  const which = to > desired ? "size.floor" : bound;
  return { desired: to, change: reason("scale_bounds", { floor, limit, bound: which, from: desired, to }), holds: [] };
}

/** The last decision holds; after a time at least what is declared for it. */
function withoutDemand(input: ScalingInput, limits: Limits, work: Extract<Work, { valid: false }>, now: Instant): ScalingOutcome {
  const { desired, policy } = input;
  const { trouble, detail, since } = work;
  const why =
    trouble === "unread" ? reason("scale_demand_unread", { desired }) : reason("scale_demand_invalid", { trouble, detail, desired });
  const { fallback } = policy;
  const stays = { recommendation: null, desired, change: null, holds: [why] };
  if (fallback === undefined || since === null) return { ...stays, nextLookAt: null };
  if (now < since + fallback.after) return { ...stays, nextLookAt: since + fallback.after };
  const wanted = clamp(fallback.instances, limits);
  // What it stands at is remembered: the first valid value is one of many within the window, and no jump down.
  if (wanted <= desired) return { ...stays, recommendation: desired, nextLookAt: null };
  const to = (size: number): Reason => reason("scale_fallback", { since: formatInstant(since), trouble, from: desired, to: size });
  const outcome = approach(input, wanted, to, now);
  return { ...outcome, recommendation: outcome.desired, holds: [...outcome.holds, why] };
}

function follow(input: ScalingInput, limits: Limits, work: Extract<Work, { valid: true }>, now: Instant): ScalingOutcome {
  const { policy, desired } = input;
  const asked = wantedFor(work.pieces, policy.target);
  const wanted = clamp(asked, limits);
  // What is taken is told by slots alone, and nobody had the time to answer: that is no idleness.
  if (wanted < desired && input.demand.reading?.inFlight === null && isBlind(input) && now < input.settledAt)
    return { recommendation: null, desired, change: null, holds: [settling(input, asked)], nextLookAt: input.settledAt };
  const aim = aimOf(input, wanted, now);
  const params = { work: work.pieces, target: policy.target, from: desired };
  const because = (to: number): Reason =>
    to > desired ? reason("scale_up", { ...params, to, coming: input.instances.coming }) : reason("scale_down", { ...params, to });
  const outcome = approach(input, aim.size, because, now);
  return {
    ...outcome,
    recommendation: wanted,
    holds: [...outcome.holds, ...aim.holds, ...bounded(asked, limits)],
    nextLookAt: earliest(outcome.nextLookAt, aim.until, work.until),
  };
}

function bounded(asked: number, { limit, bound }: Limits): readonly Reason[] {
  if (asked <= limit) return [];
  return [reason(bound === "quota" ? "scale_at_quota" : "scale_at_max", { wanted: asked, limit })];
}

interface Aim {
  readonly size: number;
  readonly holds: readonly Reason[];
  readonly until: Instant | null;
}

/** What is wanted for long enough, and far enough from what is. */
function aimOf({ policy, desired, recommended }: ScalingInput, wanted: number, now: Instant): Aim {
  if (wanted === desired) return { size: desired, holds: [], until: null };
  const isUp = wanted > desired;
  const { window } = isUp ? policy.up : policy.down;
  const { size, until } = stable(recommended, wanted, desired, window, now, isUp ? "lowest" : "highest");
  // Before, the other direction was wanted: it stays as it is.
  const aim = isUp ? Math.max(size, desired) : Math.min(size, desired);
  const waits = until === null ? [] : [waitsForWindow(wanted, size, window, until, isUp)];
  // What has no work at all is no small difference.
  if (wanted === 0 || aim === desired || Math.abs(aim - desired) > policy.tolerance * desired) return { size: aim, holds: waits, until };
  const near = reason("scale_tolerance", { wanted: aim, tolerance: Math.round(policy.tolerance * 100), desired });
  return { size: desired, holds: [near, ...waits], until };
}

function waitsForWindow(wanted: number, size: number, windowMs: number, until: Instant, isUp: boolean): Reason {
  const params = { wanted, window: formatDuration(windowMs), until: formatInstant(until) };
  return isUp ? reason("scale_up_window", { ...params, lowest: size }) : reason("scale_down_window", { ...params, highest: size });
}

/** When the size may go in this direction again, after a change in the other one. */
function coolDownEnd({ state, policy }: ScalingInput, direction: "up" | "down", now: Instant): Instant {
  if (state === null || state.direction === null || state.direction === direction) return now;
  return isSetBack(state.changedAt, policy.cooldown, now) ? now : state.changedAt + policy.cooldown;
}

/** From the size that is towards the one that is wanted, as far as may be gone now. */
function approach(input: ScalingInput, wanted: number, because: (to: number) => Reason, now: Instant): ScalingOutcome {
  const { policy, desired, state } = input;
  const stays = { recommendation: null, desired, change: null, holds: [], nextLookAt: null };
  if (wanted === desired) return stays;
  const direction = wanted > desired ? "up" : "down";
  const held = direction === "up" ? growthHold(input, wanted, now) : undefined;
  if (held !== undefined) return { ...stays, holds: [held.reason], nextLookAt: held.until };
  const coolAt = coolDownEnd(input, direction, now);
  if (now < coolAt)
    return { ...stays, holds: [reason("scale_cooldown", { wanted, desired, until: formatInstant(coolAt) })], nextLookAt: coolAt };
  const { step } = policy[direction];
  const { size, most, until } = stride(wanted, desired, step, state?.recent ?? [], now);
  const holds = until === null ? [] : [reason("scale_step", { wanted, most, per: formatDuration(step.per), until: formatInstant(until) })];
  return { ...stays, desired: size, change: size === desired ? null : because(size), holds, nextLookAt: until };
}
