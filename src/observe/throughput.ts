/** How many jobs of a pool ended per second, and per busy slot: the last minute beside the ten before it. */
import type { PoolSlots } from "../model/slots.ts";

const BUCKET_MS = 5_000;
const RECENT = 12;
const USUAL = 120;

interface Bucket {
  ended: number;
  busySlotMs: number;
}

export class ThroughputWindow {
  readonly #since: number;
  /** By their number since the beginning of the monotonic clock; without those of which nothing was said. */
  readonly #buckets = new Map<number, Bucket>();

  /** `at`: monotonic, when the watch begins. */
  constructor(at: number) {
    this.#since = at;
  }

  /**
   * `ended` jobs from one monotonic time to another, in which so many slots were busy for so long together. Nobody saw when in that time: who was not heard of for
   * long did not do it all at the end, which would look like a minute of several times the work.
   */
  add(from: number, to: number, ended: number, busySlotMs: number): void {
    const last = bucketOf(to);
    const oldest = last - RECENT - USUAL;
    const lastMs = to - from;
    if (lastMs <= 0) this.#put(last, ended, busySlotMs);
    else
      for (let number = Math.max(oldest, bucketOf(from)); number <= last; number += 1) {
        const share = (Math.min(to, (number + 1) * BUCKET_MS) - Math.max(from, number * BUCKET_MS)) / lastMs;
        if (share > 0) this.#put(number, ended * share, busySlotMs * share);
      }
    for (const number of this.#buckets.keys()) if (number < oldest) this.#buckets.delete(number);
  }

  #put(number: number, ended: number, busySlotMs: number): void {
    const bucket = this.#buckets.get(number);
    if (bucket === undefined) this.#buckets.set(number, { ended, busySlotMs });
    else {
      bucket.ended += ended;
      bucket.busySlotMs += busySlotMs;
    }
  }

  figures(now: number): Pick<PoolSlots, "throughput" | "busySeconds" | "perBusySlot" | "usualPerBusySlot"> {
    const minuteMs = RECENT * BUCKET_MS;
    if (now - this.#since < minuteMs) return { throughput: null, busySeconds: null, perBusySlot: null, usualPerBusySlot: null };
    const current = bucketOf(now);
    // The bucket that is being filled, and the twelve before it: what is divided by is the time that they cover.
    const recent = this.#sum(current - RECENT, current);
    const usual = this.#sum(current - RECENT - USUAL, current - RECENT - 1);
    const coveredMs = minuteMs + (now - current * BUCKET_MS);
    return {
      throughput: (recent.ended / coveredMs) * 1_000,
      busySeconds: (recent.busySlotMs / coveredMs) * (minuteMs / 1_000),
      perBusySlot: perBusySlot(recent),
      usualPerBusySlot: now - this.#since < 2 * minuteMs ? null : perBusySlot(usual),
    };
  }

  #sum(from: number, to: number): { readonly ended: number; readonly busySlotMs: number } {
    const sum = { ended: 0, busySlotMs: 0 };
    for (const [number, { ended, busySlotMs }] of this.#buckets) {
      if (number < from || number > to) continue;
      sum.ended += ended;
      sum.busySlotMs += busySlotMs;
    }
    return sum;
  }
}

function bucketOf(at: number): number {
  return Math.floor(at / BUCKET_MS);
}

/** Per second; null where nothing was busy. */
function perBusySlot({ ended, busySlotMs }: { readonly ended: number; readonly busySlotMs: number }): number | null {
  return busySlotMs <= 0 ? null : (ended / busySlotMs) * 1_000;
}
