/** Reads a Gate; every mistake with its line. */
import { LineCounter, parseDocument } from "yaml";
import { type GateDocument, gateSchema } from "../../model/gate.ts";
import { problemsOf } from "../../model/problems.ts";
import { placeOf, yamlProblems } from "../documents.ts";
import { FilesError } from "../exit.ts";

const MAX_FILE_BYTES = 4 * 1024 * 1024;
const UNUSED = "nothing was run";

/** Throws `FilesError`. */
export function readGate(file: string, text: string): GateDocument {
  const whole = (sentence: string, found: unknown, allowed: string): FilesError =>
    new FilesError([{ file, line: 1, column: 1, field: "", sentence, found, allowed }], UNUSED);
  const size = Buffer.byteLength(text);
  if (size > MAX_FILE_BYTES) throw whole("the file is too large", size, `${MAX_FILE_BYTES} bytes`);
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, logLevel: "error" });
  if (document.errors.length > 0) throw new FilesError(yamlProblems(file, document), UNUSED);
  let raw: unknown;
  try {
    raw = document.toJS();
  } catch (error) {
    // Aliases that name nothing, or that would unfold without end, show only here.
    throw whole("this is not YAML", error instanceof Error ? error.message : String(error), "one document");
  }
  if (typeof raw !== "object" || raw === null) throw whole("the file holds no Gate", raw === null ? "nothing" : typeof raw, "one Gate");
  const { kind } = raw as { readonly kind?: unknown };
  if (kind !== undefined && kind !== "Gate") throw whole("this is no Gate", kind, "kind: Gate");
  const parsed = gateSchema.safeParse(raw);
  if (parsed.success) return parsed.data;
  throw new FilesError(
    problemsOf(gateSchema, parsed.error, raw).map((problem) => {
      const { field, sentence, found, allowed, todo } = problem;
      return { file, ...placeOf(document, problem, lines), field, sentence, ...(found === undefined ? {} : { found }), allowed, todo };
    }),
    UNUSED,
  );
}
