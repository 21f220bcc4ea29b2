import { expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { Placements } from "./placements.ts";

test("a pod has its place since it was first seen there, however the wall clock is set afterwards (D7)", async () => {
  const clock = new VirtualClock();
  let setBy = 0;
  const placements = new Placements({ now: () => clock.now() + setBy, monotonic: () => clock.monotonic() });
  const first = placements.since("uid-1");
  await clock.advance(3_000);
  expect(clock.now() - placements.since("uid-1")).toBe(3_000);
  setBy = 3_600_000;
  expect(clock.now() + setBy - placements.since("uid-1")).toBe(3_000);
  setBy = 0;
  expect(placements.since("uid-1")).toBe(first);
  expect(placements.since("uid-2")).toBe(clock.now());
});

test("one that is gone is forgotten", async () => {
  const clock = new VirtualClock();
  const placements = new Placements(clock);
  placements.since("uid-1");
  await clock.advance(1_000);
  placements.forget("uid-1");
  expect(placements.since("uid-1")).toBe(clock.now());
});
