import type { Instant } from "../../kernel/clock.ts";
import type { ScaleState } from "../../model/scale.ts";
import { isJudged, isSaturated, LONGEST_UNJUDGED_MS } from "./saturation.ts";
import { rememberChange } from "./steps.ts";
import type { ScalingInput } from "./types.ts";

type Input = Pick<ScalingInput, "desired" | "state" | "slots" | "policy" | "instances" | "demand">;

/** What is kept of a change of the size to `to`. */
export function stateAfter(input: Input, to: number, now: Instant): ScaleState {
  const { desired: from, state, policy } = input;
  const isUp = to > from;
  return {
    desired: to,
    changedAt: now,
    direction: isUp ? "up" : "down",
    lastUp: isUp ? riseAfter(input, to, now) : (state?.lastUp ?? null),
    recent: rememberChange(state?.recent ?? [], { at: now, by: to - from }, policy),
    // Whose the target is changes by a hand-over alone.
    ...(state?.adopted === undefined ? {} : { adopted: state.adopted }),
  };
}

/**
 * Of rises that follow each other faster than one can be judged the first is kept: with the next in its place none ever would be. A throughput that was bounded by
 * what arrived says nothing of what the instances could do.
 */
function riseAfter(input: Input, to: number, now: Instant): ScaleState["lastUp"] {
  const { desired: from, state, slots } = input;
  const last = state?.lastUp ?? null;
  const isUnderWay = last !== null && last.throughput !== null && state?.direction === "up" && now < last.at + LONGEST_UNJUDGED_MS;
  if (isUnderWay && !isJudged(input, last, now)) return last;
  return { at: now, from, to, throughput: isSaturated(input) ? (slots?.throughput ?? null) : null };
}
