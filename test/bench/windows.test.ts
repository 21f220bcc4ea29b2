import { expect, test } from "vitest";
import type { RequestTrace } from "../../src/cli/demo/load/client.ts";
import { added, latencyOf, within } from "../../bench/fleet/windows.ts";

const trace = (id: string, startedAt: number, durationMs: number, more: Partial<RequestTrace> = {}): RequestTrace => ({
  id,
  kind: "order",
  startedAt,
  durationMs,
  queued: false,
  retried: false,
  outcome: "completed",
  detail: null,
  ...more,
});

test("a window holds what was in flight and what started around it, however many windows it meets", () => {
  const traces = [
    trace("over", 100, 50),
    trace("before", 900, 1),
    trace("in flight", 200, 900),
    trace("after", 2_000, 5),
    trace("late", 2_001, 5),
  ];
  const windows = [
    { at: 1_000, beforeMs: 100, afterMs: 1_000 },
    { at: 1_050, beforeMs: 0, afterMs: 0 },
  ];

  expect(within(traces, windows).map(({ id }) => id)).toEqual(["before", "in flight", "after"]);
});

test("latency is that of the completed requests of the kinds asked for", () => {
  const traces = [
    trace("a", 0, 10),
    trace("b", 0, 20),
    trace("c", 0, 900, { outcome: "rejected" }),
    trace("d", 0, 800, { kind: "export" }),
  ];

  expect(latencyOf(traces, ["order"])).toEqual({ requests: 2, p50Ms: 10, p99Ms: 20, maxMs: 20 });
  expect(latencyOf([], ["order"])).toEqual({ requests: 0, p50Ms: null, p99Ms: null, maxMs: null });
  expect([added(30.26, 10), added(null, 10)]).toEqual([20.3, null]);
});
