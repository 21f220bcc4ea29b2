/** What shows a mutant is shrunk: some eighty runs. */
import { expect, test } from "vitest";
import type { Schedule } from "../../src/sim/shrink.ts";
import { shrinkMutant } from "../../tools/mutants/hunt.ts";
import type { Mutant } from "../../tools/mutants/mutant.ts";
import { MUTANTS } from "../../tools/mutants/mutants.ts";
import { simulate } from "./seeds.ts";

const SEEDS = 50;

test("what shows a mutant is shrunk to two faults at most, which break nothing without it", { timeout: 600_000 }, async () => {
  const mutant = MUTANTS.find(({ name }) => name === "spare-off-by-one") as Mutant;
  const shrunk = await shrinkMutant(mutant, SEEDS);
  const schedule = shrunk?.schedule as Schedule;

  expect(schedule.faults.length).toBeLessThanOrEqual(2);
  expect((await simulate(schedule.seed, schedule)).violations).toEqual([]);
});
