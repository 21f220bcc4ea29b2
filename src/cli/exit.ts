/** How a command ends: its exit code, and the one sentence when it is an error. */
import { CommanderError } from "commander";
import { describeError, RelevoError, withoutControls } from "../kernel/errors.ts";
import type { CliContext, GlobalOptions } from "./context.ts";

export const EXIT = { done: 0, failed: 1, usage: 2, refused: 3, held: 4 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Accepted, but it will not happen until somebody does something. */
export class HeldError extends RelevoError {
  override readonly name = "HeldError";
}

/** The command line or a file is wrong: nothing was asked of anybody. */
export class UsageError extends RelevoError {
  override readonly name = "UsageError";
}

/** One thing that is wrong in a file, with its place. */
export interface FileProblem {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  readonly field: string;
  readonly sentence: string;
  readonly found?: unknown;
  readonly allowed?: string | undefined;
  readonly todo?: string | undefined;
}

/** What is wrong in files; nothing of them was used. */
export class FilesError extends UsageError {
  readonly problems: readonly FileProblem[];

  constructor(problems: readonly FileProblem[], unused = "nothing was applied") {
    super("document_invalid", `${problems.length === 1 ? "One mistake" : `${problems.length} mistakes`}: ${unused}.`);
    this.problems = problems;
  }
}

/** The controller answered, and the answer is an error. */
export class ControllerRefusal extends RelevoError {
  readonly httpStatus: number;

  constructor(httpStatus: number, code: string, sentence: string, details: ConstructorParameters<typeof RelevoError>[2]) {
    super(code, sentence, details);
    this.name = "ControllerRefusal";
    this.httpStatus = httpStatus;
  }
}

export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  if (error instanceof HeldError) return EXIT.held;
  // By its name: its class brings the schema library, which not every command is large enough for.
  if (error instanceof UsageError || (error instanceof RelevoError && error.name === "DocumentError")) return EXIT.usage;
  if (error instanceof RelevoError && WRONG_FILES.has(error.code)) return EXIT.usage;
  if (error instanceof ControllerRefusal) return exitCodeOfStatus(error.httpStatus);
  return error instanceof RelevoError && REFUSALS.has(error.code) ? EXIT.refused : EXIT.failed;
}

/** Of modules that do not know of commands. */
const WRONG_FILES = new Set(["connections_invalid", "connection_missing", "import_invalid", "import_missing", "import_unreadable"]);
const REFUSALS = new Set(["bind_needs_token", "preflight_refused", "already_running", "verify_refused", "signal_cannot_be_fed"]);

/** 404 and 5xx are failures; what the controller understood and will not do is a refusal; what is malformed is usage. */
function exitCodeOfStatus(status: number): ExitCode {
  if (status === 400 || status === 422) return EXIT.usage;
  return status === 401 || status === 403 || status === 409 ? EXIT.refused : EXIT.failed;
}

/** Tells the error on stderr: as one line, or as JSON where the output is JSON; the stack only with `--debug`. */
export function tellError(
  error: unknown,
  { err: print }: Pick<CliContext, "err">,
  options: Partial<Pick<GlobalOptions, "output" | "debug">>,
): ExitCode {
  const code = exitCodeOf(error);
  // Of a sentence too it is not known whose words it holds: a server's, a file's.
  const err = (text: string): void => print(withoutControls(text));
  if (error instanceof CommanderError) {
    // Commander has told its own already, but where programs read.
    if (options.output === "json" && code !== EXIT.done)
      err(`${JSON.stringify({ error: { code: error.code.replaceAll(/[.-]|(?=[A-Z])/g, "_").toLowerCase(), message: error.message } })}\n`);
    return code;
  }
  if (options.output === "json") err(`${JSON.stringify({ error: errorObject(error) })}\n`);
  else {
    for (const problem of error instanceof FilesError ? error.problems : []) err(`${describeProblem(problem)}\n`);
    err(`relevo: ${describeError(error)}\n`);
  }
  if (options.debug && error instanceof Error)
    err(`${error.stack ?? error.message}\n${error.cause instanceof Error ? `cause: ${error.cause.stack}\n` : ""}`);
  return code;
}

function describeProblem({ file, line, column, sentence, found, allowed, todo }: FileProblem): string {
  const parts = [`${file}:${line}:${column}: ${sentence}`];
  if (found !== undefined) parts.push(`found: ${excerpt(found)}`);
  if (allowed !== undefined) parts.push(`allowed: ${allowed}`);
  if (todo !== undefined) parts.push(todo);
  return parts.join("; ");
}

/** JSON, so that text and numbers can be told apart; cut where it is long. */
function excerpt(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= 80 ? text : `${text.slice(0, 79)}…`;
}

function errorObject(error: unknown): Readonly<Record<string, unknown>> {
  if (!(error instanceof RelevoError)) return { code: "internal", message: error instanceof Error ? error.message : String(error) };
  const { code, message, field, found, allowed, todo } = error;
  return { code, message, field, found, allowed, todo, ...(error instanceof FilesError ? { problems: error.problems } : {}) };
}
