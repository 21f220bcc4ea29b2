/** Chance and ids of a simulation: everything comes from one small number, each part of the world from a stream of its own. */
import { uniformFloat64 } from "pure-rand/distribution/uniformFloat64";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";
import type { Ids } from "../kernel/ids.ts";
import { integerBetween, type Random } from "../kernel/random.ts";

/** One stream per part, so that one part that asks once more does not change what the others get. */
export function seededRandom(seed: number, stream: string): Random {
  const generator = xoroshiro128plus(mix(seed, stream));
  return { next: () => uniformFloat64(generator) };
}

/** Neighbouring seeds start generators in states that are alike: they are hashed first (FNV-1a, then the finaliser of MurmurHash 3). */
function mix(seed: number, stream: string): number {
  let hash = 0x811c9dc5;
  for (const code of `${seed} ${stream}`) hash = Math.imul(hash ^ code.charCodeAt(0), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

export function seededIds(random: Random): Ids {
  return {
    next(prefix: string): string {
      let digits = "";
      while (digits.length < 10) digits += Math.floor(random.next() * 16).toString(16);
      return `${prefix}-${digits}`;
    },
  };
}

export function chance(random: Random, share: number): boolean {
  return random.next() < share;
}

export function pick<T>(random: Random, items: readonly [T, ...T[]]): T;
export function pick<T>(random: Random, items: readonly T[]): T | undefined;
export function pick<T>(random: Random, items: readonly T[]): T | undefined {
  return items.length === 0 ? undefined : items[integerBetween(random, 0, items.length - 1)];
}
