/**
 * What a site absorbs: a token bucket whose rate is learned (S12, I12). One token is one start of a move.
 *
 * The rate is judged once per window of ten seconds, by what was measured in it, and by nothing else:
 *
 * 1. Overrun: more than a tenth of those that ended failed, or the rest took on the mean more than twice as long as the best that the site has shown. The rate
 *    becomes nine tenths of what was seen serving per second, but falls by half at most: in one window few may have ended because few had been sent.
 * 2. All well, somebody waited for a token, and at least half of what the rate allows came through: the bucket is what limits. The rate rises by a quarter.
 * 3. Otherwise it stays: a quiet site tells nothing.
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
const OVERRUN_SLOWDOWN = 2;
/** With fewer ends than this in a window, one slow one would decide. */
const LEAST_ENDS = 3;
const BURST_SECONDS = 10;
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
  #sumMs = 0;
  #isShort = false;

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

  /** One that was started serves, `tookMs` after its admission began. */
  served(now: Instant, tookMs: number): void {
    this.#advance(now);
    this.#served += 1;
    this.#sumMs += Math.max(0, tookMs);
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
    const gained = (Math.max(0, now - this.#at) / 1_000) * this.#perSecond;
    this.#tokens = Math.min(this.#burst(), this.#tokens + gained);
    this.#at = now;
  }

  #judge(): void {
    const ends = this.#served + this.#failed;
    const meanMs = this.#served > 0 ? this.#sumMs / this.#served : null;
    const seen = (this.#served / WINDOW_MS) * 1_000;
    if (ends >= LEAST_ENDS && this.#isOverrun(ends, meanMs)) {
      this.#perSecond = this.#clamp(Math.max(this.#perSecond / 2, Math.min(this.#perSecond, 0.9 * seen)));
    } else if (this.#isShort && this.#failed <= ends * OVERRUN_FAILED_SHARE && seen >= LEAST_USED_SHARE * this.#perSecond) {
      this.#perSecond = this.#clamp(this.#perSecond * 1.25);
    }
    if (meanMs !== null) this.#bestMs = this.#bestMs === null ? meanMs : Math.min(meanMs, this.#bestMs + 0.01 * (meanMs - this.#bestMs));
    this.#served = 0;
    this.#failed = 0;
    this.#sumMs = 0;
    this.#isShort = false;
  }

  #clamp(perSecond: number): number {
    return Math.min(MAX_PER_SECOND, Math.max(this.#leastPerSecond, perSecond));
  }

  #isOverrun(ends: number, meanMs: number | null): boolean {
    if (this.#failed > ends * OVERRUN_FAILED_SHARE) return true;
    return meanMs !== null && this.#bestMs !== null && meanMs > OVERRUN_SLOWDOWN * this.#bestMs;
  }
}

/** Tokens are sums of fractions. */
const EPSILON = 1e-9;
