/** What an adapter throws: a trouble of `model/demand.ts` with its prefix, so that whoever judges knows it by its code. */
import { type ErrorDetails, RelevoError } from "../kernel/errors.ts";
import type { DemandTrouble } from "../model/demand.ts";

/** `demand_unreachable` is retryable, the others end with somebody's deed. */
export function demandError(trouble: DemandTrouble, sentence: string, details: ErrorDetails = {}): RelevoError {
  return new RelevoError(`demand_${trouble}`, sentence, trouble === "unreachable" ? { class: "retryable", ...details } : details);
}

/** Of a call that was given up or that broke; what is a trouble already stays as it is. */
export function unreachable(who: string, error: unknown, signal?: AbortSignal): RelevoError {
  if (error instanceof RelevoError && error.code.startsWith("demand_")) return error;
  if (signal?.aborted) return demandError("unreachable", `${who} did not answer in time`, { cause: error });
  return demandError("unreachable", `${who} cannot be reached`, { found: describeFault(error), cause: error });
}

/** The error's own words, and of an error about several the first one's. */
function describeFault(error: unknown): string {
  if (!(error instanceof Error)) return String(error).slice(0, 300);
  const inner = error instanceof AggregateError ? (error.errors as unknown[])[0] : undefined;
  return (error.message || (inner instanceof Error ? inner.message : error.name)).slice(0, 300);
}
