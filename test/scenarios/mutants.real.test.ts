/** More mutants than in `mutants.test.ts`, and what shows one is shrunk: some eighty runs. */
import { expect, test } from "vitest";
import type { Schedule } from "../../src/sim/shrink.ts";
import { hunt, shrinkMutant } from "../../tools/mutants/hunt.ts";
import type { Mutant } from "../../tools/mutants/mutant.ts";
import { MUTANTS } from "../../tools/mutants/mutants.ts";
import { simulate } from "./seeds.ts";

const SEEDS = 50;
const SAMPLE = ["cordon-without-uid", "delete-without-uid", "effect-before-record", "seal-ignores-sessions", "stuck-pool-grows"];

test.each(MUTANTS.filter(({ name }) => SAMPLE.includes(name)))("$name is caught: $rule", { timeout: 120_000 }, async (mutant) => {
  expect(await hunt(mutant, SEEDS)).toMatchObject({ seed: expect.any(Number), caughtBy: expect.any(String), control: "clean" });
});

test("what shows a mutant is shrunk to two faults at most, which break nothing without it", { timeout: 600_000 }, async () => {
  const mutant = MUTANTS.find(({ name }) => name === "spare-off-by-one") as Mutant;
  const shrunk = await shrinkMutant(mutant, SEEDS);
  const schedule = shrunk?.schedule as Schedule;

  expect(schedule.faults.length).toBeLessThanOrEqual(2);
  expect((await simulate(schedule.seed, schedule)).violations).toEqual([]);
});
