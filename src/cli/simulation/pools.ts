/** The user's pools on the production code under a virtual clock: what became of them, seed by seed, and what happened in the one that tells most. */
import { composeController } from "../processes/controller.ts";
import { PoolStory, type StoryLine } from "../../sim/pool-story.ts";
import { runSeed, type SeedResult } from "../../sim/run-seed.ts";
import type { ScenarioFile } from "../../sim/scenario-file.ts";
import { LOSSES } from "../../model/phase.ts";
import type { Seeds, SimulateOptions } from "../commands/simulate.ts";
import type { CliContext } from "../context.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { renderDocument, renderTable } from "../output.ts";
import { Progress } from "./progress.ts";

type PoolsScenario = Extract<ScenarioFile, { form: "pools" }>;

interface Told {
  readonly result: SeedResult;
  readonly story: readonly StoryLine[];
}

export async function simulatePools(
  context: CliContext,
  { output }: SimulateOptions,
  scenario: PoolsScenario,
  seeds: Seeds,
): Promise<ExitCode> {
  const progress = new Progress(context);
  const results: SeedResult[] = [];
  /** The first that went wrong, else the first. */
  let told: Told | undefined;
  for (const sentence of scenario.assumed) context.err(`relevo: ${sentence}\n`);
  for (let seed = seeds.from; seed <= seeds.to && !context.signal.aborted; seed++) {
    progress.tell(() => `${scenario.name}: seed ${seed} of ${seeds.from}..${seeds.to}`);
    const story = new PoolStory();
    // Of a thousand seeds the logs would fill the memory.
    const result = { ...(await runOne(scenario, seed, story)), log: [] };
    results.push(result);
    if (told === undefined || (isWrong(result) && !isWrong(told.result))) told = { result, story: story.lines };
  }
  const document = summaryOf(scenario, seeds, results, told);
  context.out(renderDocument(document, output) ?? tableOf(document, results.length));
  const isWhole = results.length === seeds.to - seeds.from + 1;
  return isWhole && !results.some(isWrong) ? EXIT.done : EXIT.failed;
}

function runOne(file: PoolsScenario, seed: number, story: PoolStory): Promise<SeedResult> {
  const { scenario, runForMs, convergeWithinMs, kinds, timeline } = file;
  return runSeed(seed, {
    compose: composeController,
    scenario,
    faultsForMs: runForMs,
    convergeWithinMs,
    ...(kinds === undefined ? {} : { kinds }),
    ...(timeline === undefined ? {} : { faults: timeline(seed) }),
    told: (event, atMs) => story.told(event, atMs),
  });
}

function isWrong({ violations, convergedMs }: SeedResult): boolean {
  return violations.length > 0 || convergedMs === null;
}

interface Summary {
  readonly scenario: string;
  readonly level: "simulated";
  readonly seeds: string;
  readonly converged: number;
  readonly failed: readonly number[];
  /** From the end of the faults until all was as it should be. */
  readonly convergedMs: { readonly median: number | null; readonly max: number | null };
  readonly violations: readonly { readonly seed: number; readonly id: string; readonly atMs: number; readonly sentence: string }[];
  readonly pools: readonly {
    readonly pool: string;
    readonly requests: SeedResult["pools"][number]["requests"];
    readonly losses: Readonly<Record<string, { readonly instances: number; readonly obligations: number; readonly assumedSeals: number }>>;
  }[];
  readonly faults: Readonly<Record<string, number>>;
  readonly timeline: { readonly seed: number; readonly lines: readonly StoryLine[] } | null;
}

