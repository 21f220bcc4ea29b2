import { describe, expect, test } from "vitest";
import { sentenceOf } from "../../model/reasons.ts";
import { decideScale } from "./decide-scale.ts";
import { demand, type InputParts, NOON, scalingInput, slots, stateOf, troubled } from "./testing/builders.ts";

/** `size change holds`, at noon unless said otherwise. */
function decided(input: InputParts, now = NOON): string {
  const { desired, change, holds } = decideScale(scalingInput(input), now);
  return [String(desired), change?.code ?? "stays", ...holds.map(({ code }) => code)].join(" ");
}

const table = (rows: readonly (readonly [name: string, input: InputParts, expected: string])[]): void => {
  test.each(rows)("%s", (_, input, expected) => expect(decided(input)).toBe(expected));
};

describe("the size that the work asks for", () => {
  table([
    ["is as many as it takes for each to have no more than its target", { demand: demand(41) }, "5 scale_up"],
    ["counts what is taken as the source tells it", { demand: demand(11, 30) }, "5 scale_up"],
    [
      "counts what is taken as the slots tell it where the source does not",
      { demand: demand(11, null), slots: slots({ progressing: 30 }) },
      "5 scale_up",
    ],
    [
      "does not count what stuck slots hold: no further instance does that",
      { demand: demand(0, null), slots: slots({ progressing: 20, stuck: 5 }), desired: 2 },
      "2 stays",
    ],
    [
      "is not less because a new controller has asked no slots yet what they have",
      { demand: demand(0, null), settledAt: NOON + 5_000, policy: { down: { window: "0s" } } },
      "2 stays scale_settling",
    ],
    [
      "is less where slots are never told",
      { demand: demand(0, null), settledAt: NOON, policy: { down: { window: "0s" } } },
      "1 scale_down",
    ],
    ["stays where it is what it should be", { demand: demand(20) }, "2 stays"],
    ["comes from zero with the first piece of work", { demand: demand(1), desired: 0, bounds: { floor: 0 } }, "1 scale_up"],
    ["goes to zero where the floor allows it", { demand: demand(0), desired: 1, bounds: { floor: 0 } }, "0 scale_down"],
    [
      "goes to zero from anywhere: nothing is no small difference",
      { demand: demand(0), desired: 1, bounds: { floor: 0 }, policy: { tolerance: 1 } },
      "0 scale_down",
    ],
    ["stays at the floor without work", { demand: demand(0), desired: 2, bounds: { floor: 2 } }, "2 stays"],
    [
      "is 42 for 42 messages and not 84, however small the target is",
      { demand: demand(42), desired: 40, policy: { target: 0.5, tolerance: 0 } },
      "42 scale_up",
    ],
    [
      "counts those that are coming as there: work does not ask for them twice",
      { demand: demand(42), desired: 42, policy: { target: 1 }, instances: { serving: 0, coming: 42, since: [] } },
      "42 stays",
    ],
    [
      "is not raised by a division that comes out a little above",
      { demand: demand(21), policy: { target: 1.4, tolerance: 0 }, desired: 15 },
      "15 stays",
    ],
    ["stays within the tolerance", { demand: demand(211), desired: 20 }, "20 stays scale_tolerance"],
    ["leaves the tolerance", { demand: demand(221), desired: 20 }, "23 scale_up"],
  ]);
});

describe("its bounds (I21)", () => {
  table([
    [
      "the maximum holds, and says so",
      { demand: demand(1_000), desired: 9, bounds: { max: 10 }, policy: { tolerance: 0 } },
      "10 scale_up scale_at_max",
    ],
    ["a quota holds, and says so", { demand: demand(1_000), desired: 4, bounds: { quota: 5 } }, "5 scale_up scale_at_quota"],
    ["a maximum that was lowered is followed at once", { demand: demand(1_000), desired: 20, bounds: { max: 10 } }, "10 scale_bounds"],
    [
      "a floor that was raised is followed at once, whatever the demand says",
      { demand: troubled("unreachable"), desired: 2, bounds: { floor: 6 } },
      "6 scale_bounds",
    ],
    ["a floor above the maximum is none: the maximum holds", { demand: demand(0), desired: 8, bounds: { floor: 12, max: 8 } }, "8 stays"],
    ["a quota below the floor holds", { demand: demand(0), desired: 8, bounds: { floor: 8, quota: 3 } }, "3 scale_bounds"],
    ["a pause holds whatever the demand", { demand: demand(1_000), policy: { pausedAt: 2 } }, "2 stays scale_paused"],
    ["a pause is followed at once", { demand: demand(0), desired: 2, policy: { pausedAt: 30 } }, "30 scale_paused scale_paused"],
    ["a pause at nothing is held at the floor", { demand: demand(0), desired: 2, policy: { pausedAt: 0 } }, "1 scale_paused scale_paused"],
    [
      "a pause at nothing stops all where the floor is 0",
      { demand: demand(90), desired: 2, bounds: { floor: 0 }, policy: { pausedAt: 0 } },
      "0 scale_paused scale_paused",
    ],
    ["a pause needs no valid demand", { demand: troubled("missing"), desired: 2, policy: { pausedAt: 3 } }, "3 scale_paused scale_paused"],
  ]);
});

