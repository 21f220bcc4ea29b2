/** What is remembered of a pool some of which had to go: for so long the others are expected to follow. */
import type { Instant } from "../../kernel/clock.ts";
import type { Evacuee, Exposed } from "./types.ts";

/** As long as a spot warning leads: what is taken back together is told of within that. */
export const EXPOSED_FOR_MS = 120_000;

export class Exposure {
  /** Since the first of those who went one after the other. */
  #since: Instant | null = null;
  #last: Instant = 0;
  #leadMs = Infinity;
  #of: Evacuee | undefined;

  /** One must go. Who just went, without a notice, tells nothing of the others. */
  note(evacuee: Evacuee): void {
    const { noticedAt, deadline } = evacuee;
    if (deadline === null) return;
    if (this.#since === null || noticedAt >= this.#last + EXPOSED_FOR_MS) {
      this.#since = noticedAt;
      this.#leadMs = Infinity;
    }
    this.#since = Math.min(this.#since, noticedAt);
    this.#last = Math.max(this.#last, noticedAt);
    this.#leadMs = Math.min(this.#leadMs, Math.max(0, deadline - noticedAt));
    this.#of = evacuee;
  }

  /** Null when nobody is expected to follow. */
  since(now: Instant): Instant | null {
    // Also of a clock that was set back it is no longer expected than that.
    return Math.abs(now - this.#last) < EXPOSED_FOR_MS ? this.#since : null;
  }

  /** `count` of the pool still are where they were. */
  exposed(count: number, now: Instant): Exposed | undefined {
    if (this.#of === undefined || count <= 0 || this.since(now) === null) return undefined;
    const { pool, priority, latencyLimitMs, stateMoveMs, warmUpMs } = this.#of;
    const workMs = stateMoveMs + warmUpMs;
    return { pool, priority, latencyLimitMs, count, leadMs: this.#leadMs, workMs, until: this.#last + EXPOSED_FOR_MS };
  }
}
