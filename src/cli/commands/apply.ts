/** `relevo apply -f FILE…`: all documents of all files, or none when one has a mistake. */
import { applyView } from "../../server/views.ts";
import { connect } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { type ParsedDocument, parsePoolFile } from "../documents.ts";
import { type ExitCode, EXIT, type FileProblem, FilesError } from "../exit.ts";
import { readText, shownName } from "../text-file.ts";
import { renderDocument } from "../output.ts";

export interface ApplyOptions extends GlobalOptions {
  readonly filename: readonly string[];
  readonly dryRun?: boolean;
}

export async function apply(context: CliContext, options: ApplyOptions): Promise<ExitCode> {
  const documents: ParsedDocument[] = [];
  const problems: FileProblem[] = [];
  for (const file of options.filename) {
    const parsed = parsePoolFile(shownName(file), await readText(context, file));
    documents.push(...parsed.documents);
    problems.push(...parsed.problems);
  }
  if (problems.length > 0) throw new FilesError(problems);

  const client = connect(context, options);
  const results = [];
  for (const { raw, pool } of documents) {
    // Where the file names no namespace, -n does.
    const metadata = { ...(raw.metadata as object), namespace: namespaceOf(raw, options) };
    const result = await client.post(`/v1/apply${options.dryRun ? "?dryRun=true" : ""}`, { ...raw, metadata }, applyView);
    results.push(result);
    if (options.output === "table" || options.output === "wide")
      context.out(`pool ${result.pool} ${result.result}${result.dryRun ? " (dry run)" : ""}${note(pool.spec.disruption.mode)}\n`);
  }
  const document = renderDocument({ items: results }, options.output);
  if (document !== undefined) context.out(document);
  return EXIT.done;
}

function namespaceOf(raw: Readonly<Record<string, unknown>>, { namespace }: GlobalOptions): string {
  return (raw.metadata as { readonly namespace?: string }).namespace ?? namespace;
}

/** Off is the default: a pool that nobody switched on must not look protected. */
function note(mode: string): string {
  return mode === "Act" ? "" : `; disruption.mode is ${mode}: no instance is replaced before its node goes`;
}
