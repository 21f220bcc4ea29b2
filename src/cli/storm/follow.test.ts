import { expect, test } from "vitest";
import type { z } from "zod";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { StormFollower } from "./follow.ts";

const NOW = Date.UTC(2026, 10, 30, 12);
const at = (ms: number): string => new Date(NOW + ms).toISOString();

/** A controller of one critical pool: what it says of its instances changes with the clock. */
function aController(clock: VirtualClock, instancesAt: (ms: number) => readonly object[]) {
  const traffic = () => ({ accepted: 100 + (clock.now() - NOW), rejected: clock.now() > NOW ? 2 : 0, cut: 0, retried: 1 });
  const items = (path: string): readonly unknown[] => {
    if (path.startsWith("/v1/pools")) return [{ pool: "default/orders", priority: "critical", reasons: [], traffic: traffic() }];
    return instancesAt(clock.now() - NOW);
  };
  return {
    get: () => Promise.reject(new Error("not asked")),
    list: <T extends z.ZodType>(path: string, _: T) => Promise.resolve(items(path) as readonly z.output<T>[]),
  };
}

const old = (more: object = {}) => ({
  id: "a",
  pool: "default/orders",
  phase: "serving",
  phaseSince: at(-60_000),
  createdAt: at(-60_000),
  seal: null,
  replaces: null,
  failure: null,
  ...more,
});
const next = {
  id: "b",
  pool: "default/orders",
  phase: "serving",
  phaseSince: at(2_000),
  createdAt: at(-30_000),
  seal: null,
  replaces: "a",
  failure: null,
};

test("a storm is followed until everybody has moved and their former processes are sealed", async () => {
  const clock = new VirtualClock(NOW);
  const follower = new StormFollower(
    aController(clock, (ms) =>
      ms < 2_000 ? [old()] : ms < 5_000 ? [old({ phase: "draining" }), next] : [old({ phase: "deleted", seal: "confirmed" }), next],
    ),
    clock,
  );
  await follower.begin([{ name: "n1", instances: ["a", "unknown"] }]);
  const ended = follower.end(60_000, new AbortController().signal);
  await clock.advance(10_000);
  const outcome = await ended;

  expect(outcome.classes.critical).toEqual({ noticed: 1, replaced: 1, byStandby: 1, forced: 0, meanMs: 2_000, lastMs: 2_000 });
  expect([outcome.held, outcome.order, outcome.requests.rejected]).toEqual([true, "critical ×1", 2]);
});

test("one whose process was lost, or that nobody replaced in time, is told", async () => {
  const clock = new VirtualClock(NOW);
  const follower = new StormFollower(
    aController(clock, (ms) => [old(ms < 1_000 ? {} : { phase: "deleted", seal: "forced" })]),
    clock,
  );
  await follower.begin([{ name: "n1", instances: ["a"] }]);
  const ended = follower.end(5_000, new AbortController().signal);
  await clock.advance(60_000);
  const outcome = await ended;

  expect([outcome.held, outcome.classes.critical.forced, outcome.classes.critical.replaced]).toEqual([false, 1, 0]);
});
