/** Where mutants are shown. Loaded after the fault is in place. */
import { composeController } from "../../src/cli/processes/controller.ts";
import { type CrashCase, crashAt, crashPointsOf, rehearse } from "../../src/sim/crash-points.ts";
import { faultsOf, runSeed, type SeedResult } from "../../src/sim/run-seed.ts";
import { type Schedule, shrink } from "../../src/sim/shrink.ts";
import { runStorm } from "../../src/sim/storm/approaches.ts";
import { CRASH_CASES } from "../../test/scenarios/crash-cases.ts";
import { simulateWorkers } from "../../test/scenarios/worker-seeds.ts";
import { FLEETS } from "./fleets.ts";
import type { Stage } from "./mutant.ts";
import { checkNotices } from "./notices.ts";
import { SCENARIOS } from "./scenarios.ts";

const FAULTS_FOR_MS = 20_000;
/** Long enough for the unmutated program, as the control shows. */
const CONVERGE_WITHIN_MS = 180_000;
const SHRINK_RUNS_MAX = 80;

export interface Finding {
  readonly id: string;
  readonly sentence: string;
}

/** The first thing that was violated; undefined when nothing was. */
export async function runStage(stage: Stage, seed: number): Promise<Finding | undefined> {
  if (stage.kind === "crash_points") return runCrash(stage, seed);
  if (stage.kind === "notices") return checkNotices(seed);
  if (stage.kind === "workers") return (await simulateWorkers(seed)).violations[0];
  if (stage.kind === "storm") return (await runStorm(FLEETS[stage.fleet](), seed, "relevo")).violations[0];
  return (await runSchedule(scheduleOf(stage, seed), stage)).violations[0];
}

/** The smallest schedule that shows the same. */
export async function shrinkStage(stage: Stage, seed: number): Promise<Schedule | undefined> {
  if (stage.kind !== "seeds") return undefined;
  const attempt = async (schedule: Schedule) => (await runSchedule(schedule, stage)).violations[0];
  return (await shrink(scheduleOf(stage, seed), attempt, { runs: SHRINK_RUNS_MAX }))?.schedule;
}

function runSchedule(schedule: Schedule, { scenario }: Extract<Stage, { kind: "seeds" }>): Promise<SeedResult> {
  const world = scenario === undefined ? {} : { scenario: SCENARIOS[scenario]() };
  const options = { compose: composeController, convergeWithinMs: CONVERGE_WITHIN_MS, stopsAtViolation: true, ...world };
  return runSeed(schedule.seed, { ...schedule, ...options });
}

function scheduleOf(stage: Extract<Stage, { kind: "seeds" }>, seed: number): Schedule {
  const { faults: kinds, planned, faultsForMs = FAULTS_FOR_MS } = stage;
  return {
    seed,
    ...faultsOf(seed, { faultsForMs, ...(kinds === undefined ? {} : { kinds }), ...(planned === undefined ? {} : { faults: planned }) }),
  };
}

/** The n-th crash point of a case instead of a seed; the first is the run without a crash. */
async function runCrash(stage: Extract<Stage, { kind: "crash_points" }>, number: number): Promise<Finding | undefined> {
  const crashCase = CRASH_CASES.find(({ name }) => name === stage.crashCase) as CrashCase;
  const calm = await rehearse(crashCase, composeController);
  if (number === 1) return calm.violations[0];
  const points = crashPointsOf(calm);
  // Far from each other first: seven is prime to what their number may be.
  const point = points[((number - 2) * 7) % points.length];
  if (point === undefined) return undefined;
  const { end, violations } = await crashAt(crashCase, composeController, point);
  if (violations[0] !== undefined) return violations[0];
  const [expected, seen] = [JSON.stringify(calm.end), JSON.stringify(end)];
  return seen === expected
    ? undefined
    : { id: "crash point", sentence: `${point.side} call ${point.call}: ${seen} instead of ${expected}` };
}
