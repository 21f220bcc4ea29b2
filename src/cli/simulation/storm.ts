/** A storm over a modelled fleet: the figures of each seed, beside those of the baselines. */
import {
  BASELINES,
  type ApproachName,
  type Baseline,
  notBeaten,
  runStorm,
  type StormDocument,
  type StormRun,
} from "../../sim/storm/approaches.ts";
import type { StormFigures } from "../../sim/storm/figures.ts";
import type { ScenarioFile } from "../../sim/scenario-file.ts";
import type { Seeds, SimulateOptions } from "../commands/simulate.ts";
import type { CliContext } from "../context.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { type Column, renderDocument, renderTable } from "../output.ts";
import { Progress } from "./progress.ts";

type FleetScenario = Extract<ScenarioFile, { form: "fleet" }>;

interface SeedRun {
  readonly seed: number;
  readonly relevo: StormRun;
  readonly baselines: Readonly<Partial<Record<Baseline, StormRun>>>;
}

export async function simulateStorm(
  context: CliContext,
  options: SimulateOptions,
  { name, fleet }: FleetScenario,
  seeds: Seeds,
): Promise<ExitCode> {
  const isSingle = seeds.from === seeds.to;
  // Each is a whole storm more; over many seeds only when asked for.
  const compares = options.baselines ?? isSingle;
  const progress = new Progress(context);
  const runs: SeedRun[] = [];
  for (let seed = seeds.from; seed <= seeds.to && !context.signal.aborted; seed++) {
    const step = async (approach: ApproachName): Promise<StormRun> => {
      progress.tell(() => `${name}: seed ${seed} of ${seeds.from}..${seeds.to}, ${approach}`);
      // Of a thousand seeds the logs would fill the memory.
      return { ...(await runStorm(fleet, seed, approach)), log: [] };
    };
    const relevo = await step("relevo");
    const baselines: Partial<Record<Baseline, StormRun>> = {};
    for (const baseline of compares ? BASELINES : []) baselines[baseline] = await step(baseline);
    runs.push({ seed, relevo, baselines });
  }
  for (const run of runs) tellProblems(context, run);
  const [only] = runs;
  const document = isSingle && only ? singleDocument(only) : manyDocument(name, seeds, runs);
  context.out(renderDocument(document, options.output) ?? (isSingle && only ? singleTable(name, only) : manyTable(name, runs)));
  const isWhole = runs.length === seeds.to - seeds.from + 1;
  return isWhole && runs.every(({ relevo }) => relevo.violations.length === 0) ? EXIT.done : EXIT.failed;
}

function tellProblems({ err }: CliContext, { seed, relevo, baselines }: SeedRun): void {
  for (const { id, atMs, sentence } of relevo.violations)
    err(`relevo: seed ${seed}: ${id} at ${(atMs / 1_000).toFixed(1)} s: ${sentence}\n`);
  const equals = notBeaten(relevo.figures, figuresOfAll(baselines));
  if (equals.length > 0) err(`relevo: seed ${seed} shows nothing against ${equals.join(", ")}: as many within 90 s and no more lost\n`);
}

function figuresOfAll(runs: SeedRun["baselines"]): Readonly<Partial<Record<Baseline, StormFigures>>> {
  return Object.fromEntries(Object.entries(runs).map(([name, { figures }]) => [name, figures]));
}

function singleDocument({ relevo, baselines }: SeedRun): StormDocument | StormFigures {
  if (Object.keys(baselines).length === 0) return relevo.figures;
  return { ...relevo.figures, baselines: figuresOfAll(baselines) } as StormDocument;
}

function manyDocument(scenario: string, { from, to }: Seeds, runs: readonly SeedRun[]): object {
  return {
    scenario,
    level: "simulated",
    seeds: `${from}..${to}`,
    violations: runs.flatMap(({ seed, relevo }) => relevo.violations.map((violation) => ({ seed, ...violation }))),
    runs: runs.map((run) => ({ seed: run.seed, ...singleDocument(run) })),
  };
}

interface Row {
  readonly name: string;
  readonly figures: StormFigures;
}

const COLUMNS = (head: string): readonly Column<Row>[] => [
  { head, cell: ({ name }) => name },
  { head: "INSTANCES", cell: ({ figures }) => String(figures.instances) },
  { head: "EVACUATED", cell: ({ figures }) => String(figures.evacuated) },
  { head: "WITHIN 90 S", cell: ({ figures }) => String(figures.within90s) },
  { head: "UNSAVABLE", cell: ({ figures }) => String(figures.unsavable) },
  { head: "OF BOUND", cell: ({ figures }) => figures.ratioToBound.toFixed(3) },
  { head: "AVAILABILITY", cell: ({ figures }) => `${(figures.availability * 100).toFixed(4)} %` },
  { head: "ADDED MEAN", cell: ({ figures }) => `${figures.addedMs.mean.toFixed(1)} ms` },
  { head: "P99", cell: ({ figures }) => `${figures.addedMs.p99.toFixed(1)} ms` },
  { head: "OVER 50 MS", cell: ({ figures }) => String(figures.over50Ms) },
  { head: "LOST", cell: ({ figures }) => String(figures.lost) },
];

function singleTable(name: string, { seed, relevo, baselines }: SeedRun): string {
  const rows: Row[] = [
    { name: "relevo", figures: relevo.figures },
    ...Object.entries(baselines).map(([baseline, { figures }]) => ({ name: baseline, figures })),
  ];
  const classes = Object.entries(relevo.figures.byClass).map(([priority, figures]) => ({ priority, figures }));
  return [
    `${name}, seed ${seed}, simulated\n\n`,
    renderTable(rows, COLUMNS("APPROACH"), { now: 0 }),
    "\n",
    renderTable(
      classes,
      [
        { head: "CLASS", cell: ({ priority }) => priority },
        { head: "INSTANCES", cell: ({ figures }) => String(figures.instances) },
        { head: "EVACUATED", cell: ({ figures }) => String(figures.evacuated) },
        { head: "WITHIN 90 S", cell: ({ figures }) => String(figures.within90s) },
        { head: "UNSAVABLE", cell: ({ figures }) => String(figures.unsavable) },
        { head: "LOST", cell: ({ figures }) => String(figures.lost) },
      ],
      { now: 0 },
    ),
    "\n",
    renderTable(
      relevo.timeline,
      [
        { head: "AT", cell: ({ atMs }) => `${atMs / 1_000} s` },
        { head: "NOTICED", cell: ({ noticed }) => String(noticed) },
        { head: "SERVING", cell: ({ serving }) => String(serving) },
        { head: "AWAY", cell: ({ away }) => String(away) },
      ],
      { now: 0 },
    ),
    "\nof bound: evacuated, as a share of what any schedule could have; added: what a request took longer than without the storm\n",
    "noticed, serving, away: announced so far; serving at their new places; gone and serving nowhere\n",
    `\n${relevo.breaches} served beyond their latency limit; ${relevo.staleResults} results of machines that were given up were rejected as stale\n`,
  ].join("");
}

function manyTable(name: string, runs: readonly SeedRun[]): string {
  const rows = runs.flatMap(({ seed, relevo, baselines }) => [
    { name: `${seed} relevo`, figures: relevo.figures },
    ...Object.entries(baselines).map(([baseline, { figures }]) => ({ name: `${seed} ${baseline}`, figures })),
  ]);
  return `${name}, simulated\n\n${renderTable(rows, COLUMNS("SEED"), { now: 0 })}`;
}
