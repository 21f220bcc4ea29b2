/** Whether a range of seeds shows what it is run for. */

/** Fewer seeds need not draw every kind of fault. */
const SEEDS_FOR_ALL_KINDS = 100;
/** Counted by what they do, not by their kind. */
const TOOK: Readonly<Record<string, readonly string[]>> = { watch_break: ["watch_ended", "watch_broken", "watch_gone"] };

/** Which of these kinds never really happened, by the counts of what did. */
export function neverInjected(kinds: readonly string[], counts: ReadonlyMap<string, number>): readonly string[] {
  return kinds.filter((kind) => !(TOOK[kind] ?? [kind]).some((took) => (counts.get(took) ?? 0) > 0));
}

/** 1: a seed failed (a violation, or it did not converge), or a kind of fault never happened though there were seeds enough for all. */
export function exitCodeOf(outcome: {
  readonly seeds: number;
  readonly failed: readonly number[];
  readonly never: readonly string[];
}): 0 | 1 {
  return outcome.failed.length > 0 || (outcome.never.length > 0 && outcome.seeds >= SEEDS_FOR_ALL_KINDS) ? 1 : 0;
}
