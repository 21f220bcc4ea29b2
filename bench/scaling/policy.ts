/** Relevo's own policy, asked as the planner asks it. */
import { scaleSchema, type ScalePolicy, type ScaleState } from "../../src/model/scale.ts";
import type { PoolSlots } from "../../src/model/slots.ts";
import { decideScale } from "../../src/plan/scaling/decide-scale.ts";
import { rememberRecommendation } from "../../src/plan/scaling/recommended.ts";
import { stateAfter } from "../../src/plan/scaling/state-after.ts";
import type { Recommendation, ScalingInput } from "../../src/plan/scaling/types.ts";
import { FLOOR, MAX, type Scaler, TARGET, type View } from "./workers.ts";

export const policyOf = (more: Record<string, unknown> = {}): ScalePolicy =>
  scaleSchema.parse({ signal: { kind: "queue", connection: "bench", queue: "jobs" }, target: TARGET, ...more });

/** `held` counts the looks at which the growth was held back. */
export interface Asked {
  readonly scaler: Scaler;
  readonly held: () => number;
}

export function relevo(policy: ScalePolicy): Asked {
  let state: ScaleState | null = null;
  let recommended: readonly Recommendation[] = [];
  let held = 0;
  const scaler: Scaler = (view) => {
    const now = view.second * 1_000;
    if (now % policy.pollEvery !== 0) return null;
    const input: ScalingInput = {
      policy,
      bounds: { floor: FLOOR, max: MAX, quota: null },
      desired: view.desired,
      state,
      demand: {
        reading: { backlog: view.waiting, inFlight: view.taken, oldestAgeMs: null, flow: "queue/jobs", valueAt: null, sourceNow: null },
        readAt: now,
        trouble: null,
      },
      slots: slotsOf(view),
      instances: {
        serving: view.ready,
        coming: view.made - view.ready,
        since: view.readySince.map((second) => second * 1_000),
      },
      settledAt: 0,
      recommended,
      heldSince: null,
    };
    const outcome = decideScale(input, now);
    if (outcome.recommendation !== null)
      recommended = rememberRecommendation(recommended, { at: now, size: outcome.recommendation }, policy);
    if (outcome.holds.some(({ code }) => code.startsWith("scale_held"))) held += 1;
    if (outcome.change === null) return null;
    state = stateAfter(input, outcome.desired, now);
    return outcome.desired;
  };
  return { scaler, held: () => held };
}

const MINUTE = 60;
const USUAL = 600;

function slotsOf({ second, ended, busy, ready, taken, slots, stuck }: View): PoolSlots {
  const perSlot = (from: number, to: number): number | null => {
    const busySeconds = sum(busy.slice(from, to));
    return busySeconds === 0 ? null : sum(ended.slice(from, to)) / busySeconds;
  };
  const now = second + 1;
  return {
    instances: ready,
    total: slots,
    free: Math.max(0, slots - taken),
    progressing: taken - stuck,
    stuck,
    throughput: now < MINUTE ? null : sum(ended.slice(now - MINUTE)) / MINUTE,
    busySeconds: now < MINUTE ? null : sum(busy.slice(now - MINUTE)),
    perBusySlot: now < MINUTE ? null : perSlot(now - MINUTE, now),
    usualPerBusySlot: now < MINUTE + USUAL ? null : perSlot(now - MINUTE - USUAL, now - MINUTE),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}
