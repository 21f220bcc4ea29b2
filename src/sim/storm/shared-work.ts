/**
 * A capacity that all that is under way shares: the way into a site, and what a site can bring to serve at a time. Every job goes at the same share of its
 * own full speed, so one virtual time serves them all.
 */
import type { Clock, Timer } from "../../kernel/clock.ts";

export interface Job {
  /** In virtual ms. */
  readonly endsAt: number;
  readonly demand: number;
  readonly done: () => void;
}

/** Ends are sums of fractions of ms, and an instant of our days is known to a quarter of a µs. */
const EPSILON_MS = 0.001;

export class SharedWork {
  readonly #clock: Clock;
  readonly #capacity: number;
  readonly #thrash: number;
  readonly #jobs = new Set<Job>();
  #demand = 0;
  /** How much each job has gone on at full speed, since the beginning. */
  #virtualMs = 0;
  #at: number;
  #timer: Timer | undefined;

  /** `thrash`: with twice the capacity asked for, the whole is slower by 1 / (1 + thrash). */
  constructor(clock: Clock, capacity: number, thrash = 0) {
    this.#clock = clock;
    this.#capacity = capacity;
    this.#thrash = thrash;
    this.#at = clock.monotonic();
  }

  get size(): number {
    return this.#jobs.size;
  }

  /** What is asked for, as a share of what there is: above 1 everything is slower. */
  get load(): number {
    return this.#demand / this.#capacity;
  }

  /** `workMs` at full speed, at which it takes `demand` of the capacity. */
  add(workMs: number, demand: number, done: () => void): Job {
    this.#advance();
    const job = { endsAt: this.#virtualMs + workMs, demand, done };
    this.#jobs.add(job);
    this.#demand += demand;
    this.#arm();
    return job;
  }

  cancel(job: Job): void {
    this.#advance();
    this.#remove(job);
    this.#arm();
  }

  #speed(): number {
    const { load } = this;
    return load <= 1 ? 1 : 1 / load / (1 + this.#thrash * (load - 1));
  }

  #advance(): void {
    const now = this.#clock.monotonic();
    this.#virtualMs += (now - this.#at) * this.#speed();
    this.#at = now;
  }

  #remove(job: Job): void {
    if (!this.#jobs.delete(job)) return;
    this.#demand = this.#jobs.size === 0 ? 0 : this.#demand - job.demand;
  }

  #arm(): void {
    this.#timer?.cancel();
    let first = Number.POSITIVE_INFINITY;
    for (const { endsAt } of this.#jobs) first = Math.min(first, endsAt);
    if (first === Number.POSITIVE_INFINITY) return;
    this.#timer = this.#clock.after(Math.max(EPSILON_MS, (first - this.#virtualMs) / this.#speed()), () => this.#fire());
  }

  #fire(): void {
    this.#advance();
    const ended = [...this.#jobs].filter(({ endsAt }) => endsAt <= this.#virtualMs + EPSILON_MS);
    for (const job of ended) this.#remove(job);
    this.#arm();
    for (const { done } of ended) done();
  }
}
