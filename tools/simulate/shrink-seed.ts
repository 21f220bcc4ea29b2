/** Shrinks a seed that fails to the smallest schedule of faults that breaks the same rule, within a bounded time, and keeps it as a file. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { composeController } from "../../src/cli/processes/controller.ts";
import { formatRegression } from "../../src/sim/regression.ts";
import { faultsOf, runSeed } from "../../src/sim/run-seed.ts";
import { type Schedule, shrink } from "../../src/sim/shrink.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const FOLDER = join(ROOT, "test", "scenarios", "regressions");
const RUNS_MAX = 400;
const WITHIN_MS = 180_000;
/** Shorter than in a run of the standard mix: most runs here end without a violation or soon with one. */
const CONVERGE_WITHIN_MS = 5 * 60_000;

/** The file that was written, below the repository's root; undefined when the seed fails no more, or only later than it is waited for. */
export async function shrinkSeed(
  seed: number,
): Promise<{ readonly file: string; readonly faults: number; readonly runs: number } | undefined> {
  const run = (schedule: Schedule) =>
    runSeed(seed, { ...schedule, compose: composeController, convergeWithinMs: CONVERGE_WITHIN_MS, stopsAtViolation: true });
  const endsAt = performance.now() + WITHIN_MS;
  const shrunk = await shrink({ seed, ...faultsOf(seed, {}) }, async (schedule) => (await run(schedule)).violations[0], {
    runs: RUNS_MAX,
    isOver: () => performance.now() > endsAt,
  });
  if (shrunk === undefined) return undefined;
  const { schedule, violation, runs } = shrunk;
  const path = join(FOLDER, `${violation.id.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}-seed-${seed}.yaml`);
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(path, formatRegression(schedule, violation, (await run(schedule)).log));
  return { file: relative(ROOT, path), faults: schedule.faults.length, runs };
}
