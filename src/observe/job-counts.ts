/** How the jobs of each pool ended since this controller began: apart from whether the pool scales well (K4). */
import type { JobOutcome } from "../model/slots.ts";

export type JobCounts = Readonly<Record<JobOutcome, number>>;

export class JobCounter {
  readonly #counts = new Map<string, Record<JobOutcome, number>>();

  count(pool: string, outcome: JobOutcome, jobs: number): void {
    const counts = this.#counts.get(pool) ?? { done: 0, nothing: 0, reaped: 0, failed: 0 };
    counts[outcome] += jobs;
    this.#counts.set(pool, counts);
  }

  of(pool: string): JobCounts | null {
    return this.#counts.get(pool) ?? null;
  }

  forget(pool: string): void {
    this.#counts.delete(pool);
  }
}