describe("a demand that cannot be believed (K11)", () => {
  table([
    ["holds the last decision when the number is none", { demand: troubled("not_a_number") }, "2 stays scale_demand_invalid"],
    ["when it is negative", { demand: troubled("negative") }, "2 stays scale_demand_invalid"],
    ["when it is missing", { demand: troubled("missing") }, "2 stays scale_demand_invalid"],
    ["when the source answers with an error", { demand: troubled("unreachable") }, "2 stays scale_demand_invalid"],
    ["when it is another flow's", { demand: troubled("other_flow") }, "2 stays scale_demand_invalid"],
    ["when it was not read yet", { demand: { reading: null, readAt: null, trouble: null } }, "2 stays scale_demand_unread"],
    ["when NaN comes through all the same", { demand: demand(Number.NaN) }, "2 stays scale_demand_invalid"],
    ["when −1 does", { demand: demand(-1) }, "2 stays scale_demand_invalid"],
    ["when no end of it does", { demand: demand(Number.POSITIVE_INFINITY) }, "2 stays scale_demand_invalid"],
    ["when what is taken is negative", { demand: demand(5, -3) }, "2 stays scale_demand_invalid"],
    ["when nobody has read it for longer than it is good for", { demand: demand(500, 0, NOON - 65_000) }, "2 stays scale_demand_invalid"],
    ["keeps zero at zero", { demand: troubled("unreachable"), desired: 0, bounds: { floor: 0 } }, "0 stays scale_demand_invalid"],
  ]);

  test("that returns is followed from where it was, and shrinks only after a whole window", () => {
    const before = { desired: 8, recommended: [{ at: NOON - 900_000, size: 8 }] };
    expect(decided({ ...before, demand: troubled("not_a_number") })).toBe("8 stays scale_demand_invalid");
    expect(decided({ ...before, demand: demand(5) })).toBe("8 stays scale_down_window");
    const later = { desired: 8, recommended: [...before.recommended, { at: NOON, size: 1 }], demand: demand(5, 0, NOON + 180_000) };
    expect([decided(later, NOON + 179_999), decided(later, NOON + 180_000)]).toEqual([
      "8 stays scale_down_window",
      "4 scale_down scale_step",
    ]);
  });
});

describe("the fallback", () => {
  const since = NOON - 300_000;
  const policy = { fallback: { after: "5m", instances: 4 } };
  test("lifts to what is declared, from zero too, when nothing valid was read for so long (K11)", () => {
    const input = { demand: troubled("unreachable", since + 1_000), policy, desired: 0, bounds: { floor: 0 } };
    expect([decided(input, NOON - 1), decided(input)]).toEqual(["0 stays scale_demand_invalid", "4 scale_fallback scale_demand_invalid"]);
    expect(decideScale(scalingInput(input), NOON - 1).nextLookAt).toBe(NOON);
  });
  test("lifts where nothing valid was ever read", () => {
    const demandView = { reading: null, readAt: null, trouble: { code: "not_available", detail: "no such connection", since } } as const;
    expect(decided({ demand: demandView, policy, desired: 0, bounds: { floor: 0 } })).toBe("4 scale_fallback scale_demand_invalid");
  });
  test("never lowers what was decided", () => {
    expect(decided({ demand: troubled("unreachable", since), policy, desired: 9 })).toBe("9 stays scale_demand_invalid");
  });
  test("does not lift above the maximum, nor in one step more than a step", () => {
    expect(decided({ demand: troubled("unreachable", since), policy, bounds: { max: 3 } })).toBe("3 scale_fallback scale_demand_invalid");
    const many = { fallback: { after: "5m", instances: 50 } };
    expect(decided({ demand: troubled("unreachable", since), policy: many })).toBe("6 scale_fallback scale_step scale_demand_invalid");
  });
  test("is what is wanted as long as it holds, so that the first valid value does not end it at once", () => {
    const lifted = decideScale(scalingInput({ demand: troubled("unreachable", since), policy }), NOON);
    const held = decideScale(scalingInput({ demand: troubled("unreachable", since), policy, desired: 4 }), NOON);
    expect([lifted.recommendation, held.recommendation]).toEqual([4, 4]);
    const before = decideScale(scalingInput({ demand: troubled("unreachable", since + 1_001), policy, desired: 4 }), NOON);
    expect(before.recommendation).toBeNull();
  });
  test("does not lift what is stuck", () => {
    expect(decided({ demand: troubled("unreachable", since), policy, slots: slots({ progressing: 4, stuck: 4 }) })).toBe(
      "2 stays scale_held_stuck scale_demand_invalid",
    );
  });
});

