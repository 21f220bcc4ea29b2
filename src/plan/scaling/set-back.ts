import type { Instant } from "../../kernel/clock.ts";

/** The clocks of two replicas do not differ by more, or leases and certificates would fail first. */
const CLOCKS_DIFFER_MS = 60_000;

/** Whether what was written holds for `spanMs` no more, since it is of a clock that was set back after it: else it would hold for as long as that was. */
export function isSetBack(at: Instant, spanMs: number, now: Instant): boolean {
  return at - now > Math.max(spanMs, CLOCKS_DIFFER_MS);
}
