/**
 * The real clock, randomness and ids. The only file that touches global timers, Date.now and crypto's randomness;
 * everything else takes the ports.
 */
import { randomBytes, randomInt } from "node:crypto";
import type { Clock, Timer } from "./clock.ts";
import type { Ids } from "./ids.ts";
import type { Random } from "./random.ts";

/** Node's timers hold 31 bits: one that is longer fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs: number, fire: () => void): Timer {
    if (delayMs <= LONGEST_TIMER_MS) {
      const timer = setTimeout(fire, delayMs);
      timer.unref();
      return { cancel: () => clearTimeout(timer) };
    }
    let rest: Timer;
    const first = systemClock.after(LONGEST_TIMER_MS, () => {
      rest = systemClock.after(delayMs - LONGEST_TIMER_MS, fire);
    });
    rest = first;
    return { cancel: () => rest.cancel() };
  },
  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      // Nobody sleeps for weeks, but who would must not wake at once.
      const timer = setTimeout(done, Math.min(delayMs, LONGEST_TIMER_MS));
      signal?.addEventListener("abort", cancelled, { once: true });
      function done(): void {
        signal?.removeEventListener("abort", cancelled);
        resolve();
      }
      function cancelled(): void {
        clearTimeout(timer);
        reject(signal?.reason);
      }
    });
  },
};

/** The clock's timers keep no process alive: this does, until it is called off. For a process that serves nobody. */
export function stayAlive(): () => void {
  const timer = setInterval(() => undefined, LONGEST_TIMER_MS);
  return () => clearInterval(timer);
}

/** 256 bits that nobody guesses, as 43 letters, digits, dashes and underscores. */
export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

export const systemRandom: Random = {
  next: () => randomInt(0, 2 ** 32) / 2 ** 32,
};

export const systemIds: Ids = {
  next: (prefix: string) => `${prefix}-${randomBytes(5).toString("hex")}`,
};
