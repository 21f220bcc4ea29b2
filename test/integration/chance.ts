/** Ids and randomness that are the same in every run. */
import type { Ids } from "../../src/kernel/ids.ts";
import type { Random } from "../../src/kernel/random.ts";

export function countingIds(): Ids {
  let count = 0;
  return { next: (prefix) => `${prefix}-${(++count).toString(16).padStart(10, "0")}` };
}

/** Mulberry32: small, and the same everywhere. */
export function seededRandom(seed: number): Random {
  let state = seed;
  return {
    next(): number {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    },
  };
}
