/** Where mutants are shown. Loaded after the fault is in place. */
import { composeController } from "../../src/cli/processes/controller.ts";
import { runSeed } from "../../src/sim/run-seed.ts";
import type { Stage } from "./mutant.ts";

const FAULTS_FOR_MS = 20_000;
/** Long enough for the unmutated program, as the control shows. */
const CONVERGE_WITHIN_MS = 180_000;

/** The first thing that was violated; undefined when nothing was. */
export async function runStage(stage: Stage, seed: number): Promise<{ readonly id: string; readonly sentence: string } | undefined> {
  const { violations } = await runSeed(seed, {
    compose: composeController,
    ...(stage.faults === undefined ? {} : { kinds: stage.faults }),
    faultsForMs: stage.faultsForMs ?? FAULTS_FOR_MS,
    convergeWithinMs: CONVERGE_WITHIN_MS,
    stopsAtViolation: true,
  });
  return violations[0];
}
