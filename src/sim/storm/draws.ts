/** What chance gives, each from one uniform number or a few. */
import type { Random } from "../../kernel/random.ts";

/** With this mean; memoryless. */
export function exponential(random: Random, mean: number): number {
  return -Math.log(1 - random.next()) * mean;
}

export function uniform(random: Random, low: number, high: number): number {
  return low + random.next() * (high - low);
}

/** How many events of a Poisson process; for large means the normal approximation, whose error is far below what is counted here. */
export function poisson(random: Random, mean: number): number {
  if (mean <= 0) return 0;
  if (mean > 50) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal(random)));
  let count = 0;
  for (let left = exponential(random, 1); left < mean; left += exponential(random, 1)) count += 1;
  return count;
}

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}
