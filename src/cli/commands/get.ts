/** `relevo get KIND [NAME]`: what there is, once, or again at each transition that changes it. */
import { z } from "zod";
import { type ControllerClient, connect, poolKeyOf } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import { capacity } from "./capacity.ts";
import { type Kind, kindOf, KINDS } from "../kinds.ts";
import { renderDocument, renderTable } from "../output.ts";
import { describeError, isRetryable, RelevoError } from "../../kernel/errors.ts";

export interface GetOptions extends GlobalOptions {
  readonly pool?: string;
  readonly limit?: number;
  readonly all?: boolean;
  readonly watch?: boolean;
}

export async function get(context: CliContext, kindName: string, name: string | undefined, options: GetOptions): Promise<ExitCode> {
  if (kindName.toLowerCase() === "capacity") return capacity(context, name, options);
  const kind = kindOrUsage(kindName);
  const client = connect(context, options);
  if (options.pool !== undefined && !kind.ofPool)
    throw new UsageError("pool_not_asked", `${kind.plural} are of no pool: --pool does not narrow them.`, {
      found: options.pool,
      allowed: KINDS.filter(({ ofPool }) => ofPool)
        .map(({ plural }) => plural)
        .join(", "),
    });
  const query = { kind, name: name === undefined ? undefined : nameIn(kind, name, options), options };
  if (options.watch) return watch(context, client, query);

  const items = await read(client, query);
  if (name !== undefined && items.length === 0)
    throw new RelevoError("not_found", `There is no ${kind.names[0]} ${query.name}.`, {
      found: name,
      todo: `see relevo get ${kind.plural}`,
    });
  if (items.length === 0 && options.pool !== undefined) await assertPool(client, poolKeyOf(options.pool, options.namespace));
  context.out(show(context, query, items));
  return EXIT.done;
}

/** Of a pool that is gone there may still be records: asked only where there is nothing to show. Throws `not_found`. */
async function assertPool(client: ControllerClient, pool: string): Promise<void> {
  try {
    await client.get(`/v1/pools/${pool}`, z.unknown());
  } catch (error) {
    if (!(error instanceof RelevoError) || error.code !== "pool_not_found") throw error;
    throw new RelevoError("not_found", `There is no pool ${pool}.`, { found: pool, todo: "see relevo get pools" });
  }
}

interface Query {
  readonly kind: Kind<unknown>;
  readonly name: string | undefined;
  readonly options: GetOptions;
}

function kindOrUsage(name: string): Kind<unknown> {
  try {
    return kindOf(name);
  } catch (error) {
    if (!(error instanceof RelevoError)) throw error;
    const { code, message, found, allowed, todo } = error;
    throw new UsageError(code, message, { found, ...(allowed === undefined ? {} : { allowed }), ...(todo === undefined ? {} : { todo }) });
  }
}

function nameIn(kind: Kind<unknown>, name: string, { namespace }: GlobalOptions): string {
  return kind.plural === "pools" ? poolKeyOf(name, namespace) : name;
}

async function read(client: ControllerClient, { kind, name, options }: Query): Promise<readonly unknown[]> {
  const parameters = new URLSearchParams();
  if (kind.ofPool && options.pool !== undefined) parameters.set("pool", poolKeyOf(options.pool, options.namespace));
  // Where some are left out here, be it for their name or because they are past, the limit counts what remains.
  const limit = name === undefined && !kind.isPast ? options.limit : MOST_RECORDS;
  if (limit !== undefined && (kind.ofPool || kind.plural === "notices")) parameters.set("limit", String(limit));
  const items = await client.list(`${kind.path}${parameters.size > 0 ? `?${parameters}` : ""}`, kind.schema);
  const wanted = items.filter((item) => (name === undefined ? options.all || !kind.isPast?.(item) : kind.nameOf(item) === name));
  return wanted.slice(0, options.limit);
}

function show(context: CliContext, { kind, name, options }: Query, items: readonly unknown[], following: Following = {}): string {
  const document = renderDocument(name === undefined ? { items } : items[0], options.output);
  if (document !== undefined) return document;
  if (items.length === 0) return `no ${kind.plural}\n`;
  return renderTable(items, kind.columns, { now: context.clock.now(), isWide: options.output === "wide", ...following });
}

/** Of a table that goes on. */
interface Following {
  readonly hasHead?: boolean;
  readonly widths?: number[];
}

/** That the controller tells at once. */
const MOST_RECORDS = 1_000;
const RETRY_MS = 1_000;

/** As long as the user wants: a controller that went away is waited for. */
async function watch(context: CliContext, client: ControllerClient, query: Query): Promise<ExitCode> {
  const shown = new Map<string, string>();
  for (let isAway = false; !context.signal.aborted; ) {
    try {
      for await (const changed of changes(context, client, query, shown)) {
        isAway = false;
        context.out(changed);
      }
    } catch (error) {
      if (!isRetryable(error)) throw error;
      if (shown.size === 0 && !isAway) throw error; // it was never there
      if (!isAway) context.err(`relevo: ${describeError(error)}; waiting for it\n`);
      isAway = true;
    }
    await context.clock.sleep(RETRY_MS, context.signal).catch(() => undefined);
  }
  return EXIT.done;
}

/** All once, then each item again when it changed; a line of JSON each where the output is JSON. */
async function* changes(context: CliContext, client: ControllerClient, query: Query, shown: Map<string, string>): AsyncGenerator<string> {
  const { kind, options } = query;
  const pool = options.pool === undefined ? undefined : poolKeyOf(options.pool, options.namespace);
  let isFirst = shown.size === 0;
  const widths: number[] = [];
  for await (const _ of client.watch(pool, context.signal)) {
    // What was shown is shown once more when it is past: whoever waits for its end would wait for ever.
    const items = (await read(client, { ...query, options: { ...options, all: true } })).filter(
      (item) => options.all || !kind.isPast?.(item) || shown.has(kind.nameOf(item)),
    );
    const changed = items.filter((item) => shown.get(kind.nameOf(item)) !== JSON.stringify(item));
    const hasHead = isFirst;
    const present = new Set(items.map((item) => kind.nameOf(item)));
    for (const name of shown.keys()) if (!present.has(name)) shown.delete(name);
    for (const item of changed) {
      if (options.all || !kind.isPast?.(item)) shown.set(kind.nameOf(item), JSON.stringify(item));
      else shown.delete(kind.nameOf(item));
    }
    if (changed.length === 0) continue;
    isFirst = false;
    if (options.output === "json") yield changed.map((item) => `${JSON.stringify(item)}\n`).join("");
    else yield show(context, { ...query, name: undefined }, changed, { hasHead, widths });
  }
}
