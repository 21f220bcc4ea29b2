/** Every small fault in the program is caught: `npm run mutants` shows by which seed. */
import { expect, test } from "vitest";
import { hunt } from "../../tools/mutants/hunt.ts";
import { MUTANTS } from "../../tools/mutants/mutants.ts";

const SEEDS = 2_000;

test("there are at least forty mutants", () => {
  expect(MUTANTS.length).toBeGreaterThanOrEqual(40);
});

test.each(MUTANTS)("$name is caught: $rule", { timeout: 900_000 }, async (mutant) => {
  expect(await hunt(mutant, SEEDS)).toMatchObject({ seed: expect.any(Number), caughtBy: expect.any(String), control: "clean" });
});
