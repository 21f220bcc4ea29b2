/** Seeds in which three replicas of the controller share the pools, and come and go beside all that goes wrong otherwise. */
import { FAULT_KINDS, type FaultKind } from "../../src/sim/faults.ts";
import { drawScenario, type Scenario, scenarioPool } from "../../src/sim/scenario.ts";
import { seededRandom } from "../../src/sim/seeded.ts";
import { simulate } from "./seeds.ts";

const REPLICAS = 3;
/** Of each pool, where all have one. */
const LEASE = { ttl: "4s" };
/** Replicas come and go far more often than anything else goes wrong. */
const KINDS: readonly FaultKind[] = [...FAULT_KINDS, ...Array.from({ length: 40 }, () => "replica_gone" as const)];
const LEASED_KINDS: readonly FaultKind[] = [...KINDS, ...Array.from({ length: 15 }, () => "writer_isolated" as const)];

export function sharedScenario(seed: number): Scenario {
  return { ...drawScenario(seededRandom(seed, "scenario")), replicas: REPLICAS };
}

/** The same with a writer lease in every pool. */
export function leasedScenario(seed: number): Scenario {
  const scenario = sharedScenario(seed);
  const leased = scenario.pools.map(({ document }) => {
    const spec = { ...(document["spec"] as Readonly<Record<string, unknown>>), state: { lease: LEASE } };
    return scenarioPool({ ...document, spec });
  });
  return { ...scenario, pools: leased };
}

export interface SharedRun {
  readonly faultsForMs?: number;
  readonly scenarioOf?: (seed: number) => Scenario;
}

export async function simulateShared(
  from: number,
  count: number,
  { scenarioOf = sharedScenario, ...rest }: SharedRun = {},
): Promise<readonly string[]> {
  const failures: string[] = [];
  for (let seed = from; seed < from + count; seed++) {
    const kinds = scenarioOf === leasedScenario ? LEASED_KINDS : KINDS;
    const options = { scenario: scenarioOf(seed), kinds, ...rest };
    const { violations } = await simulate(seed, options);
    for (const { id, atMs, sentence } of violations) failures.push(`shared seed ${seed}: ${id} at ${atMs} ms: ${sentence}`);
  }
  return failures;
}
