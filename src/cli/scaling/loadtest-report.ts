/** What a load test has shown: pure, from what was seen. */
import { doneOf, endedOf, type ScaleLook } from "./look.ts";

export interface LoadPhase {
  readonly jobs: number;
  /** Of these so many hang on purpose. */
  readonly stuck: number;
  readonly injectedAt: number;
  readonly looks: readonly ScaleLook[];
}

export interface Capacity {
  /** The most that served at once while work waited for them. */
  readonly instances: number;
  /** Jobs a second of each at that size. */
  readonly throughputPerInstance: number;
  /** Over how long that was measured. */
  readonly measuredMs: number;
}

/** A shorter time at the largest size says little. */
export const LEAST_MEASURED_MS = 3_000;

/**
 * Throughput of each instance at the largest size, told by the looks between which that size served and work waited for it all the time: before, instances were
 * still coming; after, they had nothing to do. Undefined: it was never so for long enough.
 */
export function capacityOf({ looks }: LoadPhase): Capacity | undefined {
  const busy = (look: ScaleLook) => look.serving > 0 && look.jobs.waiting > 0;
  const instances = Math.max(0, ...looks.filter(busy).map(({ serving }) => serving));
  let measuredMs = 0;
  let ended = 0;
  for (const [index, look] of looks.entries()) {
    const former = looks[index - 1];
    if (former === undefined || !busy(former) || former.serving !== instances || look.serving !== instances) continue;
    measuredMs += look.at - former.at;
    ended += endedOf(look.jobs) - endedOf(former.jobs);
  }
  if (instances === 0 || measuredMs < LEAST_MEASURED_MS) return undefined;
  return { instances, throughputPerInstance: round((1_000 * ended) / measuredMs / instances), measuredMs: Math.round(measuredMs) };
}

/** From the injection to the end of the last job, whatever its end; null: not within the time. */
export function drainedAfter({ looks, jobs, injectedAt }: LoadPhase): number | null {
  const drained = looks.find((look) => endedOf(look.jobs) >= jobs);
  return drained === undefined ? null : Math.round(drained.at - injectedAt);
}

/** Jobs that were to be done and were not. */
export function undoneOf({ looks, jobs, stuck }: LoadPhase): number {
  const last = looks.at(-1)?.jobs;
  return Math.max(0, jobs - stuck - (last === undefined ? 0 : doneOf(last)));
}

/** So that the stuck ones lie evenly among the others, the first of them early. */
export function mixOf<T>(jobs: number, share: number, good: T, stuck: T): readonly T[] {
  return Array.from({ length: jobs }, (_, index) => (Math.floor((index + 1) * share) > Math.floor(index * share) ? stuck : good));
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
