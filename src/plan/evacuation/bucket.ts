/**
 * What a site absorbs: a token bucket whose rate is learned (S12, I12). One token is one start of a move.
 *
 * The rate is judged once per window of ten seconds, by what was measured in it, and by nothing else:
 *
 * 1. Overrun: more than a tenth of those that ended failed, or the rest took on the mean half as long again as the best that the site has shown. The rate
 *    becomes nine tenths of what was seen serving per second, but falls by half at most: in one window few may have ended because few had been sent.
 * 2. All well, hardly slower than the best, somebody waited for a token, and at least half of what the rate allows came through: the bucket is what limits. The rate rises by a quarter.
 * 3. Otherwise it stays: a quiet site tells nothing.
 *
 * Between two judgements tokens come at the least rate only while more is under way than the site, at its best time and this rate, would have at once: a queue that
 * grows makes everybody slower, long before those in it have ended and can be judged by. Never none: what hangs for another reason must not stop everybody.
 *
 * The best time fades by a hundredth per window towards what is seen, so that a site that has become slower for good is not held down for ever. `burst` is at
 * most what was configured and at most ten seconds' worth of the rate: a site that absorbs three a second must not be given a hundred at once.
 */
import type { Instant } from "../../kernel/clock.ts";
import type { Absorption } from "./types.ts";

export const WINDOW_MS = 10_000;
const MIN_PER_SECOND = 0.1;
const MAX_PER_SECOND = 1_000;
const OVERRUN_FAILED_SHARE = 0.1;
const OVERRUN_SLOWDOWN = 1.5;
/** Slower than this is no reason to send fewer, but one not to send more. */
const STRAINED_SLOWDOWN = 1.2;
/** With fewer ends than this in a window, one slow one would decide. */
const LEAST_ENDS = 3;
const BURST_SECONDS = 10;
/** Times what a steady stream at this rate has under way. */
const MOST_UNDER_WAY = 1.25;
/** A rate that is not used is no lower bound of what could be absorbed. */
const LEAST_USED_SHARE = 0.5;

export interface AbsorptionConfig {
  readonly site: string;
  /** Where learning begins. */
  readonly perSecond: number;
  readonly burst: number;
  /** It is never learned down to less: what hangs for other reasons must not stop a small fleet. */
  readonly leastPerSecond?: number;
  readonly leastBurst?: number;
}

/** What was learned, as data: it can be kept and taken up again. */
export interface LearnedAbsorption {
  readonly perSecond: number;
  readonly bestMs: number | null;
}

export class AbsorptionBucket {
  readonly site: string;
  readonly #configuredBurst: number;
  readonly #leastPerSecond: number;
  readonly #leastBurst: number;
  #perSecond: number;
  #tokens: number;
  #at: Instant;
  #bestMs: number | null;
  #windowFrom: Instant;
  #served = 0;
  #failed = 0;
  #timed = 0;
  #sumMs = 0;
  #isShort = false;
  #underWay = 0;

  constructor(config: AbsorptionConfig, now: Instant, learned?: LearnedAbsorption) {
    this.site = config.site;
    this.#configuredBurst = Math.max(1, config.burst);
    this.#leastPerSecond = config.leastPerSecond ?? MIN_PER_SECOND;
    this.#leastBurst = config.leastBurst ?? 1;
    this.#perSecond = this.#clamp(learned?.perSecond ?? config.perSecond);
    this.#bestMs = learned?.bestMs ?? null;
    this.#at = now;
    this.#windowFrom = now;
    this.#tokens = this.#burst();
  }

