/**
 * `npm run mutants [-- --only NAME] [--seeds 2000] [--workers N] [--evidence] [-o json]`: small faults in the program, each of which the simulator must catch. Exits
 * 1 when one survives, does not apply, or is caught by a seed that fails without it too.
 */
import { describeError } from "../../src/kernel/errors.ts";
import { circumstances, keepEvidence } from "../evidence/keep.ts";
import { readOptions } from "../options.ts";
import { type Hunt, huntAll, summaryOf } from "./hunt.ts";
import { MUTANTS } from "./mutants.ts";

const USAGE = `npm run mutants -- [options]: small faults in the program, each of which the simulator must catch

  --only NAME     those whose name contains it; may be repeated
  --list          names them and runs none
  --seeds N       how many seeds to try for each (default: 2000)
  --workers N     how many at once (default: 1)
  --evidence      keep the result, with the commit, in docs/evidence/mutants.json; not with --only
  -o json         one JSON document instead of a table`;

const values = readOptions(USAGE, {
  only: { type: "string", multiple: true },
  list: { type: "boolean", default: false },
  seeds: { type: "string", default: "2000" },
  workers: { type: "string", default: "1" },
  evidence: { type: "boolean", default: false },
  output: { type: "string", short: "o", default: "table" },
});
const { only } = values;
const chosen = only === undefined ? MUTANTS : MUTANTS.filter(({ name }) => only.some((part) => name.includes(part)));
const [seeds, workers] = [Number(values.seeds), Number(values.workers)];
if (chosen.length === 0) stop(`--only: found ${only?.join(", ")}; see --list for what there is`);
if (values.list) {
  console.log(chosen.map(({ name, rule }) => `${name.padEnd(34)} ${rule}`).join("\n"));
  process.exit(0);
}
if (!(Number.isInteger(seeds) && seeds > 0)) stop(`--seeds: found ${values.seeds}; allowed: a whole number from 1`);
if (!(Number.isInteger(workers) && workers > 0)) stop(`--workers: found ${values.workers}; allowed: a whole number from 1`);

if (values.evidence && only !== undefined) stop("--evidence: with --only it is not the whole");

const isTable = values.output !== "json";
const say = (text: string): void => void (isTable && console.log(text));
say(row(["mutant", "seed", "caught by", "seconds", "rule"]));
try {
  const startedAt = performance.now();
  const under = values.evidence ? circumstances(new Date()) : undefined;
  const hunts = await huntAll(chosen, { seeds, workers, onResult: (hunt) => say(row(cellsOf(hunt))) });
  const result = summaryOf(hunts, seeds);
  const { survived, unproven } = result;
  if (isTable) console.log(`${result.caught} of ${hunts.length} caught within ${seeds} seeds`);
  if (!isTable) console.log(JSON.stringify(result));
  if (under !== undefined) {
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    console.error(`kept in ${keepEvidence("mutants", under, { seconds, ...result })}`);
  }
  if (survived.length > 0) console.error(`survived: ${survived.join(", ")}`);
  if (unproven.length > 0) console.error(`caught by a seed that fails without the fault too: ${unproven.join(", ")}`);
  if (survived.length + unproven.length > 0) process.exitCode = 1;
} catch (error) {
  console.error(describeError(error));
  process.exitCode = 1;
}

function cellsOf({ mutant, seed, caughtBy, seconds, rule, control }: Hunt): readonly string[] {
  return [
    mutant,
    seed === null ? "-" : String(seed),
    control === "violated" ? `${caughtBy} (also without)` : (caughtBy ?? "SURVIVED"),
    seconds.toFixed(1),
    rule,
  ];
}

function row([mutant = "", seed = "", caughtBy = "", seconds = "", rule = ""]: readonly string[]): string {
  return `${mutant.padEnd(34)} ${seed.padStart(5)}  ${caughtBy.padEnd(22)} ${seconds.padStart(7)}  ${rule}`;
}

function stop(problem: string): never {
  console.error(problem);
  process.exit(2);
}
