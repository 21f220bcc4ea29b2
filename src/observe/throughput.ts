/** How many jobs of a pool ended per second, and per busy slot: the last minute beside the ten before it. */
import type { PoolSlots } from "../model/slots.ts";

const BUCKET_MS = 5_000;
const RECENT = 12;
const USUAL = 120;

interface Bucket {
  /** Its number since the beginning of the monotonic clock. */
  readonly number: number;
  ended: number;
  busySlotMs: number;
}

export class ThroughputWindow {
  readonly #since: number;
  /** Oldest first; without those in which nothing was said. */
  #buckets: Bucket[] = [];

  /** `at`: monotonic, when the watch begins. */
  constructor(at: number) {
    this.#since = at;
  }

  /** `ended` jobs in a time in which so many slots were busy for so long together. */
  add(at: number, ended: number, busySlotMs: number): void {
    const number = Math.floor(at / BUCKET_MS);
    const last = this.#buckets.at(-1);
    if (last?.number === number) {
      last.ended += ended;
      last.busySlotMs += busySlotMs;
      return;
    }
    this.#buckets.push({ number, ended, busySlotMs });
    const oldest = number - RECENT - USUAL;
    if ((this.#buckets[0]?.number ?? number) < oldest) this.#buckets = this.#buckets.filter((each) => each.number >= oldest);
  }

  figures(now: number): Pick<PoolSlots, "throughput" | "busySeconds" | "perBusySlot" | "usualPerBusySlot"> {
    const minuteMs = RECENT * BUCKET_MS;
    if (now - this.#since < minuteMs) return { throughput: null, busySeconds: null, perBusySlot: null, usualPerBusySlot: null };
    const current = Math.floor(now / BUCKET_MS);
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
    const within = this.#buckets.filter(({ number }) => number >= from && number <= to);
    return {
      ended: within.reduce((sum, each) => sum + each.ended, 0),
      busySlotMs: within.reduce((sum, each) => sum + each.busySlotMs, 0),
    };
  }
}

/** Per second; null where nothing was busy. */
function perBusySlot({ ended, busySlotMs }: { readonly ended: number; readonly busySlotMs: number }): number | null {
  return busySlotMs <= 0 ? null : (ended / busySlotMs) * 1_000;
}
