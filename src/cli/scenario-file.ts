/** Reads a scenario; every mistake with its line. */
import { LineCounter, parseDocument } from "yaml";
import { parseScenario, type ScenarioFile } from "../sim/scenario-file.ts";
import { placeOf, yamlProblems } from "./documents.ts";
import { FilesError } from "./exit.ts";

const MAX_FILE_BYTES = 4 * 1024 * 1024;
const UNUSED = "nothing was simulated";

/** Throws `FilesError`. */
export function readScenario(file: string, text: string): ScenarioFile {
  const whole = (sentence: string, found: unknown, allowed: string): FilesError =>
    new FilesError([{ file, line: 1, column: 1, field: "", sentence, found, allowed }], UNUSED);
  const size = Buffer.byteLength(text);
  if (size > MAX_FILE_BYTES) throw whole("the file is too large", size, `${MAX_FILE_BYTES} bytes`);
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, logLevel: "error" });
  if (document.errors.length > 0) throw new FilesError(yamlProblems(file, document), UNUSED);
  const raw = rawOf(document, whole);
  if (raw === null || raw === undefined) throw whole("the file holds no scenario", "nothing", "name, and pools or fleet");
  if (typeof raw === "object" && "kind" in raw && raw.kind === "Pool")
    throw whole("this is a Pool, not a scenario", "kind: Pool", "name, and pools with it as an entry, or fleet");
  const parsed = parseScenario(raw);
  if ("scenario" in parsed) return parsed.scenario;
  throw new FilesError(
    parsed.problems.map((problem) => {
      const { field, sentence, found, allowed, todo } = problem;
      return { file, ...placeOf(document, problem, lines), field, sentence, ...(found === undefined ? {} : { found }), allowed, todo };
    }),
    UNUSED,
  );
}

/** Aliases that name nothing, or that would unfold without end, show only here. */
function rawOf(
  document: ReturnType<typeof parseDocument>,
  whole: (sentence: string, found: unknown, allowed: string) => FilesError,
): unknown {
  try {
    return document.toJS();
  } catch (error) {
    throw whole("this is not YAML", error instanceof Error ? error.message : String(error), "one document");
  }
}
