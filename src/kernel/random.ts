/** Chance comes through this port and no other way. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
}

/** A whole number in [low, high], both inclusive. */
export function integerBetween(random: Random, low: number, high: number): number {
  return low + Math.floor(random.next() * (high - low + 1));
}
