/** Which requests felt an event, and what that cost them; arithmetic on the client's own records. */
import type { RequestTrace } from "../../src/cli/demo/load/client.ts";
import type { RequestKind } from "../../src/cli/demo/load/outcome.ts";
import { percentile } from "../../src/cli/demo/load/tally.ts";

/** Around an event at `at` (ms since the epoch): in flight then, or started at most so long before or after. */
export interface Window {
  readonly at: number;
  readonly beforeMs: number;
  readonly afterMs: number;
}

export interface Latency {
  readonly requests: number;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly maxMs: number | null;
}

export function within(traces: readonly RequestTrace[], windows: readonly Window[]): readonly RequestTrace[] {
  return traces.filter((trace) => windows.some((window) => feels(trace, window)));
}

function feels({ startedAt, durationMs }: RequestTrace, { at, beforeMs, afterMs }: Window): boolean {
  const isInFlight = startedAt <= at && startedAt + durationMs >= at;
  return isInFlight || (startedAt >= at - beforeMs && startedAt <= at + afterMs);
}

/** Of those that completed. */
export function latencyOf(traces: readonly RequestTrace[], kinds: readonly RequestKind[]): Latency {
  const durations = traces
    .filter(({ kind, outcome }) => outcome === "completed" && kinds.includes(kind))
    .map(({ durationMs }) => durationMs);
  return {
    requests: durations.length,
    p50Ms: rounded(percentile(durations, 0.5)),
    p99Ms: rounded(percentile(durations, 0.99)),
    maxMs: rounded(percentile(durations, 1)),
  };
}

export function added(value: number | null, base: number | null): number | null {
  return value === null || base === null ? null : rounded(value - base);
}

function rounded(value: number | null): number | null {
  return value === null ? null : Math.round(value * 10) / 10;
}
