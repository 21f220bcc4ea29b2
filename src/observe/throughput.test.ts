import { expect, test } from "vitest";
import { ThroughputWindow } from "./throughput.ts";

const NOTHING = { throughput: null, busySeconds: null, perBusySlot: null, usualPerBusySlot: null };

/** Every second so many jobs end, in so many busy slots. */
function work(window: ThroughputWindow, from: number, seconds: number, ended: number, busy: number): number {
  for (let second = 1; second <= seconds; second += 1) {
    const at = from + second * 1_000;
    window.add(at - 1_000, at, ended, busy * 1_000);
  }
  return from + seconds * 1_000;
}

test("nothing is told before a minute was watched, and nothing is usual before two", () => {
  const window = new ThroughputWindow(0);
  expect(window.figures(work(window, 0, 59, 4, 8))).toEqual(NOTHING);
  expect(window.figures(work(window, 59_000, 1, 4, 8))).toMatchObject({ usualPerBusySlot: null });
  expect(window.figures(work(window, 60_000, 70, 4, 8)).usualPerBusySlot).toBeCloseTo(0.5);
});

test("throughput is of the last minute, what is usual of the ten before it", () => {
  const window = new ThroughputWindow(0);
  let now = work(window, 0, 600, 4, 8);
  now = work(window, now, 70, 1, 8);
  const { throughput, perBusySlot, usualPerBusySlot } = window.figures(now);

  expect(throughput).toBeCloseTo(1, 0);
  expect(perBusySlot).toBeCloseTo(0.125);
  expect(usualPerBusySlot).toBeGreaterThan(0.45);
});

test("where nothing was busy there is nothing per slot, and no throughput is zero", () => {
  const window = new ThroughputWindow(0);
  expect(window.figures(120_000)).toEqual({ throughput: 0, busySeconds: 0, perBusySlot: null, usualPerBusySlot: null });
  const now = work(window, 120_000, 120, 0, 8);
  expect(window.figures(now)).toMatchObject({ throughput: 0, perBusySlot: 0, usualPerBusySlot: 0 });
  expect(window.figures(now).busySeconds).toBeCloseTo(480, -2);
});

test("what is older than eleven minutes is forgotten", () => {
  const window = new ThroughputWindow(0);
  work(window, 0, 600, 100, 1);
  const now = work(window, 600_000, 665, 1, 1);
  expect(window.figures(now).usualPerBusySlot).toBeCloseTo(1);
});

test("what was done while nobody could be asked is of that whole time, and no minute of many times the work (K6)", () => {
  const window = new ThroughputWindow(0);
  const lost = work(window, 0, 120, 4, 8);
  const back = lost + 300_000;
  window.add(lost, back, 4 * 300, 8 * 300_000);
  const now = work(window, back, 5, 4, 8);

  const { throughput, busySeconds, perBusySlot, usualPerBusySlot } = window.figures(now);
  expect(throughput).toBeCloseTo(4, 0);
  expect(busySeconds).toBeCloseTo(480, -2);
  expect([perBusySlot, usualPerBusySlot]).toEqual([expect.closeTo(0.5), expect.closeTo(0.5)]);
});

test("what was done since long before the window counts with the part that is in it", () => {
  const window = new ThroughputWindow(0);
  window.add(0, 6_600_000, 6_600, 6_600_000);
  const { throughput, usualPerBusySlot } = window.figures(6_600_000);
  expect([throughput, usualPerBusySlot]).toEqual([expect.closeTo(1), expect.closeTo(1)]);
});
