import type { Instant } from "../../kernel/clock.ts";

/** Of those that are known; null: none is. */
export function earliest(...times: readonly (Instant | null)[]): Instant | null {
  const known = times.filter((at) => at !== null);
  return known.length === 0 ? null : Math.min(...known);
}
