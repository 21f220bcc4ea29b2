/** The schedule beside the optimum and beside the bound. A failure prints its seed. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PRIORITIES, type Priority } from "../../model/membership.ts";
import { planEvacuation } from "../../plan/evacuation/schedule.ts";
import { anInput } from "../../plan/evacuation/testing/arbitrary.ts";
import { evacuee, NOON, supply } from "../../plan/evacuation/testing/builders.ts";
import { faultsOf, worthOf } from "../../plan/evacuation/testing/check.ts";
import type { EvacuationInput } from "../../plan/evacuation/types.ts";
import { boundOf, weightOf } from "./bound.ts";
import { compareWorth, exactWorth, type Worth } from "./exact.ts";
import { FlowNetwork } from "./max-flow.ts";

const SEED = 20_260_105;
const savedOf = (worth: Worth): Readonly<Record<Priority, number>> => ({
  critical: worth[0] ?? 0,
  standard: worth[2] ?? 0,
  batch: worth[4] ?? 0,
});
const without = (input: EvacuationInput): EvacuationInput => ({ ...input, reservations: [] });

describe("the schedule and the exact optimum", () => {
  test("over 1,000 random cases of at most 12 evacuees it is never worth more than the optimum, and 0.98 of it", () => {
    const cases = fc.sample(anInput(12), { numRuns: 1_000, seed: SEED }).map(without);
    const pairs = cases.map((input) => [worthOf(input, planEvacuation(input)), exactWorth(input)] as const);
    for (const [own, best] of pairs) expect(compareWorth(own, best)).toBeLessThanOrEqual(0);
    const sum = (of: (worth: Worth) => number, which: 0 | 1) => pairs.reduce((total, pair) => total + of(pair[which]), 0);
    const ratioOf = (of: (worth: Worth) => number) => sum(of, 0) / sum(of, 1);
    const weighted = ratioOf((worth) => weightOf(savedOf(worth)));
    const byClass = PRIORITIES.map((priority) => `${priority} ${ratioOf((worth) => savedOf(worth)[priority]).toFixed(4)}`);
    const same = pairs.filter(([own, best]) => compareWorth(own, best) === 0).length;
    console.log(`seed ${SEED}: ${weighted.toFixed(4)} of the optimum (${byClass.join(", ")}), ${same} of ${pairs.length} are optimal`);
    expect(weighted).toBeGreaterThanOrEqual(0.98);
  });

  test("it finds what the one way out is: each takes the place that the other cannot", () => {
    const evacuees = [evacuee("a", { pool: "default/a" }), evacuee("b", { pool: "default/b" })];
    const supplies = [supply("s", { free: 1 }), supply("t", { free: 1, pool: "default/a", latencyMs: 90 })];
    expect(exactWorth({ now: NOON, evacuees, supplies, reservations: [] })).toEqual([0, 0, 2, 2, 0, 0]);
  });

  test("more than 12 are refused", () => {
    const evacuees = Array.from({ length: 13 }, (_, index) => evacuee(`e-${index}`));
    expect(() => exactWorth({ now: NOON, evacuees, supplies: [], reservations: [] })).toThrow("at most 12");
  });
});

describe("the bound", () => {
  test("is never below the optimum, for the first classes together and for all", () => {
    fc.assert(
      fc.property(anInput(9).map(without), (input) => {
        const { critical, standard, batch } = savedOf(exactWorth(input));
        const { upTo, weighted } = boundOf(input);
        expect(upTo.critical).toBeGreaterThanOrEqual(critical);
        expect(upTo.standard).toBeGreaterThanOrEqual(critical + standard);
        expect(upTo.batch).toBeGreaterThanOrEqual(critical + standard + batch);
        expect(weighted).toBeGreaterThanOrEqual(weightOf({ critical, standard, batch }));
      }),
      { numRuns: 1_000 },
    );
  });

  test("is never below the most of one class alone, which nothing else keeps back", () => {
    fc.assert(
      fc.property(anInput(9).map(without), (input) => {
        const evacuees = input.evacuees.map((each) => ({ ...each, priority: "critical" as const }));
        const [most = 0] = exactWorth({ ...input, evacuees });
        expect(boundOf({ ...input, evacuees }).total).toBeGreaterThanOrEqual(most);
      }),
      { numRuns: 1_000 },
    );
  });

  const storm = (count: number): EvacuationInput => ({
    now: NOON,
    evacuees: Array.from({ length: count }, (_, index) =>
      evacuee(`e-${index}`, {
        pool: `default/p-${index % 20}`,
        priority: PRIORITIES[(index % 20) % 3] ?? "batch",
        deadline: NOON + 20_000 + ((index * 7_919) % 60_000),
        stateMoveMs: (index * 104_729) % 9_000,
      }),
    ),
    supplies: ["x", "y", "z"].flatMap((site, far) => [
      ...Array.from({ length: 20 }, (_, pool) =>
        supply(`${site}/standby/${pool}`, {
          site,
          pool: `default/p-${pool}`,
          free: Math.ceil(count / 100),
          latencyMs: 20 + 35 * far,
          perSecond: count / 150,
          burst: 20,
        }),
      ),
      supply(`${site}/demand`, {
        site,
        kind: "on_demand",
        free: Math.ceil(count / 5),
        readyInMs: 30_000,
        latencyMs: 22 + 35 * far,
        perSecond: count / 150,
        burst: 20,
      }),
    ]),
    reservations: [],
  });

  test.each([500, 5_000])("the schedule of a scarce storm of %i reaches 0.9 of it", (count) => {
    const input = storm(count);
    const plan = planEvacuation(input);
    const worth = savedOf(worthOf(input, plan));
    const { weighted, total } = boundOf(input);
    const saved = worth.critical + worth.standard + worth.batch;
    console.log(`${count}: ${saved} of at most ${total} saved, weighted ${(weightOf(worth) / weighted).toFixed(4)}`);
    if (count <= 500) expect(faultsOf(input, plan)).toEqual([]);
    // Without classes more could be saved: those of batch whose nodes go first wait for the others (I13), and the bound does not know that.
    if (count <= 500) expect(saved / total).toBeGreaterThanOrEqual(0.9);
    expect(weightOf(worth) / weighted).toBeGreaterThanOrEqual(0.9);
  });

  test("control: a schedule that leaves a class out falls below", () => {
    const input = storm(500);
    const { weighted, total } = boundOf(input);
    for (const left of PRIORITIES) {
      const dropped = { ...input, evacuees: input.evacuees.filter(({ priority }) => priority !== left) };
      const worth = savedOf(worthOf(dropped, planEvacuation(dropped)));
      expect(Math.min(weightOf(worth) / weighted, (worth.critical + worth.standard + worth.batch) / total), left).toBeLessThan(0.9);
    }
  });

  test("a flow takes every way there is, also back over one that was taken", () => {
    const net = new FlowNetwork();
    const [source, a, b, c, d, sink] = [net.node(), net.node(), net.node(), net.node(), net.node(), net.node()];
    for (const [from, to] of [
      [source, a],
      [source, b],
      [a, c],
      [a, d],
      [b, c],
      [c, sink],
      [d, sink],
    ] as const)
      net.edge(from, to, 1);
    expect(net.maxFlow(source, sink)).toBe(2);
  });
});
