/** YAML files → Pool documents; a mistake keeps its place. */
import { type Document, isAlias, isMap, isNode, isPair, isScalar, isSeq, LineCounter, type Node, parseAllDocuments } from "yaml";
import { API_VERSION, type PoolDocument, poolSchema } from "../model/pool.ts";
import { nearest, type Problem, problemsOf } from "../model/problems.ts";
import type { FileProblem } from "./exit.ts";

export interface ParsedDocument {
  readonly file: string;
  /** As written. */
  readonly raw: Readonly<Record<string, unknown>>;
  readonly pool: PoolDocument;
}

export interface ParsedFile {
  readonly documents: readonly ParsedDocument[];
  readonly problems: readonly FileProblem[];
}

const KINDS = ["Pool"];
const MAX_FILE_BYTES = 4 * 1024 * 1024;
const MAX_DOCUMENTS = 500;

/** Several documents per file; empty ones are passed over. */
export function parsePoolFile(file: string, text: string): ParsedFile {
  const whole = (sentence: string, found?: unknown, allowed?: string): ParsedFile => ({
    documents: [],
    problems: [{ file, line: 1, column: 1, field: "", sentence, found, allowed }],
  });
  if (Buffer.byteLength(text) > MAX_FILE_BYTES) return whole("the file is too large", Buffer.byteLength(text), `${MAX_FILE_BYTES} bytes`);
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, { lineCounter: lines, logLevel: "error" });
  if (!Array.isArray(parsed)) return whole("the file holds no document", undefined, "at least one Pool");
  if (parsed.length > MAX_DOCUMENTS) return whole("the file holds too many documents", parsed.length, `${MAX_DOCUMENTS} documents`);
  const documents: ParsedDocument[] = [];
  const problems: FileProblem[] = [];
  for (const document of parsed) {
    const result = parseOne(file, document, lines);
    if ("problems" in result) problems.push(...result.problems);
    else if (result.document) documents.push(result.document);
  }
  if (documents.length === 0 && problems.length === 0) return whole("the file holds no document", undefined, "at least one Pool");
  return { documents, problems };
}

type One = { readonly document: ParsedDocument | undefined } | { readonly problems: readonly FileProblem[] };

function parseOne(file: string, document: Document.Parsed, lines: LineCounter): One {
  if (document.errors.length > 0) return { problems: yamlProblems(file, document) };
  let raw: unknown;
  try {
    raw = document.toJS();
  } catch (error) {
    // Aliases that name nothing, or that would unfold without end.
    return {
      problems: [
        { file, line: 1, column: 1, field: "", sentence: `this is not YAML: ${error instanceof Error ? error.message : String(error)}` },
      ],
    };
  }
  if (raw === null || raw === undefined) return { document: undefined };
  const located = (problem: Problem): FileProblem => {
    const { line, column } = placeOf(document, problem, lines);
    const { field, sentence, found, allowed, todo } = problem;
    return { file, line, column, field, sentence, ...(found === undefined ? {} : { found }), allowed, todo };
  };
  const wrongKind = kindProblem(raw);
  if (wrongKind) return { problems: [located(wrongKind)] };
  const pool = poolSchema.safeParse(raw);
  if (!pool.success) return { problems: problemsOf(poolSchema, pool.error, raw).map(located) };
  return { document: { file, raw: raw as Readonly<Record<string, unknown>>, pool: pool.data } };
}

export function yamlProblems(file: string, document: Document.Parsed): readonly FileProblem[] {
  return document.errors.map((error) => ({
    file,
    line: error.linePos?.[0].line ?? 1,
    column: error.linePos?.[0].col ?? 1,
    field: "",
    sentence: `this is not YAML: ${(error.message.split("\n")[0] ?? "").replace(/ at line \d+, column \d+:?$/, "")}`,
  }));
}

/** A document of another kind has other fields: that it is the wrong kind is all there is to say. */
function kindProblem(raw: unknown): Problem | undefined {
  const { kind, apiVersion } = (typeof raw === "object" ? raw : {}) as { readonly kind?: unknown; readonly apiVersion?: unknown };
  const wrong = (name: "kind" | "apiVersion", found: unknown, allowed: string, todo: string | undefined): Problem => ({
    path: found === undefined ? [] : [name],
    field: name,
    sentence: found === undefined ? `${name} is missing` : `${name} is not one that Relevo knows`,
    found,
    allowed,
    todo,
    atKey: false,
  });
  if (typeof kind !== "string" || !KINDS.includes(kind)) {
    const near = typeof kind === "string" ? nearest(kind, KINDS) : undefined;
    return wrong(
      "kind",
      kind,
      KINDS.join(", "),
      near ? `did you mean ${near}?` : kind === undefined ? "add kind" : "apply other objects with kubectl",
    );
  }
  return apiVersion === API_VERSION ? undefined : wrong("apiVersion", apiVersion, API_VERSION, undefined);
}

/** Of the value, or of its key where the name itself is wrong; of the nearest thing above where the field is missing. */
export function placeOf(
  document: Document.Parsed,
  { path, atKey }: Problem,
  lines: LineCounter,
): { readonly line: number; readonly column: number } {
  let at: unknown = document.contents;
  let place: Node | undefined = isNode(at) ? at : undefined;
  for (const [index, part] of path.entries()) {
    const container: unknown = isAlias(at) ? at.resolve(document) : at;
    let key: unknown;
    if (isMap(container)) {
      const pair = container.items.find((item) => isPair(item) && isScalar(item.key) && String(item.key.value) === String(part));
      key = pair?.key;
      at = pair?.value;
    } else at = isSeq(container) && typeof part === "number" ? container.items[part] : undefined;
    const isLast = index === path.length - 1;
    const next = (isLast && atKey) || !isNode(at) ? key : isLast || !isNode(key) ? at : key;
    if (!isNode(next)) break;
    place = next;
  }
  const { line, col } = lines.linePos(place?.range?.[0] ?? document.range[0]);
  return { line, column: col };
}
