/** A small fault, as data, and how it gets into the program: between the file and the loader, so that the tree itself is never touched. */
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { RelevoError } from "../../src/kernel/errors.ts";
import type { FaultKind, PlannedFault } from "../../src/sim/faults.ts";
import type { FleetName } from "./fleets.ts";
import type { ScenarioName } from "./scenarios.ts";

export interface Mutant extends Edit {
  readonly name: string;
  /** The rule that it breaks: an invariant (`I5`) or a requirement (`D5`), and what it says. */
  readonly rule: string;
  /** Further lines of defence of the same rule, which fall with it: one of them alone would keep it. */
  readonly also?: readonly Edit[];
  /** What shows it. */
  readonly shownBy: Stage;
}

export interface Edit {
  /** Under the repository's root. */
  readonly file: string;
  /** Exact text, which the file must hold once. */
  readonly find: string;
  readonly replace: string;
}

/**
 * `seeds`: seeds of the standard mix with these kinds of faults, all when absent; or with exactly the `planned` ones. `crash_points`: a crash at each call of
 * the controller in one of the crash cases.
 */
export type Stage =
  | {
      readonly kind: "seeds";
      readonly faults?: readonly FaultKind[];
      readonly planned?: readonly PlannedFault[];
      readonly faultsForMs?: number;
      /** In this world instead of the one that the seed draws. */
      readonly scenario?: ScenarioName;
    }
  | { readonly kind: "crash_points"; readonly crashCase: string }
  /** Storms of this fleet. */
  | { readonly kind: "storm"; readonly fleet: FleetName }
  /** What notices lead to, by a model of its own (`notices.ts`). */
  | { readonly kind: "notices" }
  /** Seeds of the standard mix in a world with a pool whose size follows its demand, and with the faults of such a pool. */
  | { readonly kind: "workers" };

/** Seeds with these kinds of faults; all kinds when none is named. */
export function seeds(...faults: FaultKind[]): Stage {
  return faults.length === 0 ? { kind: "seeds" } : { kind: "seeds", faults };
}

/** A crash at the calls of this case. */
export function crashes(crashCase: string): Stage {
  return { kind: "crash_points", crashCase };
}

export const notices: Stage = { kind: "notices" };
export const workers: Stage = { kind: "workers" };

export function storm(fleet: FleetName): Stage {
  return { kind: "storm", fleet };
}

/** Exactly these faults, in worlds of different seeds. */
export function planned(...faults: PlannedFault[]): Stage {
  return { kind: "seeds", planned: faults };
}

/** The same in a world of this kind. */
export function plannedIn(scenario: ScenarioName, faultsForMs: number, ...faults: PlannedFault[]): Stage {
  return { kind: "seeds", planned: faults, faultsForMs, scenario };
}

const ROOT = join(import.meta.dirname, "..", "..");

/** The file's text with the fault. Throws `mutant_does_not_apply`: a mutant that changes nothing would pass as one that nobody notices. */
export function mutate({ name, file, find, replace }: Edit & Pick<Mutant, "name">, source: string): string {
  const found = source.split(find).length - 1;
  if (found !== 1 || find === replace)
    throw new RelevoError("mutant_does_not_apply", `The mutant does not apply: ${name} must find its text once in ${file}.`, {
      found: String(found),
      allowed: "1",
      todo: "bring its text in line with the file",
    });
  return source.replace(find, () => replace);
}

/** By file, under the repository's root: its text with the fault. Throws `mutant_does_not_apply`. */
export function mutated(mutant: Mutant): ReadonlyMap<string, string> {
  const { name, also = [] } = mutant;
  const sources = new Map<string, string>();
  for (const edit of [mutant, ...also]) sources.set(edit.file, mutate({ ...edit, name }, sources.get(edit.file) ?? sourceOf(edit)));
  return sources;
}

export function sourceOf({ file }: Pick<Edit, "file">): string {
  return readFileSync(join(ROOT, file), "utf8");
}

/** From now on the program that is loaded has the fault. Answers which of its files were not loaded since. */
export function load(mutant: Mutant): () => readonly string[] {
  const sources = new Map([...mutated(mutant)].map(([file, source]) => [pathToFileURL(join(ROOT, file)).href, { file, source }]));
  const missing = new Set(mutated(mutant).keys());
  registerHooks({
    load(asked, context, next) {
      const known = sources.get(asked);
      if (known === undefined) return next(asked, context);
      missing.delete(known.file);
      return { format: "module-typescript", source: known.source, shortCircuit: true };
    },
  });
  return () => [...missing];
}
