/** What is kept of a seed's run, as it goes from process to process. */
import { composeController } from "../../src/cli/processes/controller.ts";
import { runSeed, type Violation } from "../../src/sim/run-seed.ts";

export interface SeedSummary {
  readonly seed: number;
  readonly hash: string;
  readonly violations: readonly Violation[];
  readonly faultCounts: readonly (readonly [kind: string, count: number])[];
  readonly virtualMs: number;
  readonly convergedMs: number | null;
  /** Empty unless it was asked for. */
  readonly log: readonly string[];
}

export async function summarise(seed: number, log: boolean): Promise<SeedSummary> {
  const result = await runSeed(seed, { compose: composeController });
  const { hash, violations, virtualMs, convergedMs } = result;
  return { seed, hash, violations, faultCounts: [...result.faultCounts], virtualMs, convergedMs, log: log ? result.log : [] };
}
