/** Faults that the simulator found in the product, each as the smallest schedule that shows it. */
import { expect, test } from "vitest";
import type { PlannedFault } from "../../src/sim/faults.ts";
import { simulate } from "./seeds.ts";

async function violationsOf(seed: number, faults: readonly PlannedFault[]): Promise<readonly string[]> {
  const { violations } = await simulate(seed, { faults, faultsForMs: 20_000, convergeWithinMs: 120_000 });
  return violations.map(({ id, sentence }) => `${id}: ${sentence}`);
}

test("a controller that is deposed while only steps are under way takes the pool again, or lets go of it (I16)", async () => {
  const faults: readonly PlannedFault[] = [
    { atMs: 900, fault: { kind: "lost_replies", share: 1, forMs: 9_000 } },
    { atMs: 1_000, fault: { kind: "node_drift", pick: 0, clearsAfterMs: null } },
    { atMs: 8_000, fault: { kind: "deposed" } },
  ];

  expect(await violationsOf(1, faults)).toEqual([]);
}, 60_000);
