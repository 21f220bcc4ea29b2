import { expect, test } from "vitest";
import type { Instant } from "../kernel/clock.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { WorkQueue } from "./work-queue.ts";

const noError = (): void => expect.unreachable();

test("a key runs once at a time, and once more for all the calls that came meanwhile", async () => {
  const clock = new VirtualClock();
  const runs: string[] = [];
  let finish: () => void = () => undefined;
  const queue = new WorkQueue(
    clock,
    async (key) => {
      runs.push(key);
      await new Promise<void>((resolve) => (finish = resolve));
      return null;
    },
    noError,
  );
  for (let call = 0; call < 5; call++) queue.wake("a");
  expect(runs).toEqual(["a"]);
  finish();
  await clock.advance(0);
  expect(runs).toEqual(["a", "a"]);
  finish();
  await clock.advance(10_000);
  expect(runs).toEqual(["a", "a"]);
});

test("a key that waits does not hold up another", async () => {
  const clock = new VirtualClock();
  const runs: string[] = [];
  const queue = new WorkQueue(
    clock,
    (key) => {
      runs.push(key);
      return key === "stuck" ? new Promise(() => undefined) : Promise.resolve(null);
    },
    noError,
  );
  queue.wake("stuck");
  queue.wake("free");
  queue.wake("free");
  await clock.advance(0);
  expect(runs).toEqual(["stuck", "free", "free"]);
});

test("it looks again at the time that the run named, or earlier when it is called", async () => {
  const clock = new VirtualClock();
  const runs: Instant[] = [];
  const start = clock.now();
  const queue = new WorkQueue(
    clock,
    async () => {
      runs.push(clock.now() - start);
      return clock.now() + 1_000;
    },
    noError,
  );
  queue.wake("a");
  await clock.advance(400);
  queue.wake("a");
  await clock.advance(1_700);
  expect(runs).toEqual([0, 400, 1_400]);
});

test("a run that throws is tried again after a pause that doubles and is bounded, and tells each time", async () => {
  const clock = new VirtualClock();
  const runs: Instant[] = [];
  const told: unknown[] = [];
  const start = clock.now();
  const queue = new WorkQueue(
    clock,
    async () => {
      runs.push(clock.now() - start);
      throw new Error("no");
    },
    (_, error) => told.push(error),
  );
  queue.wake("a");
  await clock.advance(20_000);
  expect(runs).toEqual([0, 100, 300, 700, 1_500, 3_100, 6_300, 11_300, 16_300]);
  expect(told).toHaveLength(runs.length);
});

test("after it was stopped nothing runs", async () => {
  const clock = new VirtualClock();
  let runs = 0;
  const queue = new WorkQueue(
    clock,
    async () => {
      runs += 1;
      return clock.now() + 10;
    },
    noError,
  );
  queue.wake("a");
  await clock.advance(5);
  queue.stop();
  queue.wake("a");
  await clock.advance(1_000);
  expect(runs).toBe(1);
});

test("after a run that asks for a gap, what calls meanwhile is one run at its end; a first call does not wait", async () => {
  const clock = new VirtualClock(0);
  const runs: number[] = [];
  const queue = new WorkQueue(
    clock,
    async () => {
      runs.push(clock.now());
      if (runs.length === 1) queue.wake("a"); // while it runs
      return null;
    },
    noError,
    () => 50,
  );
  queue.wake("a");
  await clock.advance(10);
  queue.wake("a");
  await clock.advance(90);
  expect(runs).toEqual([0, 50]);
  queue.wake("a");
  await clock.advance(100);
  expect(runs).toEqual([0, 50, 100]);
  await clock.advance(500);
  queue.wake("a");
  expect(runs).toEqual([0, 50, 100, 700]);
});

test("a run hears whether somebody called since the one before, or only its time has come; after a failure it counts as called", async () => {
  const clock = new VirtualClock();
  const runs: boolean[] = [];
  let fails = false;
  const queue = new WorkQueue(
    clock,
    async (_, isCalled) => {
      runs.push(isCalled);
      if (fails) throw new Error("once");
      return clock.now() + 1_000;
    },
    () => (fails = false),
  );
  queue.wake("a");
  await clock.advance(1_000);
  expect(runs).toEqual([true, false]);
  fails = true;
  queue.wake("a");
  await clock.advance(100);
  expect(runs).toEqual([true, false, true, true]);
  await clock.advance(1_000);
  expect(runs).toEqual([true, false, true, true, false]);
});
