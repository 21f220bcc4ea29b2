/** The scenarios of scenarios/, each run as a user would: none violates a rule, and hft-500 tells the approaches apart. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readScenario } from "../../src/cli/scenario-file.ts";
import { runSeed } from "../../src/sim/run-seed.ts";
import { composeController } from "../../src/cli/processes/controller.ts";
import { BASELINES, notBeaten, runStorm } from "../../src/sim/storm/approaches.ts";
import type { Fleet } from "../../src/sim/storm/fleet.ts";

function read(name: string): ReturnType<typeof readScenario> {
  const file = join(import.meta.dirname, "../../scenarios", `${name}.yaml`);
  return readScenario(file, readFileSync(file, "utf8"));
}

function fleetOf(name: string): Fleet {
  const scenario = read(name);
  if (scenario.form !== "fleet") throw new Error(`${name} is no fleet`);
  return scenario.fleet;
}

test.each(["spot-reclaim", "my-pools", "controller-outage"])(
  "%s: its pools come through, and no invariant is violated",
  async (name) => {
    const scenario = read(name);
    if (scenario.form !== "pools") throw new Error(`${name} has no pools`);
    const { violations, convergedMs } = await runSeed(1, {
      compose: composeController,
      scenario: scenario.scenario,
      faultsForMs: scenario.runForMs,
      convergeWithinMs: scenario.convergeWithinMs,
      ...(scenario.kinds === undefined ? {} : { kinds: scenario.kinds }),
      ...(scenario.timeline === undefined ? {} : { faults: scenario.timeline(1) }),
    });
    expect(violations).toEqual([]);
    expect(convergedMs).not.toBeNull();
  },
  60_000,
);

const TARGETS = { within90sShare: 0.98, availability: 0.9999, meanAddedMs: 45, ratioToBound: 0.9 };

test.each([
  { seed: 1, baselines: BASELINES },
  { seed: 2, baselines: ["fifo", "herd"] as const },
])(
  "hft-500, seed $seed: the targets hold, and each baseline has fewer within 90 s or more lost (S8, S9, S12)",
  async ({ seed, baselines }) => {
    const fleet = fleetOf("hft-500");
    const { figures, violations } = await runStorm(fleet, seed, "relevo");
    expect(violations).toEqual([]);
    expect(figures).toMatchObject({ instances: 500, evacuated: 500, unsavable: 0, lost: 0 });
    expect(figures.within90s / figures.instances).toBeGreaterThanOrEqual(TARGETS.within90sShare);
    expect(figures.availability).toBeGreaterThanOrEqual(TARGETS.availability);
    expect(figures.addedMs.mean).toBeLessThanOrEqual(TARGETS.meanAddedMs);
    expect(figures.ratioToBound).toBeGreaterThanOrEqual(TARGETS.ratioToBound);
    // One after the other: while one runs, the globals are guarded.
    for (const name of baselines) {
      const baseline = await runStorm(fleet, seed, name);
      expect(notBeaten(figures, { [name]: baseline.figures })).toEqual([]);
    }
  },
  120_000,
);

test("storm-5000: the targets hold", async () => {
  const { figures, violations } = await runStorm(fleetOf("storm-5000"), 1, "relevo");
  expect(violations).toEqual([]);
  expect(figures.instances).toBe(5_000);
  expect(figures.evacuated / figures.bound).toBeGreaterThanOrEqual(TARGETS.ratioToBound);
  expect(figures.within90s / figures.instances).toBeGreaterThanOrEqual(TARGETS.within90sShare);
  expect(figures.availability).toBeGreaterThanOrEqual(TARGETS.availability);
  expect(figures.addedMs.mean).toBeLessThanOrEqual(TARGETS.meanAddedMs);
}, 120_000);
