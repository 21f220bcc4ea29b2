/** `relevo simulate -f SCENARIO --seeds A..B`: what Relevo would do, in a virtual world: no cluster, no controller and no store of the user is touched. */
import type { CliContext, GlobalOptions } from "../context.ts";
import { type ExitCode, UsageError } from "../exit.ts";
import { readText, shownName } from "../text-file.ts";
import { readScenario } from "../scenario-file.ts";

export interface SimulateOptions extends GlobalOptions {
  readonly filename: string;
  readonly seeds: string;
  readonly baselines?: boolean;
}

export interface Seeds {
  readonly from: number;
  readonly to: number;
}

export async function simulate(context: CliContext, options: SimulateOptions): Promise<ExitCode> {
  const seeds = seedsOf(options.seeds);
  const file = options.filename;
  const scenario = readScenario(shownName(file), await readText(context, file));
  if (scenario.form === "fleet") return (await import("../simulation/storm.ts")).simulateStorm(context, options, scenario, seeds);
  if (options.baselines === true)
    throw new UsageError("baselines_of_fleets", "Baselines are of fleets: a scenario of pools has none.", {
      found: file,
      todo: "leave --baselines out",
    });
  return (await import("../simulation/pools.ts")).simulatePools(context, options, scenario, seeds);
}

function seedsOf(text: string): Seeds {
  const range = /^(\d{1,9})(?:\.\.(\d{1,9}))?$/.exec(text);
  const from = Number(range?.[1]);
  const to = Number(range?.[2] ?? range?.[1]);
  if (range === null || to < from)
    throw new UsageError("seeds_invalid", "--seeds is not valid.", { found: text, allowed: "A or A..B, whole numbers, such as 1..1000" });
  return { from, to };
}