function summaryOf({ name }: PoolsScenario, { from, to }: Seeds, results: readonly SeedResult[], told: Told | undefined): Summary {
  const converged = results.flatMap(({ convergedMs }) => (convergedMs === null ? [] : [convergedMs])).toSorted((a, b) => a - b);
  const faults = new Map<string, number>();
  for (const { faultCounts } of results) for (const [kind, count] of faultCounts) faults.set(kind, (faults.get(kind) ?? 0) + count);
  return {
    scenario: name,
    level: "simulated",
    seeds: `${from}..${to}`,
    converged: converged.length,
    failed: results.filter(isWrong).map(({ seed }) => seed),
    convergedMs: { median: converged[Math.floor(converged.length / 2)] ?? null, max: converged.at(-1) ?? null },
    violations: results.flatMap(({ seed, violations }) => violations.map((violation) => ({ seed, ...violation }))),
    pools: poolsOf(results),
    faults: Object.fromEntries([...faults].toSorted(([a], [b]) => (a < b ? -1 : 1))),
    timeline: told === undefined ? null : { seed: told.result.seed, lines: told.story },
  };
}

function poolsOf(results: readonly SeedResult[]): Summary["pools"] {
  const names = [...new Set(results.flatMap(({ pools }) => pools.map(({ pool }) => pool)))];
  return names.map((pool) => {
    const all = results.flatMap(({ pools }) => pools.filter((each) => each.pool === pool));
    const requests = { sent: 0, completed: 0, rejected: 0, cut: 0 };
    for (const each of all) for (const key of Object.keys(requests) as (keyof typeof requests)[]) requests[key] += each.requests[key];
    const losses = LOSSES.map((loss) => {
      const of = all.flatMap((each) => each.losses.filter((count) => count.loss === loss));
      const sum = (key: "instances" | "obligations" | "assumedSeals"): number => of.reduce((total, count) => total + count[key], 0);
      return [loss, { instances: sum("instances"), obligations: sum("obligations"), assumedSeals: sum("assumedSeals") }] as const;
    });
    return { pool, requests, losses: Object.fromEntries(losses) };
  });
}

function tableOf(summary: Summary, runs: number): string {
  const { scenario, seeds, failed, convergedMs, violations, pools, faults, timeline } = summary;
  const seconds = (ms: number | null): string => (ms === null ? "-" : `${(ms / 1_000).toFixed(1)} s`);
  const parts = [
    `${scenario}, ${runs === 1 ? `seed ${timeline?.seed}` : `seeds ${seeds}`}, simulated\n\n`,
    runs === 1
      ? `${failed.length === 0 ? "came" : "did not come"} through\n`
      : `${runs - failed.length} of ${runs} seeds came through${failed.length === 0 ? "" : `, not ${failed.join(", ")}`}\n`,
    `from the end of the faults until all was as it should be: ${seconds(convergedMs.median)}`,
    runs === 1 ? "\n" : ` in the middle, ${seconds(convergedMs.max)} at most\n`,
    ...violations.map(({ seed, id, atMs, sentence }) => `seed ${seed}: ${id} at ${seconds(atMs)}: ${sentence}\n`),
    "\n",
    renderTable(
      pools,
      [
        { head: "POOL", cell: ({ pool }) => pool },
        { head: "SENT", cell: ({ requests }) => String(requests.sent) },
        { head: "COMPLETED", cell: ({ requests }) => String(requests.completed) },
        { head: "REJECTED", cell: ({ requests }) => String(requests.rejected) },
        { head: "CUT", cell: ({ requests }) => String(requests.cut) },
        {
          head: "OPEN",
          cell: ({ requests: { sent, completed, rejected, cut } }) => String(sent - completed - rejected - cut),
        },
        ...LOSSES.map((loss) => ({
          head: loss.toUpperCase(),
          cell: ({ losses }: Summary["pools"][number]) => `${losses[loss]?.instances ?? 0} (${losses[loss]?.obligations ?? 0})`,
        })),
      ],
      { now: 0 },
    ),
    "\nopen: under way when the run ended\nvoluntary, deadline, forced: instances that went, and in parentheses the obligations that were lost with them\n\n",
    `faults: ${
      Object.entries(faults)
        .map(([kind, count]) => `${kind} ${count}`)
        .join(", ") || "none"
    }\n`,
  ];
  if (timeline !== null) {
    parts.push(`\nseed ${timeline.seed}:\n`);
    for (const { atMs, sentence } of timeline.lines) parts.push(`${(atMs / 1_000).toFixed(3).padStart(9)} s  ${sentence}\n`);
  }
  return parts.join("");
}
