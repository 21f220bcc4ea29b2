import { expect, test } from "vitest";
import { SteadyClock } from "./steady-clock.ts";

const NOON = Date.UTC(2030, 0, 1, 12);
const HOUR = 3_600_000;

/** Of a machine whose wall clock somebody sets. */
function machine() {
  const state = { wall: NOON, monotonic: 1_000 };
  const clock = {
    now: () => state.wall,
    monotonic: () => state.monotonic,
    after: () => ({ cancel: () => {} }),
    sleep: async () => {},
  };
  const pass = (ms: number): void => {
    state.wall += ms;
    state.monotonic += ms;
  };
  return { clock: new SteadyClock(clock), pass, set: (byMs: number) => void (state.wall += byMs) };
}

test("goes as the wall clock goes while nobody sets that", () => {
  const { clock, pass } = machine();
  pass(1_234);
  expect(clock.now()).toBe(NOON + 1_234);
  pass(HOUR);
  expect(clock.now()).toBe(NOON + 1_234 + HOUR);
});

test("an hour that is put forward or back lengthens or shortens no span by more than half", () => {
  for (const by of [HOUR, -HOUR]) {
    const { clock, pass, set } = machine();
    set(by);
    expect(clock.now()).toBe(NOON);
    pass(10_000);
    expect(clock.now()).toBe(NOON + 10_000 + Math.sign(by) * 5_000);
  }
});

test("what the wall clock says is reached in the end, and then kept", () => {
  const { clock, pass, set } = machine();
  set(-HOUR);
  pass(HOUR);
  expect(clock.now()).toBe(NOON + HOUR / 2);
  pass(HOUR);
  expect(clock.now()).toBe(NOON + HOUR);
  pass(60_000);
  expect(clock.now()).toBe(NOON + HOUR + 60_000);
});

test("it is never earlier than what was written before, unless that is far from being possible", () => {
  const { clock } = machine();
  clock.notBefore(NOON + HOUR);
  expect(clock.now()).toBe(NOON + HOUR);
  clock.notBefore(NOON - HOUR);
  expect(clock.now()).toBe(NOON + HOUR);
  clock.notBefore(NOON + 1_000 * HOUR);
  expect(clock.now()).toBe(NOON + HOUR);
});

test("never goes back", () => {
  const { clock, pass, set } = machine();
  let before = clock.now();
  for (const by of [5_000, -HOUR, 1, -3, HOUR, -7_000]) {
    set(by);
    pass(137);
    expect(clock.now()).toBeGreaterThanOrEqual(before);
    before = clock.now();
  }
});
