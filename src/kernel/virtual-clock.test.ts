import { expect, test } from "vitest";
import { drainMicrotasks } from "./microtasks.ts";
import { VirtualClock } from "./virtual-clock.ts";

test("timers fire in the order of their time, then of their making", async () => {
  const clock = new VirtualClock(0);
  const seen: string[] = [];
  clock.after(20, () => seen.push(`c@${clock.now()}`));
  clock.after(10, () => seen.push(`a@${clock.now()}`));
  clock.after(10, () => seen.push(`b@${clock.now()}`));
  clock.after(15, () => seen.push("cancelled")).cancel();

  await clock.advance(20);

  expect(seen).toEqual(["a@10", "b@10", "c@20"]);
  expect(clock.pendingTimers).toBe(0);
});

test("what a timer sets in motion through promises rests before the next timer fires", async () => {
  const clock = new VirtualClock(0);
  const seen: string[] = [];
  async function work(name: string): Promise<void> {
    for (let i = 0; i < 50; i++) await Promise.resolve();
    seen.push(`${name}@${clock.now()}`);
    await clock.sleep(5);
    seen.push(`${name} again@${clock.now()}`);
  }
  clock.after(1, () => void work("a"));
  clock.after(2, () => void work("b"));

  await clock.advance(10);

  expect(seen).toEqual(["a@1", "b@2", "a again@6", "b again@7"]);
  expect(clock.now()).toBe(10);
});

test("an aborted sleep rejects with the signal's reason and leaves no timer", async () => {
  const clock = new VirtualClock(0);
  const controller = new AbortController();
  const slept = clock.sleep(100, controller.signal);
  controller.abort("enough");

  await expect(slept).rejects.toBe("enough");
  expect(clock.pendingTimers).toBe(0);
});

test("advanceUntil stops at the timer that makes the condition true, and says when none does", async () => {
  const clock = new VirtualClock(0);
  let count = 0;
  const tick = (): void => {
    count++;
    clock.after(10, tick);
  };
  clock.after(10, tick);

  expect(await clock.advanceUntil(() => count === 3, 1000)).toBe(true);
  expect(clock.now()).toBe(30);
  expect(await clock.advanceUntil(() => false, 50)).toBe(false);
});

async function* counted(): AsyncGenerator<number> {
  yield 1;
  yield 2;
}

test("with a drain a whole advance is one turn of the event loop, and runs in the same order", async () => {
  const seen: string[][] = [];
  for (const clock of [new VirtualClock(0), new VirtualClock(0, drainMicrotasks)]) {
    const run: string[] = [];
    seen.push(run);
    const work = async (name: string): Promise<void> => {
      for (let i = 0; i < 50; i++) await Promise.resolve();
      run.push(`${name}@${clock.now()}`);
      await clock.sleep(5);
      for await (const step of counted()) run.push(`${name} ${step}@${clock.now()}`);
    };
    clock.after(1, () => void work("a"));
    clock.after(2, () => void work("b"));
    await clock.advance(10);
  }
  let isTurnOver = false;
  const clock = new VirtualClock(0, drainMicrotasks);
  let wasTurnOver: boolean | undefined;
  clock.after(1, () => setImmediate(() => (isTurnOver = true)));
  clock.after(5, () => (wasTurnOver = isTurnOver));
  await clock.advance(10);

  expect(seen[1]).toEqual(seen[0]);
  expect(seen[0]).toEqual(["a@1", "b@2", "a 1@6", "a 2@6", "b 1@7", "b 2@7"]);
  expect(wasTurnOver).toBe(false);
});

test("what a timer throws is thrown by the advance, also in one turn", async () => {
  for (const clock of [new VirtualClock(0), new VirtualClock(0, drainMicrotasks)]) {
    clock.after(1, () => {
      throw new Error("broken");
    });

    await expect(clock.advance(10)).rejects.toThrow("broken");
  }
});
