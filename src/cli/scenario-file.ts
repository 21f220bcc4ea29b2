/** Reads a scenario; every mistake with its line. */
import { parseScenario, type ScenarioFile } from "../sim/scenario-file.ts";
import { type DocumentReader, readOneDocument } from "./one-document.ts";

const SCENARIO: DocumentReader<ScenarioFile> = {
  unused: "nothing was simulated",
  parse(raw, whole) {
    if (raw === null || raw === undefined) throw whole("the file holds no scenario", "nothing", "name, and pools or fleet");
    if (typeof raw === "object" && "kind" in raw && raw.kind === "Pool")
      throw whole("this is a Pool, not a scenario", "kind: Pool", "name, and pools with it as an entry, or fleet");
    const parsed = parseScenario(raw);
    return "scenario" in parsed ? { value: parsed.scenario } : parsed;
  },
};

/** Throws `FilesError`. */
export function readScenario(file: string, text: string): ScenarioFile {
  return readOneDocument(file, text, SCENARIO);
}
