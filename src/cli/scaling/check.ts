/** `relevo check POOL` or `-f FILE`: whether a pool's size could be left to Relevo, at each of its sites; one table. Exit code 3 when it could not. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type PreflightView, preflightView } from "../../server/scale-views.ts";
import { z } from "zod";
import { connect, poolKeyOf } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { parsePoolFile } from "../documents.ts";
import { EXIT, type ExitCode, FilesError, UsageError } from "../exit.ts";
import { palette, renderDocument } from "../output.ts";

export interface CheckOptions extends GlobalOptions {
  readonly filename?: string;
}

interface Checked {
  readonly pool: string;
  readonly rows: readonly PreflightView[];
}

export async function check(context: CliContext, name: string | undefined, options: CheckOptions): Promise<ExitCode> {
  if ((name === undefined) === (options.filename === undefined))
    throw new UsageError("subject_not_asked", "Say which pool is to be checked: by its name, or by its document.", {
      found: name === undefined ? "neither" : "both",
      allowed: "relevo check POOL, or relevo check -f FILE",
    });
  const client = connect(context, options);
  const checked: Checked[] = [];
  if (name !== undefined) {
    const pool = poolKeyOf(name, options.namespace);
    checked.push({ pool, rows: await client.list(`/v1/pools/${pool}/check`, preflightView) });
  }
  for (const { raw, pool } of await documentsOf(context, options)) {
    const namespace = (raw.metadata as { readonly namespace?: string }).namespace ?? options.namespace;
    const body = { ...raw, metadata: { ...(raw.metadata as object), namespace } };
    const { items: rows } = await client.post("/v1/check", body, z.object({ items: z.array(preflightView) }));
    checked.push({ pool: `${namespace}/${pool.metadata.name}`, rows });
  }
  context.out(renderDocument({ items: checked }, options.output) ?? checked.map((each) => textOf(context, each)).join("\n"));
  return checked.some(({ rows }) => rows.some(({ state }) => state === "refused")) ? EXIT.refused : EXIT.done;
}

async function documentsOf(context: CliContext, { filename }: CheckOptions) {
  if (filename === undefined) return [];
  const text = filename === "-" ? await context.readStdin() : read(resolve(context.cwd, filename), filename);
  const { documents, problems } = parsePoolFile(filename === "-" ? "stdin" : filename, text);
  if (problems.length > 0) throw new FilesError(problems, "nothing was checked");
  return documents;
}

function read(path: string, name: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new UsageError("file_unreadable", `${name} cannot be read.`, { found: (cause as NodeJS.ErrnoException).code, cause });
  }
}

function textOf(context: CliContext, { pool, rows }: Checked): string {
  const { green, yellow, red } = palette(context);
  const widths = { site: Math.max(4, ...rows.map(({ site }) => site.length)), check: 11, state: 7 };
  const line = (site: string, what: string, state: string, message: string, colour: (text: string) => string = (text) => text) =>
    `${site.padEnd(widths.site)}  ${what.padEnd(widths.check)}  ${colour(state.padEnd(widths.state))}  ${message}`.trimEnd();
  const refused = rows.filter(({ state }) => state === "refused").length;
  return [
    `pool ${pool}`,
    line("SITE", "CHECK", "STATE", "FOUND"),
    ...rows.map(({ site, check: what, state, message, todo }) =>
      line(site, what, state, todo === null ? message : `${message}; ${todo}`, state === "ok" ? green : state === "refused" ? red : yellow),
    ),
    refused === 0
      ? "nothing stands in the way"
      : `${refused} ${refused === 1 ? "check refuses" : "checks refuse"}: leave the size to who has it now`,
    "",
  ].join("\n");
}
