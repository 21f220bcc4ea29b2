/** A small fault, as data, and how it gets into the program: between the file and the loader, so that the tree itself is never touched. */
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { RelevoError } from "../../src/kernel/errors.ts";
import type { FaultKind, PlannedFault } from "../../src/sim/faults.ts";
import type { FleetName } from "./fleets.ts";

export interface Mutant {
  readonly name: string;
  /** The rule that it breaks: an invariant (`I5`) or a requirement (`D5`), and what it says. */
  readonly rule: string;
  /** Under the repository's root. */
  readonly file: string;
  /** Exact text, which the file must hold once. */
  readonly find: string;
  readonly replace: string;
  /** What shows it. */
  readonly shownBy: Stage;
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
    }
  | { readonly kind: "crash_points"; readonly crashCase: string }
  /** Storms of this fleet. */
  | { readonly kind: "storm"; readonly fleet: FleetName };

/** Seeds with these kinds of faults; all kinds when none is named. */
export function seeds(...faults: FaultKind[]): Stage {
  return faults.length === 0 ? { kind: "seeds" } : { kind: "seeds", faults };
}

/** A crash at the calls of this case. */
export function crashes(crashCase: string): Stage {
  return { kind: "crash_points", crashCase };
}

export function storm(fleet: FleetName): Stage {
  return { kind: "storm", fleet };
}

/** Exactly these faults, in worlds of different seeds. */
export function planned(...faults: PlannedFault[]): Stage {
  return { kind: "seeds", planned: faults };
}

const ROOT = join(import.meta.dirname, "..", "..");

/** The file's text with the fault. Throws `mutant_does_not_apply`: a mutant that changes nothing would pass as one that nobody notices. */
export function mutate(mutant: Mutant, source: string): string {
  const found = source.split(mutant.find).length - 1;
  if (found !== 1 || mutant.find === mutant.replace)
    throw new RelevoError("mutant_does_not_apply", `The mutant does not apply: ${mutant.name} must find its text once in ${mutant.file}.`, {
      found: String(found),
      allowed: "1",
      todo: "bring its text in line with the file",
    });
  return source.replace(mutant.find, () => mutant.replace);
}

export function sourceOf({ file }: Mutant): string {
  return readFileSync(join(ROOT, file), "utf8");
}

/** From now on the program that is loaded has the fault. Answers whether its file was loaded since. */
export function load(mutant: Mutant): () => boolean {
  const url = pathToFileURL(join(ROOT, mutant.file)).href;
  const source = mutate(mutant, sourceOf(mutant));
  let isLoaded = false;
  registerHooks({
    load(asked, context, next) {
      if (asked !== url) return next(asked, context);
      isLoaded = true;
      return { format: "module-typescript", source, shortCircuit: true };
    },
  });
  return () => isLoaded;
}
