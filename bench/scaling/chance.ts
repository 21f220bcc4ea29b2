import type { Random } from "../../src/kernel/random.ts";

/** The same numbers for the same seed (mulberry32, public domain, Tommy Ettinger). */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return {
    next() {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    },
  };
}

/** A count with this mean (Knuth's method: the means here are small). */
export function poisson(random: Random, mean: number): number {
  const least = Math.exp(-mean);
  let count = 0;
  for (let product = random.next(); product > least; product *= random.next()) count += 1;
  return count;
}

export function exponential(random: Random, mean: number): number {
  return -Math.log(1 - random.next()) * mean;
}
