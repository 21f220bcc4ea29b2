/** Properties of every decision; a failure prints its seed, and `fc.assert(…, { seed })` takes one. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { DemandView } from "../../model/demand.ts";
import type { ScalePolicy, ScaleState } from "../../model/scale.ts";
import { decideScale } from "./decide-scale.ts";
import { workOf } from "./demand.ts";
import { rememberRecommendation } from "./recommended.ts";
import { stateAfter } from "./state-after.ts";
import { aDemand, aFallback, anInput, aPolicy, someSlots } from "./testing/arbitrary.ts";
import { NOON } from "./testing/builders.ts";
import type { Recommendation, ScalingInput } from "./types.ts";

const RUNS = { numRuns: 1_500 };
const any = anInput(aPolicy({ fallback: aFallback, pausedAt: fc.option(fc.nat(40), { nil: undefined, freq: 4 }) }));
const unpaused = anInput(aPolicy({ fallback: aFallback }));

const limitOf = ({ bounds: { max, quota } }: ScalingInput): number => Math.min(max, quota ?? max);
const floorOf = (input: ScalingInput): number => Math.min(input.bounds.floor, limitOf(input));
const isOutside = (input: ScalingInput): boolean => input.desired < floorOf(input) || input.desired > limitOf(input);

describe("every decision", () => {
  test("is a whole number from the floor to the lower of maximum and quota (I21)", () => {
    fc.assert(
      fc.property(any, (input) => {
        const { desired, recommendation } = decideScale(input, NOON);
        for (const size of [desired, ...(recommendation === null ? [] : [recommendation])]) {
          expect(Number.isSafeInteger(size)).toBe(true);
          expect(size).toBeGreaterThanOrEqual(Math.min(floorOf(input), input.desired));
          expect(size).toBeLessThanOrEqual(Math.max(limitOf(input), 0));
        }
        expect(desired).toBeGreaterThanOrEqual(floorOf(input));
        expect(desired).toBeLessThanOrEqual(limitOf(input));
      }),
      RUNS,
    );
  });

  test("says why it changes the size, or why it does not", () => {
    fc.assert(
      fc.property(any, (input) => {
        const { desired, change, holds, recommendation } = decideScale(input, NOON);
        expect(change === null).toBe(desired === input.desired);
        if (recommendation !== desired && change === null) expect(holds).not.toEqual([]);
      }),
      RUNS,
    );
  });

  test("from a demand that cannot be believed is the one before, or the fallback in its time", () => {
    fc.assert(
      fc.property(unpaused, (input) => {
        const work = workOf(input.demand, input.policy, input.slots, NOON);
        if (work.valid || isOutside(input)) return;
        const { desired } = decideScale(input, NOON);
        const { fallback } = input.policy;
        const isDue = fallback !== undefined && work.since !== null && NOON >= work.since + fallback.after;
        if (!isDue) expect(desired).toBe(input.desired);
        else {
          expect(desired).toBeGreaterThanOrEqual(input.desired);
          expect(desired).toBeLessThanOrEqual(Math.max(input.desired, fallback.instances));
        }
      }),
      RUNS,
    );
  });

  test("never grows while more is stuck than may be, but for a floor that was raised (I23)", () => {
    fc.assert(
      fc.property(unpaused, someSlots, (input, slots) => {
        const busy = slots.progressing + slots.stuck;
        fc.pre(busy > 0 && slots.stuck / busy > input.policy.stuck.share);
        const sick = { ...input, slots };
        if (isOutside(sick)) return;
        expect(decideScale(sick, NOON).desired).toBeLessThanOrEqual(sick.desired);
      }),
      RUNS,
    );
  });

  test("is nearer to what is wanted than before, never beyond it", () => {
    fc.assert(
      fc.property(unpaused, (input) => {
        const { desired, recommendation } = decideScale(input, NOON);
        if (recommendation === null || isOutside(input)) return;
        const [low, high] = [Math.min(input.desired, recommendation), Math.max(input.desired, recommendation)];
        expect(desired).toBeGreaterThanOrEqual(low);
        expect(desired).toBeLessThanOrEqual(high);
      }),
      RUNS,
    );
  });

  test("stays the same until the time at which it says that it is looked at again", () => {
    fc.assert(
      fc.property(any, fc.double({ min: 0, max: 0.999, noNaN: true }), fc.nat(600_000), (input, share, ms) => {
        const first = decideScale(input, NOON);
        const { nextLookAt } = first;
        if (nextLookAt !== null) expect(nextLookAt).toBeGreaterThan(NOON);
        const later = nextLookAt === null ? NOON + ms : Math.floor(NOON + (nextLookAt - NOON) * share);
        expect(decideScale(input, later).desired).toBe(first.desired);
      }),
      RUNS,
    );
  });
});

interface Look {
  readonly afterMs: number;
  readonly demand: DemandView;
  readonly slots: ScalingInput["slots"];
}
const looks = fc.array(
  fc.record({ afterMs: fc.integer({ min: 100, max: 20_000 }), demand: aDemand, slots: fc.option(someSlots, { nil: null }) }),
  { minLength: 20, maxLength: 80 },
);

/** Look after look, as the control loop does it: what was decided is kept, what was wanted is remembered. */
function followed(policy: ScalePolicy, all: readonly Look[]): readonly { readonly at: number; readonly by: number }[] {
  let [now, desired] = [NOON, 4];
  let state: ScaleState | null = null;
  let recommended: readonly Recommendation[] = [];
  const changes: { at: number; by: number }[] = [];
  for (const { afterMs, demand, slots } of all) {
    now += afterMs;
    const seen = { ...demand, readAt: demand.readAt === null ? null : now };
    const input: ScalingInput = {
      policy,
      bounds: { floor: 0, max: 40, quota: null },
      desired,
      state,
      demand: seen,
      slots,
      instances: { serving: desired, coming: 0, since: Array.from({ length: desired }, () => now) },
      settledAt: NOON,
      recommended,
      heldSince: null,
    };
    const outcome = decideScale(input, now);
    if (outcome.recommendation !== null)
      recommended = rememberRecommendation(recommended, { at: now, size: outcome.recommendation }, policy);
    if (outcome.desired === desired) continue;
    changes.push({ at: now, by: outcome.desired - desired });
    state = stateAfter(input, outcome.desired, now);
    desired = outcome.desired;
  }
  return changes;
}

