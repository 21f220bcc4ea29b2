/**
 * A clock that stands still until it is told to go. Timers fire in the order of (time, sequence); after each one everything that it set in motion through
 * promises comes to rest before the next one fires, so a run with the same inputs is always the same run.
 */
import type { Clock, Instant, Timer } from "./clock.ts";
import { RelevoError } from "./errors.ts";

/** Taken at import: a simulator may forbid the global later. */
const nextTurn = setImmediate;

/** More timers than this within one `advance` is a loop without a delay. */
const MAX_TIMERS_PER_ADVANCE = 10_000_000;

interface Entry {
  readonly at: Instant;
  readonly sequence: number;
  readonly fire: () => void;
  cancelled: boolean;
}

export class VirtualClock implements Clock {
  readonly #start: Instant;
  readonly #heap: Entry[] = [];
  #now: Instant;
  #sequence = 0;
  #live = 0;
  readonly #drain: (() => void) | undefined;

  /**
   * Starts at midnight of 1 January 2030 unless told otherwise. With `drain` (`microtasks.ts`) a whole `advance` is one turn of the event loop: several times as
   * fast, and real I/O cannot come in between; without it each timer gets a turn of its own, for what waits for more than promises.
   */
  constructor(start: Instant = Date.UTC(2030, 0, 1), drain?: () => void) {
    this.#start = start;
    this.#now = start;
    this.#drain = drain;
  }

  now(): Instant {
    return this.#now;
  }

  monotonic(): number {
    return this.#now - this.#start;
  }

  after(delayMs: number, fire: () => void): Timer {
    const entry: Entry = { at: this.#now + Math.max(0, delayMs), sequence: this.#sequence++, fire, cancelled: false };
    push(this.#heap, entry);
    this.#live++;
    return { cancel: () => this.#cancel(entry) };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    if (signal === undefined) return new Promise((resolve) => void this.after(delayMs, resolve));
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const timer = this.after(delayMs, () => {
        signal.removeEventListener("abort", abort);
        resolve();
      });
      const abort = (): void => {
        timer.cancel();
        reject(signal.reason);
      };
      signal.addEventListener("abort", abort, { once: true });
    });
  }

  /** Timers that have neither fired nor been cancelled. */
  get pendingTimers(): number {
    return this.#live;
  }

  /** When the next timer fires; undefined when nothing is planned: with unfinished work that is a deadlock. */
  get nextTimerAt(): Instant | undefined {
    this.#dropCancelled();
    return this.#heap[0]?.at;
  }

  /** Lets `ms` pass: fires what falls due on the way, including timers that are set meanwhile. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    const drain = this.#drain;
    if (drain === undefined) {
      await this.settle();
      for (let fired = 0; this.#fireNext(until, fired); fired++) await this.settle();
    } else
      await inOneTurn(() => {
        drain();
        for (let fired = 0; this.#fireNext(until, fired); fired++) drain();
      });
    this.#now = until;
  }

  /** Advances from timer to timer until the condition holds; false when it does not within `limitMs` or nothing is planned any more. */
  async advanceUntil(condition: () => boolean, limitMs: number): Promise<boolean> {
    const until = this.#now + limitMs;
    await this.settle();
    while (!condition()) {
      const next = this.nextTimerAt;
      if (next === undefined || next > until) return false;
      await this.advance(Math.max(0, next - this.#now));
    }
    return true;
  }

  /** Lets promises come to rest without letting time pass. */
  settle(): Promise<void> {
    return new Promise((resolve) => nextTurn(resolve));
  }

  /** False when nothing more is due. */
  #fireNext(until: Instant, fired: number): boolean {
    const entry = this.#takeDue(until);
    if (entry === undefined) return false;
    if (fired >= MAX_TIMERS_PER_ADVANCE)
      throw new RelevoError("virtual_clock_runaway", "Timers keep being set without a delay.", { found: fired });
    this.#now = Math.max(this.#now, entry.at);
    entry.fire();
    return true;
  }

  #cancel(entry: Entry): void {
    if (entry.cancelled) return;
    entry.cancelled = true;
    this.#live--;
  }

  #dropCancelled(): void {
    while (this.#heap[0]?.cancelled) pop(this.#heap);
  }

  #takeDue(until: Instant): Entry | undefined {
    this.#dropCancelled();
    const next = this.#heap[0];
    if (next === undefined || next.at > until) return undefined;
    pop(this.#heap);
    next.cancelled = true; // a later cancel must not count twice
    this.#live--;
    return next;
  }
}

function inOneTurn(work: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    nextTurn(() => {
      try {
        work();
        resolve();
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
  });
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.sequence < b.sequence);
}

function push(heap: Entry[], entry: Entry): void {
  let at = heap.length;
  heap.push(entry);
  while (at > 0) {
    const up = (at - 1) >> 1;
    const parent = heap[up] as Entry;
    if (!isBefore(entry, parent)) break;
    heap[at] = parent;
    at = up;
  }
  heap[at] = entry;
}

function pop(heap: Entry[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    let down = 2 * at + 1;
    if (down >= heap.length) break;
    const right = heap[down + 1];
    if (right !== undefined && isBefore(right, heap[down] as Entry)) down++;
    const child = heap[down] as Entry;
    if (!isBefore(child, last)) break;
    heap[at] = child;
    at = down;
  }
  heap[at] = last;
}
