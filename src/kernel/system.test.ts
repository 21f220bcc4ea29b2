import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemClock } from "./system.ts";

const DAY_MS = 86_400_000;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

test("a timer that is longer than Node's timers can be fires at its time, not at once", () => {
  const fired: string[] = [];
  systemClock.after(60 * DAY_MS, () => fired.push("60 d"));
  const cancelledEarly = systemClock.after(60 * DAY_MS, () => fired.push("never"));
  cancelledEarly.cancel();
  const cancelledLate = systemClock.after(60 * DAY_MS, () => fired.push("never either"));

  vi.advanceTimersByTime(59 * DAY_MS);
  cancelledLate.cancel();
  expect(fired).toEqual([]);
  vi.advanceTimersByTime(1 * DAY_MS);
  expect(fired).toEqual(["60 d"]);
});
