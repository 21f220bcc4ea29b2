/** Reads a Gate; every mistake with its line. */
import { type GateDocument, gateSchema } from "../../model/gate.ts";
import { problemsOf } from "../../model/problems.ts";
import { type DocumentReader, readOneDocument } from "../one-document.ts";

const GATE: DocumentReader<GateDocument> = {
  unused: "nothing was run",
  parse(raw, whole) {
    if (typeof raw !== "object" || raw === null) throw whole("the file holds no Gate", raw === null ? "nothing" : typeof raw, "one Gate");
    const { kind } = raw as { readonly kind?: unknown };
    if (kind !== undefined && kind !== "Gate") throw whole("this is no Gate", kind, "kind: Gate");
    const parsed = gateSchema.safeParse(raw);
    return parsed.success ? { value: parsed.data } : { problems: problemsOf(gateSchema, parsed.error, raw) };
  },
};

/** Throws `FilesError`. */
export function readGate(file: string, text: string): GateDocument {
  return readOneDocument(file, text, GATE);
}
