/**
 * The real clock, randomness and ids. The only file that touches global timers, Date.now and crypto's randomness;
 * everything else takes the ports.
 */
import { randomBytes, randomInt } from "node:crypto";
import type { Clock, Timer } from "./clock.ts";
import type { Ids } from "./ids.ts";
import type { Random } from "./random.ts";

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs: number, fire: () => void): Timer {
    const timer = setTimeout(fire, delayMs);
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const timer = setTimeout(done, delayMs);
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

export const systemRandom: Random = {
  next: () => randomInt(0, 2 ** 32) / 2 ** 32,
};

export const systemIds: Ids = {
  next: (prefix: string) => `${prefix}-${randomBytes(5).toString("hex")}`,
};
