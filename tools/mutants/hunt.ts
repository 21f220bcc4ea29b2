/** Runs mutants in processes of their own, and the same seeds without the fault. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describeError, RelevoError } from "../../src/kernel/errors.ts";
import type { Schedule } from "../../src/sim/shrink.ts";
import type { SeedLine } from "./child.ts";
import { type Mutant, mutated } from "./mutant.ts";

export interface Hunt {
  readonly mutant: string;
  readonly rule: string;
  /** The seed that caught it; null: it survived. */
  readonly seed: number | null;
  /** The invariant, or what failed. */
  readonly caughtBy: string | null;
  readonly sentence: string;
  readonly seconds: number;
  /** The same seed without the fault violates nothing: else the seed proves nothing. */
  readonly control: "clean" | "violated" | "not run";
}

const CHILD = join(import.meta.dirname, "child.ts");
/** One seed takes seconds at most: a program that stands still for so long says nothing by itself. */
const STUCK_AFTER_MS = 180_000;

/** Throws `mutant_does_not_apply`. */
export async function hunt(mutant: Mutant, seeds: number): Promise<Hunt> {
  mutated(mutant);
  const startedAt = performance.now();
  // A run that ends without a word shows nothing.
  const lines = await runChild(mutant, 1, seeds, []).catch((error: unknown) => {
    if (error instanceof RelevoError && error.code === "mutant_run_failed") return describeError(error);
    throw error;
  });
  const caught = typeof lines === "string" ? undefined : lines.find(({ id }) => id !== null);
  const base = { mutant: mutant.name, rule: mutant.rule, seconds: Number(((performance.now() - startedAt) / 1000).toFixed(1)) };
  if (caught === undefined)
    return { ...base, seed: null, caughtBy: null, sentence: typeof lines === "string" ? lines : "", control: "not run" };
  const control = await runChild(mutant, caught.seed, caught.seed, ["--control"]);
  return {
    ...base,
    seed: caught.seed,
    caughtBy: caught.id,
    sentence: caught.sentence,
    control: control.length === 1 && control.every(({ id }) => id === null) ? "clean" : "violated",
  };
}

/** The smallest schedule of faults that shows the mutant, and by which rule. */
export async function shrinkMutant(
  mutant: Mutant,
  seeds: number,
): Promise<{ readonly id: string; readonly schedule: Schedule } | undefined> {
  const caught = (await runChild(mutant, 1, seeds, ["--shrink"])).at(-1);
  return caught?.id && caught.schedule ? { id: caught.id, schedule: caught.schedule } : undefined;
}

/** All mutants, `workers` at a time, in their order. */
export async function huntAll(
  mutants: readonly Mutant[],
  { seeds, workers, onResult }: { readonly seeds: number; readonly workers: number; readonly onResult: (hunt: Hunt) => void },
): Promise<readonly Hunt[]> {
  const results = new Map<string, Hunt>();
  const waiting = [...mutants];
  const work = async (): Promise<void> => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const result = await hunt(mutant, seeds);
      results.set(mutant.name, result);
      onResult(result);
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
  return mutants.flatMap(({ name }) => results.get(name) ?? []);
}

/** What all of them came to; nothing may have survived, and nothing may be unproven. */
export function summaryOf(hunts: readonly Hunt[], seeds: number) {
  const survived = hunts.filter(({ seed }) => seed === null).map(({ mutant }) => mutant);
  const unproven = hunts.filter(({ control }) => control === "violated").map(({ mutant }) => mutant);
  return { seeds, caught: hunts.length - survived.length, survived, unproven, mutants: hunts };
}

async function runChild(mutant: Mutant, from: number, to: number, flags: readonly string[]): Promise<readonly SeedLine[]> {
  const child = spawn(process.execPath, ["--no-warnings", CHILD, mutant.name, String(from), String(to), ...flags], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines: SeedLine[] = [];
  let errors = "";
  let isStuck = false;
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors = `${errors}${text}`.slice(-4_000)));
  const stuck = setTimeout(() => {
    isStuck = true;
    child.kill("SIGKILL");
  }, STUCK_AFTER_MS);
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(JSON.parse(line) as SeedLine);
    stuck.refresh();
  }
  const code = await ended;
  clearTimeout(stuck);
  if (isStuck) throw failed(mutant, `seed ${from + lines.length} did not end within ${STUCK_AFTER_MS / 1000} s`);
  if (code !== 0 && lines.every(({ id }) => id === null)) throw failed(mutant, errors);
  return lines;
}

function failed({ name }: Mutant, why: string): RelevoError {
  return new RelevoError("mutant_run_failed", `The run of mutant ${name} failed without saying what it is.`, { found: why });
}
