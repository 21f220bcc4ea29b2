/**
 * Since when each pod has its place, as this process has seen it. The API server stamps that by a clock of its own: were the two compared, a controller whose
 * clock is some minutes ahead would give up every candidate at its first look.
 */
import type { Clock, Instant } from "../kernel/clock.ts";

export class Placements {
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  /** By pod UID: monotonic ms. */
  readonly #seen = new Map<string, number>();

  constructor(clock: Pick<Clock, "now" | "monotonic">) {
    this.#clock = clock;
  }

  /** Call for each look at a pod that has a place; the first one begins the count. */
  since(uid: string): Instant {
    const now = this.#clock.monotonic();
    const seen = this.#seen.get(uid) ?? now;
    this.#seen.set(uid, seen);
    return Math.floor(this.#clock.now() - (now - seen));
  }

  /** Pods that are gone are forgotten. */
  forget(uid: string): void {
    this.#seen.delete(uid);
  }
}
