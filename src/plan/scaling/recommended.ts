/**
 * What was wanted lately. A size that was wanted at a look is taken as wanted until the next look, so that what was wanted when a window began is what the last
 * look before it said.
 */
import type { Instant } from "../../kernel/clock.ts";
import type { ScalePolicy } from "../../model/scale.ts";
import type { Recommendation } from "./types.ts";

/** Of each such part of the window the lowest and the highest are kept, whatever the number of looks. */
const PARTS = 200;

/** Adds what is wanted now; what no window asks for any more is left out. Of each part the last look stays too: at most `3 × PARTS + 4`. */
export function rememberRecommendation(
  recommended: readonly Recommendation[],
  newest: Recommendation,
  { up, down }: Pick<ScalePolicy, "up" | "down">,
): readonly Recommendation[] {
  const window = Math.max(up.window, down.window);
  const kept = within(recommended, newest.at - window);
  const [before, last] = kept.slice(-2);
  // One size that is wanted at look after look is kept with its first and its last time.
  if (before?.size === newest.size && last?.size === newest.size) return [...kept.slice(0, -1), newest];
  const part = Math.max(1, window / PARTS);
  const partOf = ({ at }: Recommendation): number => Math.floor(at / part);
  const begins = kept.findIndex((each) => partOf(each) === partOf(newest));
  if (begins === -1) return [...kept, newest];
  const sameTime = [...kept.slice(begins), newest];
  const lowest = sameTime.reduce((a, b) => (b.size <= a.size ? b : a));
  const highest = sameTime.reduce((a, b) => (b.size >= a.size ? b : a));
  return [...kept.slice(0, begins), ...sameTime.filter((each) => each === lowest || each === highest || each === newest)];
}

/** Those since `from`, and what was wanted then. */
function within(recommended: readonly Recommendation[], from: Instant): readonly Recommendation[] {
  const first = recommended.findLastIndex(({ at }) => at <= from);
  return first <= 0 ? recommended : recommended.slice(first);
}

export interface Stable {
  readonly size: number;
  /** When it changes if the same is wanted on; null: it is what is wanted now. */
  readonly until: Instant | null;
}

/** The lowest or the highest that was wanted within the window. Before the first look the size that is was wanted: a new controller waits as long as any. */
export function stable(
  recommended: readonly Recommendation[],
  wanted: number,
  desired: number,
  window: number,
  now: Instant,
  most: "lowest" | "highest",
): Stable {
  if (window === 0) return { size: wanted, until: null };
  const looks = [...within(recommended, now - window), { at: now, size: wanted }];
  const [first] = looks;
  const all = first !== undefined && first.at <= now - window ? looks : [{ at: now - window, size: desired }, ...looks];
  const sizes = all.map(({ size }) => size);
  const size = most === "lowest" ? Math.min(...sizes) : Math.max(...sizes);
  if (size === wanted) return { size, until: null };
  const last = all.findLastIndex((each) => each.size === size);
  return { size, until: (all[last + 1]?.at ?? now) + window };
}
