/** Worlds with a pool whose size follows its demand, under the standard mix of faults, and the faults that such a pool has of its own. */
import { JOB_KINDS, planFaults } from "../../src/sim/faults.ts";
import { type SeedResult } from "../../src/sim/run-seed.ts";
import { drawScenario, withWorkers } from "../../src/sim/scenario.ts";
import { seededRandom } from "../../src/sim/seeded.ts";
import { simulate } from "./seeds.ts";

const FAULTS_FOR_MS = 40_000;

export function simulateWorkers(seed: number): Promise<SeedResult> {
  const standard = planFaults(seededRandom(seed, "faults"), FAULTS_FOR_MS);
  const own = planFaults(seededRandom(seed, "faults of workers"), FAULTS_FOR_MS, JOB_KINDS).slice(0, 3);
  const faults = [...standard, ...own].toSorted((a, b) => a.atMs - b.atMs);
  return simulate(seed, {
    scenario: withWorkers(drawScenario(seededRandom(seed, "scenario"))),
    faults,
    faultsForMs: FAULTS_FOR_MS,
    turnsOn: true,
  });
}

/** What was violated, as text, and how often each kind of fault happened. */
export async function simulateAllWorkers(from: number, count: number) {
  const failures: string[] = [];
  const faults = new Map<string, number>();
  for (let seed = from; seed < from + count; seed++) {
    const { violations, faultCounts } = await simulateWorkers(seed);
    for (const { id, atMs, sentence } of violations) failures.push(`seed ${seed} with workers: ${id} at ${atMs} ms: ${sentence}`);
    for (const [kind, times] of faultCounts) faults.set(kind, (faults.get(kind) ?? 0) + times);
  }
  return { failures, faults };
}
