/**
 * What is to be told to the controllers, in order, until one of them has kept it.
 *
 * 1. Nothing is written to a disk: metadata goes on saying what it says, so an agent that starts anew sees it again, and a controller that has it already
 *    knows it by its key.
 * 2. Bounded: when it is full the oldest goes, and that is told as trouble. A machine has a handful of things said of it in its life.
 */
import type { Telling } from "../notices/standing.ts";

export const MAX_WAITING = 64;

export class Outbox {
  readonly #waiting: Telling[] = [];
  readonly #waiters = new Set<() => void>();
  #dropped = 0;

  /** Since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  get size(): number {
    return this.#waiting.length;
  }

  add(tellings: readonly Telling[]): void {
    this.#waiting.push(...tellings);
    while (this.#waiting.length > MAX_WAITING) {
      this.#waiting.shift();
      this.#dropped++;
    }
    if (tellings.length > 0) this.#wake();
  }

  /** The oldest, once there is one; undefined when it was stopped before. */
  async next(signal: AbortSignal): Promise<Telling | undefined> {
    while (this.#waiting.length === 0 && !signal.aborted)
      await new Promise<void>((resolve) => {
        const done = (): void => {
          this.#waiters.delete(done);
          signal.removeEventListener("abort", done);
          resolve();
        };
        this.#waiters.add(done);
        signal.addEventListener("abort", done, { once: true });
      });
    return signal.aborted ? undefined : this.#waiting[0];
  }

  has(telling: Telling): boolean {
    return this.#waiting.includes(telling);
  }

  done(telling: Telling): void {
    const at = this.#waiting.indexOf(telling);
    if (at >= 0) this.#waiting.splice(at, 1);
  }

  #wake(): void {
    for (const wake of [...this.#waiters]) wake();
  }
}
