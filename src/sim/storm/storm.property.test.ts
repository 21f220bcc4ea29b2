/** Random storms: whatever the fleet, no rule is broken and nobody evacuates more than the bound says. A failure prints its seed. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { PRIORITIES } from "../../model/membership.ts";
import { type ApproachName, BASELINES, runStorm } from "./approaches.ts";
import { type Fleet, fleetSchema } from "./fleet.ts";
import { written } from "./testing/fleets.ts";

const SITES = ["home", "near", "far"] as const;
const share = fc.constantFrom(0, 0, 0, 0.2, 0.6, 1);
const seconds = (min: number, max: number) => fc.integer({ min, max }).map((value) => `${value}s`);

const aSite = (name: string) =>
  fc.record({
    name: fc.constant(name),
    provider: fc.constantFrom("aws", "gcp"),
    latency: fc.constantFrom("2ms", "20ms", "140ms"),
    noticeLead: seconds(5, 120),
    bandwidth: fc.constantFrom("2G", "12.5G"),
    lands: fc.record({ perSecond: fc.constantFrom(0.5, 2, 10), thrash: fc.constantFrom(0, 0.5, 2) }),
    configured: fc.record({ perSecond: fc.constantFrom(0.5, 2, 20), burst: fc.integer({ min: 1, max: 10 }) }),
  });

const aSupply = (index: number, classes: readonly string[]) =>
  fc
    .record({
      site: fc.constantFrom(...SITES),
      kind: fc.constantFrom("standby", "on_demand"),
      of: fc.constantFrom(...classes),
      count: fc.integer({ min: 0, max: 15 }),
      launchFails: share,
      checkFails: share,
    })
    .map(({ kind, of, ...rest }) => ({ ...rest, kind, zone: `z${index}`, type: "big", ...(kind === "standby" ? { class: of } : {}) }));

const CLASSES = PRIORITIES.map((priority) => `of-${priority}`);

const aStorm = fc.record({
  seed: fc.integer({ min: 1, max: 1_000_000 }),
  sites: fc.tuple(...SITES.map(aSite)),
  supplies: fc.tuple(...[0, 1, 2, 3].map((index) => aSupply(index, CLASSES))),
  counts: fc.tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 12 })),
  waves: fc.array(fc.record({ at: seconds(0, 60), over: seconds(0, 10), share: fc.integer({ min: 1, max: 3 }) }), {
    minLength: 1,
    maxLength: 3,
  }),
  duplicates: fc.record({ share, copies: fc.integer({ min: 1, max: 5 }), within: seconds(0, 20) }),
  late: fc.record({ share, by: seconds(0, 60) }),
  warmUp: fc.constantFrom("0s", "200ms", "4s"),
  lost: share,
  lingering: fc.record({ share, for: seconds(1, 30) }),
});

type DrawnStorm = typeof aStorm extends fc.Arbitrary<infer T> ? T : never;

function fleetOf({ sites, supplies, counts, waves, warmUp, duplicates, late, lost, lingering }: DrawnStorm): Fleet {
  const classes = PRIORITIES.map((priority, index) => ({ name: `of-${priority}`, priority, count: counts[index] ?? 1 }));
  return fleetSchema.parse({
    ...written({ classes, requestsPerSecond: 20, measureFor: "4m", warmUp }),
    sites,
    supplies,
    notices: { waves, duplicates, late, lost, lingering },
  });
}

test("no rule is broken by the schedule, and nobody evacuates more than the bound (I1, I2, I11–I14)", async () => {
  await fc.assert(
    fc.asyncProperty(aStorm, async (storm) => {
      const { figures, violations } = await runStorm(fleetOf(storm), storm.seed, "relevo");
      expect(violations).toEqual([]);
      expect(figures.evacuated).toBeLessThanOrEqual(figures.bound);
      expect(figures.availability).toBeLessThanOrEqual(1);
    }),
    { numRuns: 60 },
  );
}, 60_000);

test("nor by what is compared with it, as far as it is bound to: requests add up, no place is given twice, no writer is accepted beside another", async () => {
  await fc.assert(
    fc.asyncProperty(aStorm, fc.constantFrom<ApproachName>(...BASELINES), async (storm, approach) => {
      const { figures, violations } = await runStorm(fleetOf(storm), storm.seed, approach);
      expect(violations).toEqual([]);
      expect(figures.evacuated).toBeLessThanOrEqual(figures.bound);
    }),
    { numRuns: 60 },
  );
}, 60_000);
