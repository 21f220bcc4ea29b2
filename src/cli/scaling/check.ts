/**
 * `relevo check POOL` or `-f FILE`: what stands in the way of a pool (preflight), and of one that runs how far each of its settings has come (effect); one table.
 * Exit code 3 when the preflight refuses, else 4 when anything is not effective.
 */
import { type EffectReport, effectReportSchema, isEffective } from "../../model/effect.ts";
import { preflightView } from "../../server/scale-views.ts";
import { z } from "zod";
import { connect, poolKeyOf } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { parsePoolFile } from "../documents.ts";
import { EXIT, type ExitCode, FilesError, UsageError } from "../exit.ts";
import { readText, shownName } from "../text-file.ts";
import { renderDocument } from "../output.ts";
import { type Checked, checkTable } from "./check-table.ts";
import { restartStale } from "./restart-stale.ts";

export interface CheckOptions extends GlobalOptions {
  readonly filename?: string;
  /** Rolls instances with a stale setting through the ordinary lifecycle, and checks again. */
  readonly restart?: boolean;
  /** How long that may take, ms. */
  readonly for?: number;
}

const NOTHING_RUNS: EffectReport = { rows: [], notes: [] };

export async function check(context: CliContext, name: string | undefined, options: CheckOptions): Promise<ExitCode> {
  if ((name === undefined) === (options.filename === undefined))
    throw new UsageError("subject_not_asked", "Say which pool is to be checked: by its name, or by its document.", {
      found: name === undefined ? "neither" : "both",
      allowed: "relevo check POOL, or relevo check -f FILE",
    });
  if (options.restart === true && name === undefined)
    throw new UsageError("subject_not_asked", "Only what runs can be restarted.", {
      found: "-f with --restart",
      allowed: "relevo check POOL --restart",
    });
  const client = connect(context, options);
  const checked: Checked[] = [];
  if (name !== undefined) {
    const pool = poolKeyOf(name, options.namespace);
    const rows = await client.list(`/v1/pools/${pool}/check`, preflightView);
    const look = (): Promise<EffectReport> => client.get(`/v1/pools/${pool}/effect`, effectReportSchema);
    const found = await look();
    const isRestarted = options.restart === true && (await restartStale(context, client, { pool, report: found, withinMs: options.for }));
    checked.push({ pool, rows, effect: isRestarted ? await look() : found });
  }
  for (const { raw, pool } of await documentsOf(context, options)) {
    const namespace = (raw.metadata as { readonly namespace?: string }).namespace ?? options.namespace;
    const body = { ...raw, metadata: { ...(raw.metadata as object), namespace } };
    const { items: rows } = await client.post("/v1/check", body, z.object({ items: z.array(preflightView) }));
    checked.push({ pool: `${namespace}/${pool.metadata.name}`, rows, effect: NOTHING_RUNS });
  }
  const isWide = options.output === "wide";
  context.out(renderDocument({ items: checked }, options.output) ?? checked.map((each) => checkTable(context, each, isWide)).join("\n"));
  if (checked.some(({ rows }) => rows.some(({ state }) => state === "refused"))) return EXIT.refused;
  return checked.every(({ effect }) => isEffective(effect)) ? EXIT.done : EXIT.held;
}

async function documentsOf(context: CliContext, { filename }: CheckOptions) {
  if (filename === undefined) return [];
  const { documents, problems } = parsePoolFile(shownName(filename), await readText(context, filename));
  if (problems.length > 0) throw new FilesError(problems, "nothing was checked");
  return documents;
}
