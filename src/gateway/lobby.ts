/**
 * Where requests wait that came before the replica knew any route: a gateway that just started would otherwise answer "no route" for what it serves a
 * moment later. Bounded by number and time.
 */
import type { Clock } from "../kernel/clock.ts";
import { LIMITS } from "./limits.ts";

export class Lobby {
  readonly #clock: Clock;
  #waiting: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** Calls `enter` once, when routes are known or the time is over; false when it is full and `enter` will not be called. */
  wait(enter: () => void): boolean {
    if (this.#waiting.length >= LIMITS.lobbyRequests) return false;
    this.#waiting.push(enter);
    this.#clock.after(LIMITS.lobbyMs, () => {
      const at = this.#waiting.indexOf(enter);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      enter();
    });
    return true;
  }

  open(): void {
    const entering = this.#waiting;
    this.#waiting = [];
    for (const enter of entering) enter();
  }
}
