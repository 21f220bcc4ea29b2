/**
 * How often an address may offer a token that is not good. Guessing 256 bits leads nowhere; this keeps a client that is set up wrong, or a stranger, from costing
 * the controller and the API server more than a little. Whoever was let in lately is let in, whatever else comes from the same address.
 */
import { createHash } from "node:crypto";
import type { Clock } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import { BoundedMap } from "./bounded-map.ts";

/** At once, and then one each second. */
export const FAILURES_AT_ONCE = 20;
const REFILL_MS = 1_000;
const ADDRESSES_MAX = 4_096;
const GOOD_MAX = 4_096;
const GOOD_FOR_MS = 600_000;

interface Bucket {
  /** Failures that are still held against it. */
  readonly level: number;
  readonly at: number;
}

export class FailedAttempts {
  readonly #clock: Clock;
  readonly #buckets = new BoundedMap<string, Bucket>(ADDRESSES_MAX);
  /** Hashes of tokens that were good, and when. */
  readonly #good = new BoundedMap<string, number>(GOOD_MAX);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Before the token is looked at. Throws `too_many_failures`. */
  assertMayTry(address: string, token: string): void {
    if (this.#levelOf(address) < FAILURES_AT_ONCE) return;
    const goodAt = this.#good.get(hashOf(token));
    if (goodAt !== undefined && this.#clock.monotonic() - goodAt < GOOD_FOR_MS) return;
    throw new RelevoError("too_many_failures", "Too many wrong tokens came from this address.", {
      class: "retryable",
      allowed: `${FAILURES_AT_ONCE} at once, then one each second`,
      todo: "try again in some seconds",
    });
  }

  failed(address: string): void {
    this.#buckets.set(address, { level: this.#levelOf(address) + 1, at: this.#clock.monotonic() });
  }

  passed(token: string): void {
    this.#good.set(hashOf(token), this.#clock.monotonic());
  }

  #levelOf(address: string): number {
    const bucket = this.#buckets.get(address);
    if (bucket === undefined) return 0;
    return Math.max(0, bucket.level - (this.#clock.monotonic() - bucket.at) / REFILL_MS);
  }
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("base64");
}
