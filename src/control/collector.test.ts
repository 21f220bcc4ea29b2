import { expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { storeUnavailable } from "../store/port.ts";
import { BATCH_PAUSE_MS, COLLECT_EVERY_MS, Collector } from "./collector.ts";

/** Each call of `collect` takes the next of the answers: rows, or an error; 0 when there is none left. */
function collecting(answers: (number | Error)[]): {
  readonly clock: VirtualClock;
  readonly calls: number[];
  readonly logged: string[];
  readonly collector: Collector;
} {
  const clock = new VirtualClock(0);
  const calls: number[] = [];
  const logged: string[] = [];
  const store = {
    async collect(now: number): Promise<number> {
      calls.push(now);
      const answer = answers.shift() ?? 0;
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  return {
    clock,
    calls,
    logged,
    collector: new Collector({ store, clock, log: (level, message) => void logged.push(`${level} ${message}`) }),
  };
}

test("batch follows batch with a pause until nothing is left, then a round follows from time to time", async () => {
  const { clock, calls, collector } = collecting([500, 500, 3]);
  collector.start();
  await clock.advance(BATCH_PAUSE_MS * 4 + COLLECT_EVERY_MS);

  expect(calls).toEqual([1_000, 2_000, 3_000, 4_000, 4_000 + COLLECT_EVERY_MS]);
});

test("a store that cannot be written is told, and asked again in the next round", async () => {
  const { clock, calls, logged, collector } = collecting([storeUnavailable("the disk is full", undefined)]);
  collector.start();
  await clock.advance(BATCH_PAUSE_MS + COLLECT_EVERY_MS);

  expect(calls).toEqual([BATCH_PAUSE_MS, BATCH_PAUSE_MS + COLLECT_EVERY_MS]);
  expect(logged).toEqual(["warn what is past its time could not be forgotten and is tried again"]);
});

test("nothing is collected after the end, also when a batch was under way", async () => {
  const { clock, calls, collector } = collecting([500, 500]);
  collector.start();
  await clock.advance(BATCH_PAUSE_MS);
  collector.stop();
  await clock.advance(COLLECT_EVERY_MS);

  expect([calls.length, clock.pendingTimers]).toEqual([1, 0]);
});
