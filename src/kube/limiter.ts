/**
 * How fast we call the API server, by a token bucket with priorities: what is urgent never waits behind a list.
 *
 * 1. `qps` calls a second, and `burst` at once after a rest, as Kubernetes' own clients count them.
 * 2. Of those who wait the most urgent goes first; among equals the earliest. Who has waited `AGED_MS` gets every fourth turn, so that nobody starves.
 * 3. A server that asks to be left alone (429 with Retry-After) is left alone by calls of that priority and below.
 * 4. A queue holds at most `WAITING_MAX` calls; one more is refused.
 */
import type { Clock, Timer } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";

/**
 * `first`: Leases, and all calls of what stops a node from getting more work. `urgent`: other changes of objects. `normal`: reads of one object, statuses.
 * `background`: lists, watches, Events.
 */
export const CALL_PRIORITIES = ["first", "urgent", "normal", "background"] as const;
export type CallPriority = (typeof CALL_PRIORITIES)[number];

export interface RateLimits {
  /** Calls a second, at least one in an hour. */
  readonly qps: number;
  /** At least 1. */
  readonly burst: number;
}

/** As the kubelet and the scheduler have them. */
export const RATE_DEFAULTS: RateLimits = { qps: 50, burst: 100 };

const AGED_MS = 5_000;
const AGED_EVERY = 4;
const WAITING_MAX = 10_000;

interface Waiting {
  readonly since: number;
  readonly go: () => void;
}

export class RateLimiter {
  readonly clock: Clock;
  readonly #limits: RateLimits;
  readonly #waiting: Record<CallPriority, Waiting[]> = { first: [], urgent: [], normal: [], background: [] };
  readonly #heldUntil: Record<CallPriority, number> = { first: 0, urgent: 0, normal: 0, background: 0 };
  #tokens: number;
  #filledAt: number;
  #turn = 0;
  #timer: Timer | undefined;

  constructor(limits: RateLimits, clock: Clock) {
    this.#limits = { qps: Math.max(limits.qps, 1 / 3_600), burst: Math.max(1, limits.burst) };
    this.clock = clock;
    this.#tokens = this.#limits.burst;
    this.#filledAt = clock.monotonic();
  }

  /** Settles when the call may be made. Rejects with `kube_queue_full`, or with the signal's reason when it aborts. */
  take(priority: CallPriority, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    const queue = this.#waiting[priority];
    if (queue.length >= WAITING_MAX) {
      const what = "too many calls wait for the API server already";
      return Promise.reject(new RelevoError("kube_queue_full", what, { class: "retryable", allowed: `${WAITING_MAX} ${priority} ones` }));
    }
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        queue.splice(queue.indexOf(waiting), 1);
        reject(signal?.reason as Error);
      };
      const waiting: Waiting = {
        since: this.clock.monotonic(),
        go: () => {
          signal?.removeEventListener("abort", abort);
          resolve();
        },
      };
      queue.push(waiting);
      signal?.addEventListener("abort", abort, { once: true });
      this.#pump();
    });
  }

  /** The server asked for it: nobody of this priority or below calls for so long. */
  hold(priority: CallPriority, ms: number): void {
    const until = this.clock.monotonic() + ms;
    for (const each of CALL_PRIORITIES.slice(CALL_PRIORITIES.indexOf(priority)))
      this.#heldUntil[each] = Math.max(this.#heldUntil[each], until);
  }

  /** How many wait. */
  get waiting(): number {
    return CALL_PRIORITIES.reduce((count, each) => count + this.#waiting[each].length, 0);
  }

  #pump(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#refill();
    while (this.#tokens >= 1) {
      const next = this.#choose();
      if (next === undefined) break;
      this.#tokens -= 1;
      next.go();
    }
    if (this.waiting > 0) this.#timer = this.clock.after(this.#nextTurnIn(), () => this.#pump());
  }

  #refill(): void {
    const now = this.clock.monotonic();
    this.#tokens = Math.min(this.#limits.burst, this.#tokens + ((now - this.#filledAt) / 1_000) * this.#limits.qps);
    this.#filledAt = now;
  }

  #choose(): Waiting | undefined {
    const now = this.clock.monotonic();
    const open = CALL_PRIORITIES.filter((each) => this.#waiting[each].length > 0 && this.#heldUntil[each] <= now);
    if (open.length === 0) return undefined;
    this.#turn = (this.#turn + 1) % AGED_EVERY;
    const isAged = (each: CallPriority): boolean => now - (this.#waiting[each][0]?.since ?? now) >= AGED_MS;
    const chosen = (this.#turn === 0 ? open.findLast(isAged) : undefined) ?? open[0];
    return chosen && this.#waiting[chosen].shift();
  }

  /** At least a millisecond: a timer that fires a hair too early must not spin. */
  #nextTurnIn(): number {
    if (this.#tokens < 1) return Math.max(1, ((1 - this.#tokens) / this.#limits.qps) * 1_000);
    const held = CALL_PRIORITIES.filter((each) => this.#waiting[each].length > 0).map((each) => this.#heldUntil[each]);
    return Math.max(1, Math.min(...held) - this.clock.monotonic());
  }
}
