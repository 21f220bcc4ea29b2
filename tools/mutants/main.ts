/**
 * `npm run mutants [-- --only NAME] [--unshown] [--seeds 2000] [--workers N] [-o json]`: small faults in the program, each of which the simulator must catch. Exits 1
 * when one survives, does not apply, or is caught by a seed that fails without it too.
 */
import { describeError } from "../../src/kernel/errors.ts";
import { readOptions } from "../options.ts";
import { type Hunt, huntAll } from "./hunt.ts";
import { MUTANTS, UNSHOWN } from "./mutants.ts";

const USAGE = `npm run mutants -- [options]: small faults in the program, each of which the simulator must catch

  --only NAME     those whose name contains it; may be repeated
  --list          names them and runs none
  --unshown       those that no seed has caught yet, instead of the others
  --seeds N       how many seeds to try for each (default: 2000)
  --workers N     how many at once (default: 1)
  -o json         one JSON document instead of a table`;

const values = readOptions(USAGE, {
  only: { type: "string", multiple: true },
  list: { type: "boolean", default: false },
  unshown: { type: "boolean", default: false },
  seeds: { type: "string", default: "2000" },
  workers: { type: "string", default: "1" },
  output: { type: "string", short: "o", default: "table" },
});
const all = values.unshown ? UNSHOWN : MUTANTS;
const chosen = values.only === undefined ? all : all.filter(({ name }) => values.only?.some((only) => name.includes(only)));
const [seeds, workers] = [Number(values.seeds), Number(values.workers)];
if (chosen.length === 0) stop(`--only: found ${values.only?.join(", ")}; see --list for what there is`);
if (values.list) {
  console.log(chosen.map(({ name, rule }) => `${name.padEnd(34)} ${rule}`).join("\n"));
  process.exit(0);
}
if (!(Number.isInteger(seeds) && seeds > 0)) stop(`--seeds: found ${values.seeds}; allowed: a whole number from 1`);
if (!(Number.isInteger(workers) && workers > 0)) stop(`--workers: found ${values.workers}; allowed: a whole number from 1`);

const isTable = values.output !== "json";
const say = (text: string): void => void (isTable && console.log(text));
say(row(["mutant", "seed", "caught by", "seconds", "rule"]));
try {
  const hunts = await huntAll(chosen, { seeds, workers, onResult: (hunt) => say(row(cellsOf(hunt))) });
  const survived = hunts.filter(({ seed }) => seed === null).map(({ mutant }) => mutant);
  const unproven = hunts.filter(({ control }) => control === "violated").map(({ mutant }) => mutant);
  if (isTable) console.log(`${hunts.length - survived.length} of ${hunts.length} caught within ${seeds} seeds`);
  else console.log(JSON.stringify({ seeds, caught: hunts.length - survived.length, survived, unproven, mutants: hunts }));
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
