import { expect, test } from "vitest";
import type { Clock } from "../../../kernel/clock.ts";
import { type OutsideCount, probeOutsideCount } from "./outside-count.ts";

const BOUNDS = { reconciles: 5, withinMs: 10_000, everyMs: 1_000 };

/** An owner that looks once a second, and reverts at the look that is said. */
function anOwner({ revertsAt = Number.POSITIVE_INFINITY, looks = true, isPaused = false } = {}) {
  let now = 0;
  let replicas = 2;
  let reconciles = 7;
  const writes: number[] = [];
  const clock = {
    monotonic: () => now,
    sleep: async (ms: number) => {
      now += ms;
      if (!looks) return;
      reconciles += 1;
      if (reconciles - 7 === revertsAt) replicas = 2;
    },
  } as unknown as Clock;
  const count: OutsideCount = {
    read: async () => ({ replicas, reconciles, isPaused }),
    write: async (to) => {
      replicas = to;
      writes.push(to);
    },
  };
  return { clock, count, writes };
}

test.each([
  [{}, "ok", "a count from outside outlasted 5 reconciles of its owner", [3, 2]],
  [{ revertsAt: 3 }, "refused", "its owner put 3 back to 2 at reconcile 3", [3]],
  [{ looks: false }, "held", "only 0 of 5 reconciles of its owner were seen within 10s", [3, 2]],
  [{ isPaused: true }, "refused", "its owner is paused: what is written would survive and mean nothing", []],
] as const)("an owner with %o is %s, and the count is as it was afterwards (T18)", async (owner, state, message, written) => {
  const { clock, count, writes } = anOwner(owner);
  expect(await probeOutsideCount(count, clock, BOUNDS)).toMatchObject({ state, message });
  expect(writes).toEqual(written);
});
