/** Random evacuations: scarce places, slow sites, late notices, all at once. */
import fc from "fast-check";
import { PRIORITIES } from "../../../model/membership.ts";
import type { EvacuationInput } from "../types.ts";
import { evacuee, NOON, supply } from "./builders.ts";

export const POOLS = ["default/a", "default/b", "default/c"];
/** A pool has one priority. */
const PRIORITY_OF = new Map(POOLS.map((pool, index) => [pool, PRIORITIES[index] ?? "batch"]));

const anEvacuee = fc
  .record({
    pool: fc.constantFrom(...POOLS),
    deadline: fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 0, max: 40_000 }) }, { weight: 1, arbitrary: fc.constant(null) }),
    stateMoveMs: fc.integer({ min: 0, max: 8_000 }),
    warmUpMs: fc.integer({ min: 0, max: 2_000 }),
    noticed: fc.integer({ min: 0, max: 20_000 }),
  })
  .map(({ pool, deadline, noticed, ...rest }) => ({
    ...rest,
    pool,
    priority: PRIORITY_OF.get(pool) ?? "batch",
    noticedAt: NOON - noticed,
    deadline: deadline === null ? null : NOON + deadline,
  }));

const SITES = ["x", "y", "z"] as const;
const aSite = fc.record({
  perSecond: fc.constantFrom(0.2, 0.5, 1, 3, 100),
  burst: fc.integer({ min: 1, max: 5 }),
  share: fc.double({ min: 0, max: 1, noNaN: true }),
});

const aSupply = fc.record({
  site: fc.constantFrom(...SITES),
  kind: fc.constantFrom("standby" as const, "on_demand" as const),
  pool: fc.constantFrom(...POOLS),
  latencyMs: fc.constantFrom(10, 20, 80, 140),
  free: fc.integer({ min: 0, max: 6 }),
  heat: fc.constantFrom(0, 0, 0, 0.9),
  passing: fc.constantFrom(true, true, true, false),
  preemptible: fc.integer({ min: 0, max: 3 }),
});

export const anInput = (most: number): fc.Arbitrary<EvacuationInput> =>
  fc
    .record({
      evacuees: fc.array(anEvacuee, { maxLength: most }),
      supplies: fc.array(aSupply, { maxLength: 6 }),
      sites: fc.tuple(aSite, aSite, aSite),
      held: fc.array(fc.tuple(fc.nat(most), fc.nat(6), fc.integer({ min: -5, max: 10_000 })), { maxLength: 4 }),
    })
    .map(({ evacuees, supplies, sites, held }) => {
      const made = supplies.map(({ kind, pool, preemptible, free, site, ...rest }, index) => {
        const { perSecond, burst, share } = sites[SITES.indexOf(site)] ?? sites[0];
        const isStandby = kind === "standby";
        const priority = PRIORITY_OF.get(pool) ?? "batch";
        return supply(`s-${index}`, {
          ...rest,
          site,
          kind,
          free,
          perSecond,
          burst,
          tokens: share * burst,
          pool: isStandby ? pool : null,
          readyInMs: isStandby ? 0 : 12_000,
          preemptible:
            isStandby && priority === "batch" && preemptible > 0
              ? { priority, count: Math.min(free, preemptible), readyInMs: 4_000 }
              : null,
        });
      });
      return {
        now: NOON,
        evacuees: evacuees.map((each, index) => evacuee(`e-${String(index).padStart(3, "0")}`, each)),
        supplies: made,
        reservations: held.map(([who, where, until]) => ({
          evacuee: `e-${String(who).padStart(3, "0")}`,
          supply: `s-${where}`,
          until: NOON + until,
        })),
      };
    });
