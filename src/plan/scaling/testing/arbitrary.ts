/** Whatever the policy may ever be given, also what should not be. */
import fc from "fast-check";
import { DEMAND_TROUBLES, type DemandView } from "../../../model/demand.ts";
import { scaleSchema, type ScalePolicy, type ScaleState } from "../../../model/scale.ts";
import type { PoolSlots } from "../../../model/slots.ts";
import type { ScalingInput } from "../types.ts";
import { NOON } from "./builders.ts";

const size = fc.nat(40);
const seconds = (most: number) => fc.integer({ min: 1, max: most }).map((count) => `${count}s`);
const step = fc.record({ instances: fc.integer({ min: 1, max: 20 }), percent: fc.integer({ min: 1, max: 200 }), per: seconds(60) });
const past = fc.nat(900_000).map((ms) => NOON - ms);
const orNull = <T>(some: fc.Arbitrary<T>) => fc.option(some, { nil: null });

export const aPolicy = (more: Record<string, fc.Arbitrary<unknown>> = {}): fc.Arbitrary<ScalePolicy> =>
  fc
    .record({
      signal: fc.constant({ kind: "queue", connection: "main", queue: "captures" }),
      target: fc.double({ min: 0.1, max: 50, noNaN: true }),
      tolerance: fc.constantFrom(0, 0.1, 0.5, 1),
      up: fc.record({ window: fc.oneof(fc.constant("0s"), seconds(60)), step }),
      down: fc.record({ window: fc.oneof(fc.constant("0s"), seconds(300)), step }),
      cooldown: fc.oneof(fc.constant("0s"), seconds(120)),
      ...more,
    })
    .map((policy) => scaleSchema.parse(policy));

export const aFallback = fc.oneof(fc.constant(undefined), fc.record({ after: seconds(600), instances: size }));

const count = fc.oneof(fc.nat(2_000), fc.constantFrom(Number.NaN, -1, Number.POSITIVE_INFINITY, 1e300));
export const aDemand: fc.Arbitrary<DemandView> = fc
  .record({
    reading: orNull(fc.record({ backlog: count, inFlight: orNull(count) })),
    readAt: orNull(past),
    trouble: orNull(fc.record({ code: fc.constantFrom(...DEMAND_TROUBLES), detail: fc.constant("as said"), since: past })),
  })
  .map(({ reading, ...rest }) => ({
    ...rest,
    reading: reading && { ...reading, oldestAgeMs: null, flow: "queue/captures", valueAt: null, sourceNow: null },
  }));

const rate = orNull(fc.double({ min: 0, max: 20, noNaN: true }));
export const someSlots: fc.Arbitrary<PoolSlots> = fc
  .record({
    instances: size,
    free: size,
    progressing: size,
    stuck: size,
    throughput: rate,
    busySeconds: rate,
    perBusySlot: rate,
    usualPerBusySlot: rate,
  })
  .map((each) => ({ ...each, total: each.free + each.progressing + each.stuck }));

const aState: fc.Arbitrary<ScaleState> = fc.record({
  desired: size,
  changedAt: past,
  direction: fc.constantFrom("up", "down", null),
  lastUp: orNull(fc.record({ at: past, from: size, to: size, throughput: rate })),
  recent: fc
    .array(fc.record({ at: past, by: fc.integer({ min: -20, max: 20 }) }), { maxLength: 6 })
    .map((all) => all.toSorted((a, b) => a.at - b.at)),
});

export const anInput = (policy: fc.Arbitrary<ScalePolicy>): fc.Arbitrary<ScalingInput> =>
  fc
    .record({
      policy,
      bounds: fc.record({ floor: fc.nat(20), max: size, quota: orNull(size) }),
      desired: size,
      state: orNull(aState),
      demand: aDemand,
      slots: orNull(someSlots),
      instances: fc.record({
        serving: size,
        coming: size,
        since: fc.array(past, { maxLength: 40 }).map((all) => all.toSorted((a, b) => a - b)),
      }),
      settledAt: fc.oneof(past, fc.constant(NOON + 5_000)),
      recommended: fc.array(fc.record({ at: past, size }), { maxLength: 8 }).map((all) => all.toSorted((a, b) => a.at - b.at)),
      heldSince: orNull(past),
    })
    .map((input) => ({ ...input, state: input.state && { ...input.state, desired: input.desired } }));
