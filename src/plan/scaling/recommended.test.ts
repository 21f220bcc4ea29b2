import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { rememberRecommendation, stable } from "./recommended.ts";
import { NOON, policyOf } from "./testing/builders.ts";
import type { Recommendation } from "./types.ts";

const policy = policyOf({ down: { window: "2m" } });
const at = (second: number, size: number): Recommendation => ({ at: NOON + second * 1_000, size });
const remembered = (looks: readonly Recommendation[]) =>
  looks.reduce<readonly Recommendation[]>((kept, each) => rememberRecommendation(kept, each, policy), []);

describe("what was wanted", () => {
  test("of one size is kept with its first and its last time", () => {
    expect(remembered([at(0, 4), at(5, 4), at(10, 4), at(15, 3)])).toEqual([at(0, 4), at(10, 4), at(15, 3)]);
  });

  test("before the window began is kept once: it was wanted then", () => {
    expect(remembered([at(0, 9), at(5, 4), at(10, 6), at(129, 6), at(131, 5)])).toEqual([at(10, 6), at(129, 6), at(131, 5)]);
  });

  test("is bounded however often somebody looks", () => {
    const looks = Array.from({ length: 5_000 }, (_, index) => ({ at: NOON + index * 37, size: (index * 7_919) % 50 }));
    expect(remembered(looks).length).toBeLessThanOrEqual(604);
  });

  test("gives the same highest as all looks would, to the 200th part of the window", () => {
    const looksOf = fc.array(fc.record({ gap: fc.integer({ min: 1, max: 40_000 }), size: fc.nat(30) }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(looksOf, (steps) => {
        let time = NOON;
        const looks = steps.map(({ gap, size }) => ({ at: (time += gap), size }));
        const kept = remembered(looks);
        const highest = (all: readonly Recommendation[], window: number) => stable(all, 0, 0, window, time, "highest").size;
        // What is merged lies within one part: the exact answer is between those of a window that is a part shorter and one that is a part longer.
        expect(highest(kept, 120_000)).toBeGreaterThanOrEqual(highest(looks, 120_000 - 600));
        expect(highest(kept, 120_000)).toBeLessThanOrEqual(highest(looks, 120_000 + 600));
      }),
      { numRuns: 500 },
    );
  });
});

describe("the window", () => {
  test.each<readonly [string, readonly Recommendation[], number, "lowest" | "highest", number, number | null]>([
    ["begins with what was wanted when it began", [at(-300, 8), at(-100, 2)], 1, "highest", 8, 20],
    ["ends what was wanted with the look after it", [at(-300, 8), at(-130, 2), at(-60, 5)], 1, "highest", 5, 120],
    ["counts what is wanted now", [at(-300, 2)], 6, "highest", 6, null],
    ["counts the size that is where nobody has looked for so long", [at(-10, 2)], 1, "highest", 7, 110],
    ["finds the lowest as well", [at(-300, 9), at(-60, 4), at(-30, 8)], 9, "lowest", 4, 90],
  ])("%s", (_, looks, wanted, most, size, untilS) => {
    expect(stable(looks, wanted, 7, 120_000, NOON, most)).toEqual({ size, until: untilS === null ? null : NOON + untilS * 1_000 });
  });
});
