/** Seeds in which three replicas of the controller share the pools, and come and go beside all that goes wrong otherwise. */
import { FAULT_KINDS, type FaultKind } from "../../src/sim/faults.ts";
import { drawScenario, type Scenario } from "../../src/sim/scenario.ts";
import { seededRandom } from "../../src/sim/seeded.ts";
import { simulate } from "./seeds.ts";

const REPLICAS = 3;
/** Replicas come and go far more often than anything else goes wrong. */
const KINDS: readonly FaultKind[] = [...FAULT_KINDS, ...Array.from({ length: 40 }, () => "replica_gone" as const)];

export function sharedScenario(seed: number): Scenario {
  return { ...drawScenario(seededRandom(seed, "scenario")), replicas: REPLICAS };
}

export async function simulateShared(from: number, count: number, faultsForMs?: number): Promise<readonly string[]> {
  const failures: string[] = [];
  for (let seed = from; seed < from + count; seed++) {
    const options = { scenario: sharedScenario(seed), kinds: KINDS, ...(faultsForMs === undefined ? {} : { faultsForMs }) };
    const { violations } = await simulate(seed, options);
    for (const { id, atMs, sentence } of violations) failures.push(`shared seed ${seed}: ${id} at ${atMs} ms: ${sentence}`);
  }
  return failures;
}
