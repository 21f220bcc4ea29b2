/** A site's token bucket in the future: when each further start may be (I12). Starts of one lane never go back in time. */
import type { Instant } from "../../kernel/clock.ts";
import type { Absorption } from "./types.ts";

/** Tokens are sums of fractions, and a whole ms must not be lost to one of them. */
const EPSILON = 1e-6;

export class Lane {
  readonly site: string;
  readonly perSecond: number;
  readonly #perMs: number;
  readonly #burst: number;
  readonly #now: Instant;
  #tokens: number;
  /** Since `now`: an instant has too many digits for fractions. */
  #atMs = 0;

  constructor({ site, perSecond, burst, tokens }: Absorption, now: Instant) {
    this.site = site;
    this.perSecond = Math.max(0, perSecond);
    this.#perMs = this.perSecond / 1_000;
    this.#burst = Math.max(1, burst);
    this.#tokens = Math.min(tokens, this.#burst);
    this.#now = now;
  }

  /** When the next start may be, not before `floor`; infinite when nothing is ever absorbed. */
  next(floor: Instant): Instant {
    return this.#now + Math.ceil(this.#nextMs(floor) - EPSILON);
  }

  /** Takes the token of the start that `next` names. */
  take(floor: Instant): Instant {
    const atMs = this.#nextMs(floor);
    this.#tokens = Math.max(0, this.#tokensAt(atMs) - 1);
    this.#atMs = atMs;
    return this.#now + Math.ceil(atMs - EPSILON);
  }

  #nextMs(floor: Instant): number {
    const from = Math.max(this.#atMs, floor - this.#now);
    const tokens = this.#tokensAt(from);
    return tokens >= 1 - EPSILON ? from : from + (1 - tokens) / this.#perMs;
  }

  #tokensAt(atMs: number): number {
    return Math.min(this.#burst, this.#tokens + (atMs - this.#atMs) * this.#perMs);
  }
}
