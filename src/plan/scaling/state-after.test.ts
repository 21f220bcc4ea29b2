import { expect, test } from "vitest";
import { stateAfter } from "./state-after.ts";
import { NOON, policyOf, slots, stateOf } from "./testing/builders.ts";

const lastUp = { at: NOON - 60_000, from: 2, to: 8, throughput: 3 };
const policy = policyOf();

test("a fall keeps the last rise, which is compared with nothing until the next one", () => {
  const state = stateOf({ desired: 8, direction: "up", lastUp, recent: [{ at: NOON - 60_000, by: 6 }] });
  expect(stateAfter({ desired: 8, state, slots: slots(), policy }, 5, NOON)).toEqual({
    desired: 5,
    changedAt: NOON,
    direction: "down",
    lastUp,
    recent: [{ at: NOON, by: -3 }],
  });
});

test("the first decision of a pool is kept too", () => {
  expect(stateAfter({ desired: 0, state: null, slots: null, policy }, 1, NOON)).toEqual({
    desired: 1,
    changedAt: NOON,
    direction: "up",
    lastUp: { at: NOON, from: 0, to: 1, throughput: null },
    recent: [{ at: NOON, by: 1 }],
  });
});
