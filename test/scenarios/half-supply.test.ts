/** Half of everything that could take over, and notices that come in waves: nobody knows who follows, and still the right half survives (S12). */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readScenario } from "../../src/cli/scenario-file.ts";
import { planEvacuation } from "../../src/plan/evacuation/schedule.ts";
import { runStorm } from "../../src/sim/storm/approaches.ts";
import type { Fleet } from "../../src/sim/storm/fleet.ts";

const FILE = new URL("../../scenarios/hft-500.yaml", import.meta.url);

function halved(): Fleet {
  const scenario = readScenario("hft-500.yaml", readFileSync(FILE, "utf8"));
  if (scenario.form !== "fleet") throw new Error("hft-500 is no fleet");
  const { fleet } = scenario;
  return { ...fleet, supplies: fleet.supplies.map((each) => ({ ...each, count: Math.floor(each.count / 2) })) };
}

test.each([1, 2])(
  "seed %i: nearly all that could be saved are, and of the critical nearly all for whom there is standby",
  async (seed) => {
    const fleet = halved();
    const standby = fleet.supplies.filter(({ kind }) => kind === "standby").reduce((sum, { count }) => sum + count, 0);
    const { figures, violations } = await runStorm(fleet, seed, "relevo");
    expect(violations).toEqual([]);
    expect(figures.ratioToBound).toBeGreaterThanOrEqual(0.98);
    // Only standby serves a critical one within its 30 s.
    expect(figures.byClass.critical?.evacuated).toBeGreaterThanOrEqual(0.95 * standby);
    // Nothing held back: what the first wave of a lower class took is missing for the second of the critical.
    const unaware = await runStorm(fleet, seed, "relevo", ({ exposed: _, ...input }) => planEvacuation(input));
    expect(unaware.figures.byClass.critical?.evacuated).toBeLessThan(0.8 * standby);
    expect(unaware.figures.evacuated).toBeLessThan(figures.evacuated);
  },
  60_000,
);
