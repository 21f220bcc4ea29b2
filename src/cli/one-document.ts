/** Reads a file that holds one YAML document; every mistake with its line. */
import { LineCounter, parseDocument } from "yaml";
import type { Problem } from "../model/problems.ts";
import { placeOf, yamlProblems } from "./documents.ts";
import { FilesError } from "./exit.ts";

const MAX_FILE_BYTES = 4 * 1024 * 1024;

/** Of the file as a whole: it is something else. */
export type WholeFile = (sentence: string, found: unknown, allowed: string) => FilesError;

export interface DocumentReader<T> {
  /** What did not happen, as the error ends: `nothing was simulated`. */
  readonly unused: string;
  /** Throws what `whole` makes where it is no document of the kind at all. */
  readonly parse: (raw: unknown, whole: WholeFile) => { readonly value: T } | { readonly problems: readonly Problem[] };
}

/** Throws `FilesError`. */
export function readOneDocument<T>(file: string, text: string, { unused, parse }: DocumentReader<T>): T {
  const whole: WholeFile = (sentence, found, allowed) =>
    new FilesError([{ file, line: 1, column: 1, field: "", sentence, found, allowed }], unused);
  const size = Buffer.byteLength(text);
  if (size > MAX_FILE_BYTES) throw whole("the file is too large", size, `${MAX_FILE_BYTES} bytes`);
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, logLevel: "error" });
  if (document.errors.length > 0) throw new FilesError(yamlProblems(file, document), unused);
  const parsed = parse(rawOf(document, whole), whole);
  if ("value" in parsed) return parsed.value;
  throw new FilesError(
    parsed.problems.map((problem) => {
      const { field, sentence, found, allowed, todo } = problem;
      return { file, ...placeOf(document, problem, lines), field, sentence, ...(found === undefined ? {} : { found }), allowed, todo };
    }),
    unused,
  );
}

/** Aliases that name nothing, or that would unfold without end, show only here. */
function rawOf(document: ReturnType<typeof parseDocument>, whole: WholeFile): unknown {
  try {
    return document.toJS();
  } catch (error) {
    throw whole("this is not YAML", error instanceof Error ? error.message : String(error), "one document");
  }
}
