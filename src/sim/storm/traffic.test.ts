import { describe, expect, test } from "vitest";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { seededRandom } from "../seeded.ts";
import { aFleet } from "./testing/fleets.ts";
import { type Route, Traffic } from "./traffic.ts";

const CLASSES = [
  { name: "quotes", priority: "critical", count: 1 },
  { name: "backtests", priority: "batch", count: 1 },
];

function rig(limit = 10_000): { readonly clock: VirtualClock; readonly traffic: Traffic; readonly critical: Route; readonly batch: Route } {
  const clock = new VirtualClock();
  const traffic = new Traffic(clock, limit, 60_000);
  const [quotes, backtests] = aFleet({ classes: CLASSES }).classes;
  if (quotes === undefined || backtests === undefined) throw new Error("two classes");
  return {
    clock,
    traffic,
    critical: traffic.open("quotes-0", quotes, 2, seededRandom(1, "a")),
    batch: traffic.open("backtests-0", backtests, 2, seededRandom(1, "b")),
  };
}

function addsUp({ counts }: Traffic): boolean {
  return counts.accepted === counts.completed + counts.queued + counts.rejected + counts.cut;
}

describe("the gateway's promise, modelled", () => {
  test("a short pause refuses nobody: who came meanwhile waited as long as it lasted (I14)", async () => {
    const { clock, traffic, critical } = rig();
    await clock.advance(1_000);
    traffic.pause(critical);
    await clock.advance(100);
    traffic.resume(critical, 12, 1);
    await clock.advance(2_000);
    expect(addsUp(traffic)).toBe(true);
    expect(traffic.counts).toMatchObject({ queued: 0, rejected: 0, cut: 0 });
    expect(traffic.added.quantile(1)).toBeLessThanOrEqual(110.2);
    expect(traffic.added.quantile(0.5)).toBeCloseTo(10, 0);
  });

  test("what waits too long is refused, and the queue never holds more than its route allows", async () => {
    const { clock, traffic, critical } = rig();
    traffic.pause(critical);
    await clock.advance(20_000);
    expect(addsUp(traffic)).toBe(true);
    expect(traffic.counts.queued).toBe(traffic.waiting());
    // 50 a second for at most 2 s.
    expect(traffic.counts.queued).toBeLessThan(140);
    expect(traffic.counts.rejected).toBeGreaterThan(700);
  });

  test("a critical request displaces a waiting one of batch, never the other way", async () => {
    const { clock, traffic, critical, batch } = rig(60);
    traffic.pause(batch);
    await clock.advance(1_500);
    const before = batch.waiting?.length ?? 0;
    expect(before).toBeGreaterThan(40);
    traffic.pause(critical);
    await clock.advance(1_000);
    expect(critical.waiting?.length).toBeGreaterThan(30);
    expect(traffic.counts.queued).toBeLessThanOrEqual(61);
    expect(batch.waiting?.length).toBeLessThan(before);
    expect(addsUp(traffic)).toBe(true);
  });

  test("with its place the requests in flight go: repeated where they may be, else cut", async () => {
    const { clock, traffic, critical } = rig();
    await clock.advance(10_000);
    traffic.lose(critical);
    await clock.advance(500);
    traffic.resume(critical, 2, 1);
    await clock.advance(2_000);
    traffic.finish();
    traffic.settle(critical);
    expect(addsUp(traffic)).toBe(true);
    expect(traffic.counts.queued).toBe(0);
  });
});
