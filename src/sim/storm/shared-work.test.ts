import { expect, test } from "vitest";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { SharedWork } from "./shared-work.ts";

/** When each of so many jobs of 4 s ends, that begin together and ask for 1/4 of the capacity of one each. */
async function ends(jobs: number, thrash: number): Promise<readonly number[]> {
  const clock = new VirtualClock();
  const shared = new SharedWork(clock, 1, thrash);
  const at: number[] = [];
  for (let job = 0; job < jobs; job++) shared.add(4_000, 0.25, () => at.push(Math.round(clock.monotonic())));
  await clock.advance(120_000);
  return at;
}

test("what fits goes at full speed", async () => {
  expect(await ends(4, 0.5)).toEqual([4_000, 4_000, 4_000, 4_000]);
});

test("twice as much takes twice as long, and longer where the whole thrashes", async () => {
  expect(await ends(8, 0)).toEqual(Array(8).fill(8_000));
  expect(await ends(8, 0.5)).toEqual(Array(8).fill(12_000));
});

test("one that comes later slows those that are there, and is slowed by them", async () => {
  const clock = new VirtualClock();
  const shared = new SharedWork(clock, 1);
  const at: number[] = [];
  shared.add(4_000, 1, () => at.push(Math.round(clock.monotonic())));
  clock.after(2_000, () => shared.add(1_000, 1, () => at.push(Math.round(clock.monotonic()))));
  await clock.advance(60_000);
  expect(at).toEqual([4_000, 5_000]);
});