  /** What the schedule is told. */
  view(now: Instant): Absorption {
    this.#advance(now);
    return { site: this.site, perSecond: this.#perSecond, burst: this.#burst(), tokens: this.#tokens };
  }

  learned(): LearnedAbsorption {
    return { perSecond: this.#perSecond, bestMs: this.#bestMs };
  }

  /** A move starts: takes its token; false, and nothing taken, when there is none. */
  take(now: Instant): boolean {
    this.#advance(now);
    if (this.#tokens < 1 - EPSILON) {
      this.#isShort = true;
      return false;
    }
    this.#tokens = Math.max(0, this.#tokens - 1);
    return true;
  }

  /** Somebody waits for a token: the schedule said so. */
  waited(now: Instant): void {
    this.#advance(now);
    this.#isShort = true;
  }

  /** How many the site has at once that have begun to be admitted and do not serve yet: told whenever it changes. */
  underWay(now: Instant, count: number): void {
    this.#advance(now);
    this.#underWay = count;
  }

  /** One that was started serves, `tookMs` after its admission began. Nothing takes no time: such a measure is one of a clock that was set. */
  served(now: Instant, tookMs: number): void {
    this.#advance(now);
    this.#served += 1;
    if (tookMs <= 0) return;
    this.#timed += 1;
    this.#sumMs += tookMs;
  }

  /** One that was started failed, or was not ready in time. */
  failed(now: Instant): void {
    this.#advance(now);
    this.#failed += 1;
  }

  #burst(): number {
    return Math.max(1, this.#leastBurst, Math.min(this.#configuredBurst, this.#perSecond * BURST_SECONDS));
  }

  /** A clock that was set back gives no tokens and takes none. */
  #advance(now: Instant): void {
    if (now - this.#windowFrom >= WINDOW_MS) {
      this.#refill(this.#windowFrom + WINDOW_MS);
      this.#judge();
      this.#windowFrom = now - ((now - this.#windowFrom) % WINDOW_MS);
    } else if (now < this.#windowFrom) {
      this.#windowFrom = now;
    }
    this.#refill(now);
  }

  #refill(now: Instant): void {
    const gained = (Math.max(0, now - this.#at) / 1_000) * (this.#isFull() ? this.#leastPerSecond : this.#perSecond);
    this.#tokens = Math.min(this.#burst(), this.#tokens + gained);
    this.#at = now;
  }

  #isFull(): boolean {
    return this.#bestMs !== null && this.#underWay > MOST_UNDER_WAY * this.#perSecond * (this.#bestMs / 1_000) + 1;
  }

  #judge(): void {
    const ends = this.#served + this.#failed;
    const meanMs = this.#timed > 0 ? this.#sumMs / this.#timed : null;
    const seen = (this.#served / WINDOW_MS) * 1_000;
    if (ends >= LEAST_ENDS && this.#isOverrun(ends, meanMs)) {
      this.#perSecond = this.#clamp(Math.max(this.#perSecond / 2, Math.min(this.#perSecond, 0.9 * seen)));
    } else if (this.#isShort && seen >= LEAST_USED_SHARE * this.#perSecond && !this.#isStrained(ends, meanMs)) {
      this.#perSecond = this.#clamp(this.#perSecond * 1.25);
    }
    if (meanMs !== null) this.#bestMs = this.#bestMs === null ? meanMs : Math.min(meanMs, this.#bestMs + 0.01 * (meanMs - this.#bestMs));
    this.#served = 0;
    this.#failed = 0;
    this.#timed = 0;
    this.#sumMs = 0;
    this.#isShort = false;
  }

  #clamp(perSecond: number): number {
    return Math.min(MAX_PER_SECOND, Math.max(this.#leastPerSecond, perSecond));
  }

  #isOverrun(ends: number, meanMs: number | null): boolean {
    if (this.#failed > ends * OVERRUN_FAILED_SHARE) return true;
    return this.#isSlower(meanMs, OVERRUN_SLOWDOWN);
  }

  #isStrained(ends: number, meanMs: number | null): boolean {
    return this.#failed > ends * OVERRUN_FAILED_SHARE || this.#isSlower(meanMs, STRAINED_SLOWDOWN);
  }

  #isSlower(meanMs: number | null, slowdown: number): boolean {
    return meanMs !== null && this.#bestMs !== null && meanMs > slowdown * this.#bestMs;
  }
}

/** Tokens are sums of fractions. */
const EPSILON = 1e-9;
