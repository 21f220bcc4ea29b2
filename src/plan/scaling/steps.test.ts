import { describe, expect, test } from "vitest";
import { rememberChange, stride } from "./steps.ts";
import { NOON, policyOf } from "./testing/builders.ts";

const step = { instances: 4, percent: 50, per: 15_000 };
const change = (secondsAgo: number, by: number) => ({ at: NOON - secondsAgo * 1_000, by });

describe("a step", () => {
  test.each([
    ["is taken whole where it is no further", 12, 10, [], 12, null],
    ["is at most the share", 100, 20, [], 30, 15],
    ["is at most the number where that is more", 100, 2, [], 6, 15],
    ["counts the share of what was before the first of them", 100, 26, [change(5, 6)], 30, 10],
    ["is nothing when all was changed", 100, 30, [change(5, 10)], 30, 10],
    ["does not count what was changed in the other direction", 100, 20, [change(5, -10)], 30, 15],
    ["counts what another replica's clock says is of the next minute", 100, 30, [change(-59, 10)], 30, 74],
    ["does not count what was written before a clock was set back", 100, 20, [change(-3_600, 10)], 30, 15],
    ["goes down the same way", 0, 20, [change(5, -4)], 12, 10],
  ] as const)("%s", (_, wanted, desired, recent, size, untilS) => {
    const { size: found, until } = stride(wanted, desired, step, recent, NOON);
    expect([found, until]).toEqual([size, untilS === null ? null : NOON + untilS * 1_000]);
  });
});

describe("what is kept of changes", () => {
  test("is what a step may still count", () => {
    expect(rememberChange([change(15, 2), change(14, 3)], change(0, 1), policyOf())).toEqual([change(14, 3), change(0, 1)]);
  });

  test("is bounded: those that stand together count as of the later time", () => {
    const many = Array.from({ length: 200 }, (_, index) => change(300 - index, 1));
    const kept = rememberChange(many, change(0, 1), policyOf({ up: { step: { per: "1h" } } }));
    expect([kept.length, kept[0], kept.reduce((sum, { by }) => sum + by, 0)]).toEqual([200, change(299, 2), 201]);
  });
});
