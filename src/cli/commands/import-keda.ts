/** `relevo import keda -f FILE`: ScaledObjects as Pools with a target, and what differs. Nothing is read but the file, and nothing is changed. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseAllDocuments } from "yaml";
import type { CliContext, GlobalOptions } from "../context.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import { type ImportedPool, importScaledObject, renderImport } from "../keda/import-scaled-object.ts";
import { type Authentication, authenticationSchema, type ScaledObject, scaledObjectSchema } from "../keda/scaled-object.ts";
import { renderDocument } from "../output.ts";
import { RelevoError } from "../../kernel/errors.ts";

export interface ImportOptions extends GlobalOptions {
  readonly filename: string;
  readonly trigger?: number;
}

const MAX_FILE_BYTES = 4 * 1024 * 1024;
const MAX_DOCUMENTS = 500;
const KNOWN = ["ScaledObject", "TriggerAuthentication", "ClusterTriggerAuthentication"] as const;

export async function importKeda(context: CliContext, options: ImportOptions): Promise<ExitCode> {
  const { objects, authentications } = documentsIn(options.filename, await textOf(context, options.filename));
  let imported: readonly ImportedPool[];
  try {
    imported = objects.map((object) => importScaledObject(object, authentications, options.trigger));
  } catch (error) {
    if (!(error instanceof RelevoError) || error.code !== "import_refused") throw error;
    throw new UsageError(error.code, error.message, {
      found: error.found,
      ...(error.allowed === undefined ? {} : { allowed: error.allowed }),
    });
  }
  context.out(options.output === "json" ? (renderDocument({ imported }, "json") ?? "") : renderImport(imported));
  return EXIT.done;
}

async function textOf({ cwd, readStdin }: CliContext, file: string): Promise<string> {
  if (file === "-") return readStdin();
  try {
    return readFileSync(resolve(cwd, file), "utf8");
  } catch (cause) {
    throw new UsageError("file_unreadable", `${file} cannot be read.`, { cause, found: file });
  }
}

interface Documents {
  readonly objects: readonly ScaledObject[];
  readonly authentications: readonly Authentication[];
}

function documentsIn(file: string, text: string): Documents {
  if (Buffer.byteLength(text) > MAX_FILE_BYTES)
    throw new UsageError("file_too_large", `${file} is too large.`, { found: Buffer.byteLength(text), allowed: `${MAX_FILE_BYTES} bytes` });
  const parsed = parseAllDocuments(text, { logLevel: "error" });
  const documents = Array.isArray(parsed) ? parsed.slice(0, MAX_DOCUMENTS + 1) : [];
  if (documents.length > MAX_DOCUMENTS)
    throw new UsageError("file_too_large", `${file} holds too many documents.`, { allowed: `${MAX_DOCUMENTS} documents` });
  const objects: ScaledObject[] = [];
  const authentications: Authentication[] = [];
  for (const document of documents) {
    const [wrong] = document.errors;
    if (wrong !== undefined) throw new UsageError("document_invalid", `${file} is not YAML.`, { found: wrong.message.split("\n")[0] });
    for (const raw of itemsOf(plainOf(file, document))) {
      if (raw.kind === "ScaledObject") objects.push(parsedBy(file, scaledObjectSchema, raw));
      else if ((KNOWN as readonly unknown[]).includes(raw.kind)) authentications.push(parsedBy(file, authenticationSchema, raw));
      else if (raw.kind === "ScaledJob")
        throw new UsageError("import_refused", "A ScaledJob makes a Job for each piece of work, which no Pool does.", {
          found: `ScaledJob in ${file}`,
          allowed: "ScaledObjects",
          todo: "let workers take their jobs from the queue: examples/capture",
        });
    }
  }
  if (objects.length > 0) return { objects, authentications };
  throw new UsageError("document_invalid", `${file} holds no ScaledObject.`, { allowed: `documents of kind ${KNOWN.join(", ")}` });
}

interface Raw {
  readonly kind?: unknown;
}

/** Aliases that name nothing, or would unfold without end, are no documents. */
function plainOf(file: string, document: { toJS(): unknown }): unknown {
  try {
    return document.toJS();
  } catch (cause) {
    throw new UsageError("document_invalid", `${file} is not YAML.`, {
      cause,
      found: cause instanceof Error ? cause.message : String(cause),
    });
  }
}

/** A list, as kubectl get -o yaml writes one, is its items. */
function itemsOf(raw: unknown): readonly Raw[] {
  if (typeof raw !== "object" || raw === null) return [];
  const { kind, items } = raw as { readonly kind?: unknown; readonly items?: unknown };
  if (kind !== "List" || !Array.isArray(items)) return [raw as Raw];
  return items.slice(0, MAX_DOCUMENTS).flatMap((item: unknown) => (typeof item === "object" && item !== null ? [item as Raw] : []));
}

function parsedBy<T>(
  file: string,
  schema: {
    safeParse(
      value: unknown,
    ): { success: true; data: T } | { success: false; error: { issues: readonly { path: PropertyKey[]; message: string }[] } };
  },
  raw: Raw,
): T {
  const parsed = schema.safeParse(raw);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new UsageError("document_invalid", `${file}: a ${String(raw.kind)} is not as KEDA defines it.`, {
    found: `${issue?.path.map(String).join(".") ?? ""}: ${issue?.message ?? ""}`,
  });
}
