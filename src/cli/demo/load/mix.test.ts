import { expect, test } from "vitest";
import { VirtualClock } from "../../../kernel/virtual-clock.ts";
import { Arrivals, DEFAULT_MIX, type Mix } from "./mix.ts";
import type { RequestKind } from "./outcome.ts";

/** A fixed sequence in [0, 1). */
function sequence(): { next(): number } {
  let state = 1;
  return {
    next: () => {
      state = (state * 48_271) % 2_147_483_647;
      return state / 2_147_483_647;
    },
  };
}

function arrivals(mix: () => Mix): { clock: VirtualClock; started: Map<RequestKind, number[]>; plan: Arrivals } {
  const clock = new VirtualClock(0);
  const started = new Map<RequestKind, number[]>();
  const start = (kind: RequestKind): void => void started.set(kind, [...(started.get(kind) ?? []), clock.now()]);
  return { clock, started, plan: new Arrivals({ clock, random: sequence(), mix, start }) };
}

test("requests start at the rate of their kind, whatever became of those before, and never in step", async () => {
  const { clock, started, plan } = arrivals(() => DEFAULT_MIX);
  plan.start();
  await clock.advance(60_000);
  plan.stop();
  await clock.advance(60_000);

  const perSecond = (kind: RequestKind): number => (started.get(kind) ?? []).length / 60;
  expect(perSecond("order")).toBeCloseTo(30, 0);
  expect(perSecond("charge")).toBeCloseTo(15, 0);
  expect(perSecond("export")).toBeCloseTo(1.5, 0.5);
  const orders = started.get("order") ?? [];
  const gaps = orders.slice(1).map((at, index) => at - (orders[index] ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(16);
  expect(Math.max(...gaps)).toBeLessThanOrEqual(51);
  expect(clock.pendingTimers).toBe(0);
});

test("a kind whose rate is 0 starts nothing until its rate rises", async () => {
  let mix: Mix = { ...DEFAULT_MIX, perSecond: { ...DEFAULT_MIX.perSecond, live: 0 } };
  const { clock, started, plan } = arrivals(() => mix);
  plan.start();
  await clock.advance(10_000);
  expect(started.get("live")).toBeUndefined();

  mix = DEFAULT_MIX;
  await clock.advance(10_000);
  plan.stop();
  expect((started.get("live") ?? []).length).toBeGreaterThan(4);
});
