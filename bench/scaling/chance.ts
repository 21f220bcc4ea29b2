import type { Random } from "../../src/kernel/random.ts";

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
