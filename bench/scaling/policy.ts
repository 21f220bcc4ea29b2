/** Relevo's own policy, asked as the planner asks it. */
import { scaleSchema, type ScalePolicy, type ScaleState } from "../../src/model/scale.ts";
import type { PoolSlots } from "../../src/model/slots.ts";
import { decideScale } from "../../src/plan/scaling/decide-scale.ts";
import { rememberRecommendation } from "../../src/plan/scaling/recommended.ts";
import { stateAfter } from "../../src/plan/scaling/state-after.ts";
import type { Recommendation } from "../../src/plan/scaling/types.ts";
import { FLOOR, MAX, type Scaler, TARGET, type View } from "./workers.ts";

export const policyOf = (more: Record<string, unknown> = {}): ScalePolicy =>
  scaleSchema.parse({ signal: { kind: "queue", connection: "bench", queue: "jobs" }, target: TARGET, ...more });

/** `heldLooks` counts the looks at which the growth was held back: here nothing is ever sick. */
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
    const outcome = decideScale(
      {
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
          fullSince: view.fullSince === null ? null : view.fullSince * 1_000,
        },
        settledAt: 0,
        recommended,
        heldSince: null,
      },
      now,
    );
    if (outcome.recommendation !== null)
      recommended = rememberRecommendation(recommended, { at: now, size: outcome.recommendation }, policy);
    if (outcome.holds.some(({ code }) => code.startsWith("scale_held"))) held += 1;
    if (outcome.change === null) return null;
    state = stateAfter({ desired: view.desired, state, slots: slotsOf(view), policy }, outcome.desired, now);
    return outcome.desired;
  };
  return { scaler, held: () => held };
}

const MINUTE = 60;
const USUAL = 600;

function slotsOf({ second, ended, busy, ready, taken, slots }: View): PoolSlots {
  const perSlot = (from: number, to: number): number | null => {
    const busySeconds = sum(busy.slice(from, to));
    return busySeconds === 0 ? null : sum(ended.slice(from, to)) / busySeconds;
  };
  const now = second + 1;
  return {
    instances: ready,
    total: slots,
    free: Math.max(0, slots - taken),
    progressing: taken,
    stuck: 0,
    throughput: now < MINUTE ? null : sum(ended.slice(now - MINUTE)) / MINUTE,
    perBusySlot: now < MINUTE ? null : perSlot(now - MINUTE, now),
    usualPerBusySlot: now < MINUTE + USUAL ? null : perSlot(now - MINUTE - USUAL, now - MINUTE),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}
