/**
 * Time limits of one length for many things at once. All share the length, so they fall due in the order of their start, and one timer serves them all:
 * starting and stopping a limit costs two pointers, which matters on the path of every request.
 */
import type { Clock, Timer } from "../kernel/clock.ts";

/** One running limit. A thing may own several, each made once and used again. */
export class Limit {
  previous: Limit | null = null;
  next: Limit | null = null;
  dueAt = 0;
  list: Deadlines | null = null;
  readonly expired: () => void;

  constructor(expired: () => void) {
    this.expired = expired;
  }

  /** Harmless when it is not running. */
  stop(): void {
    this.list?.remove(this);
  }
}

export class Deadlines {
  readonly #clock: Clock;
  readonly lengthMs: number;
  #first: Limit | null = null;
  #last: Limit | null = null;
  #timer: Timer | null = null;
  /** While limits are told that they fell due: what they start anew must not set the timer, or it would be too late for those that wait already. */
  #isExpiring = false;

  constructor(clock: Clock, lengthMs: number) {
    this.#clock = clock;
    this.lengthMs = lengthMs;
  }

  /** Nothing runs, and no timer is set: it can be forgotten. */
  get idle(): boolean {
    return this.#first === null && this.#timer === null;
  }

  /** Starts the limit, or starts it anew. */
  start(limit: Limit): void {
    limit.stop();
    limit.list = this;
    limit.dueAt = this.#clock.monotonic() + this.lengthMs;
    limit.previous = this.#last;
    if (this.#last === null) this.#first = limit;
    else this.#last.next = limit;
    this.#last = limit;
    if (this.#timer === null && !this.#isExpiring) this.#arm(this.lengthMs);
  }

  remove(limit: Limit): void {
    if (limit.list !== this) return;
    if (limit.previous === null) this.#first = limit.next;
    else limit.previous.next = limit.next;
    if (limit.next === null) this.#last = limit.previous;
    else limit.next.previous = limit.previous;
    limit.list = null;
    limit.previous = null;
    limit.next = null;
  }

  // The timer is left to fire when the last limit stops: it looks, finds nothing and is not set again. That is at most one timer per length.
  #arm(delayMs: number): void {
    this.#timer = this.#clock.after(Math.max(1, Math.ceil(delayMs)), () => {
      this.#timer = null;
      this.#expire();
    });
  }

  #expire(): void {
    const now = this.#clock.monotonic();
    this.#isExpiring = true;
    try {
      while (this.#first !== null && this.#first.dueAt <= now) {
        const limit = this.#first;
        this.remove(limit);
        limit.expired();
      }
    } finally {
      this.#isExpiring = false;
      if (this.#first !== null) this.#arm(this.#first.dueAt - now);
    }
  }
}
