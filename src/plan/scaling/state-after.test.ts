import { expect, test } from "vitest";
import { stateAfter } from "./state-after.ts";
import { demand, NOON, policyOf, slots, stateOf } from "./testing/builders.ts";

const lastUp = { at: NOON - 60_000, from: 2, to: 8, throughput: 3 };
const policy = policyOf();
const FULL = { serving: 8, coming: 0, since: Array.from({ length: 8 }, () => NOON - 600_000) };

test("a fall keeps the last rise, which is compared with nothing until the next one", () => {
  const state = stateOf({ desired: 8, direction: "up", lastUp, recent: [{ at: NOON - 60_000, by: 6 }] });
  expect(stateAfter({ desired: 8, state, slots: slots(), policy, instances: FULL, demand: demand(90) }, 5, NOON)).toEqual({
    desired: 5,
    changedAt: NOON,
    direction: "down",
    lastUp,
    recent: [{ at: NOON, by: -3 }],
  });
});

test("the first decision of a pool is kept too", () => {
  expect(stateAfter({ desired: 0, state: null, slots: null, policy, instances: FULL, demand: demand(90) }, 1, NOON)).toEqual({
    desired: 1,
    changedAt: NOON,
    direction: "up",
    lastUp: { at: NOON, from: 0, to: 1, throughput: null },
    recent: [{ at: NOON, by: 1 }],
  });
});

test("a rise that follows before the one before it could be judged leaves that one to be judged", () => {
  const state = stateOf({ desired: 8, direction: "up", lastUp });
  const after = (at: number, instances = FULL) =>
    stateAfter({ desired: 8, state, slots: slots(), policy, instances, demand: demand(90) }, 12, at).lastUp;
  const anew = (at: number) => ({ at, from: 8, to: 12, throughput: 2 });
  expect(after(NOON)).toEqual(lastUp);
  expect(after(NOON + 10_000)).toEqual(anew(NOON + 10_000)); // a minute and two jobs after it
  expect(after(NOON + 10_000, { ...FULL, since: [...FULL.since.slice(1), NOON] })).toEqual(lastUp);
  expect(after(NOON + 30 * 60_000, { ...FULL, since: [] })).toEqual(anew(NOON + 30 * 60_000));
});

test("what is done where little waits is not kept: it says what arrives, not what could be done", () => {
  const parts = { desired: 2, state: null, policy, instances: FULL, demand: demand(3) };
  expect(stateAfter({ ...parts, slots: slots({ free: 3 }) }, 4, NOON).lastUp?.throughput).toBeNull();
  expect(stateAfter({ ...parts, slots: slots({ free: 2 }) }, 4, NOON).lastUp?.throughput).toBe(2);
});

test("a rise of which nothing can be told gives way to the next one", () => {
  const state = stateOf({ desired: 8, direction: "up", lastUp: { ...lastUp, throughput: null } });
  const next = stateAfter({ desired: 8, state, slots: slots(), policy, instances: FULL, demand: demand(90) }, 12, NOON - 50_000);
  expect(next.lastUp).toEqual({ at: NOON - 50_000, from: 8, to: 12, throughput: 2 });
});
