/** How the tests run seeds: the production composition, and violations as text with the command that shows them again. */
import { composeController } from "../../src/cli/processes/controller.ts";
import { replayCommand, runSeed, type SeedOptions, type SeedResult } from "../../src/sim/run-seed.ts";

export function simulate(seed: number, options: Omit<SeedOptions, "compose"> = {}): Promise<SeedResult> {
  return runSeed(seed, { ...options, compose: composeController });
}

export async function simulateAll(from: number, count: number, options: Omit<SeedOptions, "compose"> = {}): Promise<readonly string[]> {
  const failures: string[] = [];
  for (let seed = from; seed < from + count; seed++) {
    const { violations } = await simulate(seed, options);
    for (const { id, atMs, sentence } of violations)
      failures.push(`seed ${seed}: ${id} at ${atMs} ms: ${sentence}; replay: ${replayCommand(seed)}`);
  }
  return failures;
}
