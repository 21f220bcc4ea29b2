/**
 * A wall clock that does not jump: what a process judges by how long something lasts must not run out, or never run out, because somebody set the clock.
 *
 * 1. It begins with the wall time and goes on with the monotonic one.
 * 2. What the wall clock says otherwise is taken over gradually: in any span it gains or loses at most half of it. A duration that is measured by it is at
 *    least half and at most one and a half times as long as told.
 * 3. It never goes back, also not behind what this process is told that was written before (`notBefore`): a clock that was set back between two lives would
 *    make stamps of the future.
 */
import type { Clock, Instant, Timer } from "./clock.ts";

/** Of each span, what a correction may take or give. */
const SLEW = 0.5;
/** A stamp that is further ahead was wrong itself. */
const AHEAD_MAX_MS = 24 * 3_600_000;

export class SteadyClock implements Clock {
  readonly #clock: Clock;
  #at: number;
  #readAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#at = clock.now();
    this.#readAt = clock.monotonic();
  }

  now(): Instant {
    const monotonic = this.#clock.monotonic();
    const elapsedMs = monotonic - this.#readAt;
    this.#readAt = monotonic;
    const expected = this.#at + elapsedMs;
    const wrongBy = this.#clock.now() - expected;
    this.#at = expected + Math.max(-SLEW * elapsedMs, Math.min(SLEW * elapsedMs, wrongBy));
    return Math.floor(this.#at);
  }

  /** Something was written at this time: it is not earlier now. */
  notBefore(stamp: Instant): void {
    const now = this.now();
    if (stamp > now && stamp - now <= AHEAD_MAX_MS) this.#at = stamp;
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  after(delayMs: number, fire: () => void): Timer {
    return this.#clock.after(delayMs, fire);
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return this.#clock.sleep(delayMs, signal);
  }
}