describe("windows, steps and the cool-down", () => {
  const rose = (secondsAgo: number) =>
    stateOf({ desired: 8, changedAt: NOON - secondsAgo * 1_000, direction: "up", recent: [{ at: NOON - secondsAgo * 1_000, by: 4 }] });
  table([
    [
      "it shrinks to the highest that was wanted in the window",
      {
        desired: 8,
        demand: demand(10),
        recommended: [
          { at: NOON - 400_000, size: 8 },
          { at: NOON - 200_000, size: 2 },
          { at: NOON - 100_000, size: 5 },
        ],
      },
      "5 scale_down scale_down_window",
    ],
    [
      "a controller that is new waits for a whole window before it shrinks",
      { desired: 8, demand: demand(10), recommended: [] },
      "8 stays scale_down_window",
    ],
    [
      "it grows to the lowest that was wanted in the window",
      {
        desired: 2,
        demand: demand(90),
        policy: { up: { window: "1m" } },
        recommended: [
          { at: NOON - 90_000, size: 4 },
          { at: NOON - 30_000, size: 6 },
        ],
      },
      "4 scale_up scale_up_window",
    ],
    ["it grows at once without a window", { desired: 2, demand: demand(40), recommended: [] }, "4 scale_up"],
    ["it grows by the larger of number and share", { desired: 10, demand: demand(900) }, "20 scale_up scale_step"],
    ["it comes from zero by the number", { desired: 0, demand: demand(900), bounds: { floor: 0 } }, "4 scale_up scale_step"],
    ["what was added within the time is counted", { desired: 8, demand: demand(900), state: rose(5) }, "8 stays scale_step"],
    ["and no longer when that is over", { desired: 8, demand: demand(900), state: rose(15) }, "16 scale_up scale_step"],
    ["it shrinks by half at most", { desired: 40, demand: demand(10) }, "20 scale_down scale_step"],
    [
      "a cool-down of a clock that was set back by an hour since is none",
      { desired: 8, demand: demand(10), state: rose(-3_600) },
      "4 scale_down scale_step",
    ],
    ["it does not shrink within the cool-down after a rise", { desired: 8, demand: demand(10), state: rose(29) }, "8 stays scale_cooldown"],
    ["and does when that is over", { desired: 8, demand: demand(10), state: rose(30) }, "4 scale_down scale_step"],
    [
      "it does not grow within the cool-down after it shrank",
      { desired: 8, demand: demand(300), state: stateOf({ changedAt: NOON - 1_000, direction: "down" }) },
      "8 stays scale_cooldown",
    ],
    [
      "the cool-down does not keep it from going on",
      { desired: 8, demand: demand(300), state: stateOf({ changedAt: NOON - 20_000, direction: "up" }) },
      "16 scale_up scale_step",
    ],
  ]);

  test("each says when time alone ends it", () => {
    const until = (input: InputParts) => decideScale(scalingInput({ demand: demand(10), ...input }), NOON).nextLookAt;
    expect(until({ desired: 8, recommended: [] })).toBe(NOON + 65_000); // by then nobody has read it again
    expect(until({ desired: 8, state: rose(29) })).toBe(NOON + 1_000);
    expect(until({ desired: 8, demand: demand(900), state: rose(5) })).toBe(NOON + 10_000);
    expect(
      until({
        desired: 8,
        recommended: [
          { at: NOON - 400_000, size: 8 },
          { at: NOON - 170_000, size: 1 },
        ],
      }),
    ).toBe(NOON + 10_000);
  });

  test("a change says how much work it is for", () => {
    const { change } = decideScale(scalingInput({ demand: demand(31, 10), instances: { serving: 1, coming: 1 } }), NOON);
    expect(change && sentenceOf(change)).toBe(
      "41 pieces of work wait or are taken and one instance is to have 10: 2 instances (1 of them still coming) become 5",
    );
  });
});
