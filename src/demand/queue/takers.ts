/** Takers that wait for a job, first come, first served. Whoever is woken and does not want any more wakes the next one. */
import type { Clock } from "../../kernel/clock.ts";

export class Takers {
  readonly #clock: Clock;
  readonly #byQueue = new Map<string, Set<() => void>>();
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Settles when there may be a job, when the time is over, or when the caller is gone. */
  async wait(queue: string, limitMs: number, gone: AbortSignal): Promise<void> {
    if (this.#isClosed || gone.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#byQueue.get(queue) ?? new Set();
    this.#byQueue.set(queue, waiting.add(resolve));
    const timer = this.#clock.after(limitMs, resolve);
    gone.addEventListener("abort", () => resolve(), { once: true });
    await promise;
    timer.cancel();
    waiting.delete(resolve);
    if (waiting.size === 0 && this.#byQueue.get(queue) === waiting) this.#byQueue.delete(queue);
  }

  wake(queue: string, count: number): void {
    const waiting = this.#byQueue.get(queue);
    if (waiting === undefined) return;
    let left = count;
    for (const resolve of waiting) {
      if (left-- <= 0) break;
      waiting.delete(resolve);
      resolve();
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const queue of this.#byQueue.keys()) this.wake(queue, Number.POSITIVE_INFINITY);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }
}
