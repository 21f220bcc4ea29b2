import { describe, expect, test } from "vitest";
import type { TaggedCounts } from "../../sdk/queue-client.ts";
import { capacityOf, drainedAfter, type LoadPhase, mixOf, undoneOf } from "./loadtest-report.ts";
import type { ScaleLook } from "./look.ts";

const counts = (more: Partial<TaggedCounts>): TaggedCounts => ({
  ...{ waiting: 0, taken: 0, dead: 0, done: 0, nothing: 0, failed: 0, reaped: 0, oldestAgeMs: null },
  ...more,
});
const look = (at: number, serving: number, more: Partial<TaggedCounts>): ScaleLook => ({
  at,
  desired: serving,
  serving,
  backlog: null,
  jobs: counts(more),
});
const phase = (looks: readonly ScaleLook[], more: Partial<LoadPhase> = {}): LoadPhase => ({
  jobs: 100,
  stuck: 0,
  injectedAt: 1_000,
  looks,
  ...more,
});

describe("what a load test shows", () => {
  test("throughput is that of the largest size while work waited for it, not of the time before or after", () => {
    const looks = [
      look(1_000, 2, { waiting: 100 }),
      look(3_000, 2, { waiting: 90, done: 8 }),
      look(5_000, 4, { waiting: 80, done: 16 }),
      look(7_000, 4, { waiting: 60, done: 32 }),
      look(9_000, 4, { waiting: 40, done: 48 }),
      look(11_000, 4, { waiting: 0, done: 90, taken: 10 }),
      look(20_000, 4, { done: 100 }),
    ];
    expect(capacityOf(phase(looks))).toEqual({ instances: 4, throughputPerInstance: 3.083, measuredMs: 6_000 });
    expect(drainedAfter(phase(looks))).toBe(19_000);
    expect(undoneOf(phase(looks))).toBe(0);
  });

  test("a size that had work for a moment only proves nothing", () => {
    expect(capacityOf(phase([look(1_000, 1, { waiting: 5 }), look(2_000, 1, { done: 5 })]))).toBeUndefined();
    expect(capacityOf(phase([]))).toBeUndefined();
  });

  test("stuck jobs need not be done, the others must be; what is reaped or dead has ended", () => {
    const looks = [look(1_000, 1, { waiting: 100 }), look(9_000, 4, { done: 89, reaped: 8, dead: 3 })];
    expect([undoneOf(phase(looks, { stuck: 10 })), drainedAfter(phase(looks, { stuck: 10 }))]).toEqual([1, 8_000]);
    expect(drainedAfter(phase([look(2_000, 1, { waiting: 1 })]))).toBeNull();
  });

  test("the stated share of stuck jobs lies evenly among the others", () => {
    expect(mixOf(10, 0.2, "good", "stuck").join(" ")).toBe("good good good good stuck good good good good stuck");
    expect(mixOf(1_000, 0.1, "good", "stuck").filter((each) => each === "stuck")).toHaveLength(100);
    expect(mixOf(3, 0, "good", "stuck")).toEqual(["good", "good", "good"]);
  });
});
