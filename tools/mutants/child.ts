/**
 * One process, one mutant: `child.ts NAME FROM TO [--control | --shrink]` runs seeds until one shows the fault, and says one line of JSON for each. `--control`
 * runs the same seeds without the fault; `--shrink` says the smallest schedule that shows it.
 */
import { AssertionFailure } from "../../src/kernel/assert.ts";
import { RelevoError } from "../../src/kernel/errors.ts";
import type { Schedule } from "../../src/sim/shrink.ts";
import { load, type Mutant } from "./mutant.ts";
import { MUTANTS } from "./mutants.ts";

/** What the child says of a seed; `id` is null when nothing was violated. */
export interface SeedLine {
  readonly seed: number;
  readonly id: string | null;
  readonly sentence: string;
  readonly schedule?: Schedule;
}

const [name, from, to, flag] = process.argv.slice(2);
const mutant = MUTANTS.find((each) => each.name === name);
if (mutant === undefined) throw new RelevoError("mutant_unknown", "There is no mutant of this name.", { found: name });

const say = (line: SeedLine): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const isControl = flag === "--control";
const notLoaded = isControl ? () => [] : load(mutant);
let seed = Number(from);

// A crash of the program is a finding when it says what it is.
const crashed = (error: unknown): never => {
  if (!(error instanceof RelevoError || error instanceof AssertionFailure)) throw error;
  say({ seed, id: `crash/${error instanceof RelevoError ? error.code : "assertion"}`, sentence: error.message });
  process.exit(0);
};
process.on("unhandledRejection", crashed);
process.on("uncaughtException", (error) => {
  process.exitCode = 1;
  crashed(error);
});

// Only now: what is loaded from here on has the fault.
const { runStage, shrinkStage } = await import("./stages.ts");
for (; seed <= Number(to); seed++) {
  const violation = await runStage((mutant as Mutant).shownBy, seed).catch(crashed);
  const [unused] = notLoaded();
  if (unused !== undefined)
    throw new RelevoError("mutant_does_not_apply", `The mutant does not apply: the simulation never loads ${unused}.`);
  const schedule = violation !== undefined && flag === "--shrink" ? await shrinkStage((mutant as Mutant).shownBy, seed) : undefined;
  say({ seed, id: violation?.id ?? null, sentence: violation?.sentence ?? "", ...(schedule === undefined ? {} : { schedule }) });
  if (violation !== undefined) break;
}