describe("look after look", () => {
  test("it never turns more than once within a cool-down", () => {
    fc.assert(
      fc.property(aPolicy({ fallback: aFallback }), looks, (policy, all) => {
        const changes = followed(policy, all);
        const turns = changes.filter(({ by }, index) => index > 0 && Math.sign(by) !== Math.sign(changes[index - 1]?.by ?? 0));
        for (const [index, { at }] of turns.entries()) {
          const before = turns[index - 1]?.at;
          if (before !== undefined) expect(at - before).toBeGreaterThanOrEqual(policy.cooldown);
        }
      }),
      { numRuns: 250 },
    );
  });

  test("it never changes by more than a step within its time", () => {
    fc.assert(
      fc.property(aPolicy({ fallback: aFallback }), looks, (policy, all) => {
        let size = 4;
        const changes = followed(policy, all).map(({ at, by }) => ({ at, by, before: (size += by) - by }));
        for (const last of changes) {
          const { step } = last.by > 0 ? policy.up : policy.down;
          const same = changes.filter(({ at, by }) => at <= last.at && at > last.at - step.per && Math.sign(by) === Math.sign(last.by));
          const total = same.reduce((sum, { by }) => sum + by, 0);
          // What was changed in the other direction meanwhile counts as having been there.
          const begun = last.before + last.by - total;
          expect(Math.abs(total)).toBeLessThanOrEqual(Math.max(step.instances, Math.ceil((begun * step.percent) / 100)));
        }
      }),
      { numRuns: 250 },
    );
  });
});
