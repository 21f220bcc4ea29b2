/**
 * Errors that people and programs can act upon: a code from one registry per module, one sentence, and, where it helps, what was found, what is
 * allowed and what to do.
 */

/** What a caller may do about an error: nothing, try again, read again and decide anew, or nothing because it was asked to stop. */
export type ErrorClass = "terminal" | "retryable" | "conflict" | "cancelled";

export interface ErrorDetails {
  readonly class?: ErrorClass;
  /** The path of the field that is wrong, where the input has fields: `spec.size.desired`. */
  readonly field?: string | undefined;
  readonly found?: unknown;
  readonly allowed?: string;
  readonly todo?: string;
  readonly cause?: unknown;
}

export class RelevoError extends Error {
  /** snake_case, stable: programs match on it. */
  readonly code: string;
  readonly class: ErrorClass;
  readonly field: string | undefined;
  readonly found: unknown;
  readonly allowed: string | undefined;
  readonly todo: string | undefined;

  constructor(code: string, sentence: string, details: ErrorDetails = {}) {
    super(sentence, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "RelevoError";
    this.code = code;
    this.class = details.class ?? "terminal";
    this.field = details.field;
    this.found = showable(details.found);
    this.allowed = details.allowed;
    this.todo = details.todo;
  }
}

const MAX_SHOWN = 1_000;
/** All but tab and line feed: a terminal obeys them, and whose words they are is not known. */
const CONTROLS = /(?![\t\n])\p{Cc}/gu;

/** As it may be shown on a terminal. */
export function withoutControls(text: string): string {
  return text.replaceAll(CONTROLS, "�");
}

/** What was found, small enough to be shown, logged and sent: an input may be of any size and depth, its error may not. */
export function showable(found: unknown): unknown {
  if (typeof found === "string") {
    const shown = withoutControls(found.slice(0, MAX_SHOWN));
    return found.length <= MAX_SHOWN ? shown : `${shown}… (${found.length} characters)`;
  }
  if (typeof found !== "object" || found === null) return found;
  try {
    if ((JSON.stringify(found) ?? "").length <= MAX_SHOWN) return found;
  } catch {
    // Too deep, or a ring: its words stand for it.
  }
  return Array.isArray(found) ? `a list of ${found.length} entries` : `a mapping with ${Object.keys(found).length} fields`;
}

/** True when the same call may succeed later without anybody changing anything. */
export function isRetryable(error: unknown): boolean {
  return error instanceof RelevoError && error.class === "retryable";
}

/** One line for logs and terminals: sentence, code, what was found, what is allowed, what to do. */
export function describeError(error: unknown): string {
  if (!(error instanceof RelevoError)) return error instanceof Error ? error.message : String(error);
  const parts = [`${error.message.replace(/\.$/, "")} (${error.code})`];
  if (error.found !== undefined) parts.push(`found: ${typeof error.found === "string" ? error.found : JSON.stringify(error.found)}`);
  if (error.allowed !== undefined) parts.push(`allowed: ${error.allowed}`);
  if (error.todo !== undefined) parts.push(error.todo);
  return parts.join("; ");
}
