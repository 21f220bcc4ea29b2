/** Pauses that grow with each failure, with chance in them: a thousand agents must not call at the same moment. */
import type { Clock } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";

export interface Pacing {
  readonly clock: Clock;
  readonly random: Random;
}

/** Between half of it and all of it. */
export function backOffMs(random: Random, failures: number, firstMs: number, mostMs: number): number {
  const whole = Math.min(mostMs, firstMs * 2 ** Math.min(failures, 16));
  return whole / 2 + (random.next() * whole) / 2;
}

/** Around the given time, by a tenth to either side. */
export function aboutMs(random: Random, ms: number): number {
  return ms * (0.9 + random.next() * 0.2);
}

/** False when it was stopped meanwhile. */
export async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await clock.sleep(ms, signal);
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
