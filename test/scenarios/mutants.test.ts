/** The checkers can fail: a checker that cannot be made to fail proves nothing. More of them: `mutants.real.test.ts`; all: `mutants.long.test.ts`, `npm run mutants`. */
import { expect, test } from "vitest";
import { hunt } from "../../tools/mutants/hunt.ts";
import { mutate, mutated } from "../../tools/mutants/mutant.ts";
import { MUTANTS } from "../../tools/mutants/mutants.ts";

const SAMPLE = ["spare-off-by-one"];
const SEEDS = 50;

test.each(MUTANTS.filter(({ name }) => SAMPLE.includes(name)))("$name is caught: $rule", { timeout: 60_000 }, async (mutant) => {
  expect(await hunt(mutant, SEEDS)).toMatchObject({ seed: expect.any(Number), caughtBy: expect.any(String), control: "clean" });
});

test("each mutant finds its texts once in the tree as it is, and has a name of its own", () => {
  for (const mutant of MUTANTS) expect(() => mutated(mutant), mutant.name).not.toThrow();
  expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
});

test("a mutant whose text is not there, or there twice, does not apply", () => {
  const mutant = { name: "m", rule: "none", file: "x.ts", find: "a > b", replace: "a >= b", shownBy: { kind: "seeds" } } as const;

  expect(mutate(mutant, "if (a > b) c();")).toBe("if (a >= b) c();");
  for (const source of ["if (a < b) c();", "if (a > b || a > b) c();"])
    expect(() => mutate(mutant, source)).toThrow("The mutant does not apply: m must find its text once in x.ts.");
});
