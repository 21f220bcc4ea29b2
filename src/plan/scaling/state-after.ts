import type { Instant } from "../../kernel/clock.ts";
import type { ScaleState } from "../../model/scale.ts";
import { rememberChange } from "./steps.ts";
import type { ScalingInput } from "./types.ts";

/** What is kept of a change of the size to `to`. */
export function stateAfter(
  { desired: from, state, slots, policy }: Pick<ScalingInput, "desired" | "state" | "slots" | "policy">,
  to: number,
  now: Instant,
): ScaleState {
  const isUp = to > from;
  return {
    desired: to,
    changedAt: now,
    direction: isUp ? "up" : "down",
    lastUp: isUp ? { at: now, from, to, throughput: slots?.throughput ?? null } : (state?.lastUp ?? null),
    recent: rememberChange(state?.recent ?? [], { at: now, by: to - from }, policy),
  };
}
