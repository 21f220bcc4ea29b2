/**
 * What a fault-tolerant query leaves in the exchange when its coordinator dies: nobody removes it, and workers may go on writing for a while. A folder may go when
 * no coordinator knows its query any more.
 *
 * 1. A query belongs to the coordinator whose id ends the query's id. That one is asked, or provably is no more; one that gives no answer keeps its folders.
 * 2. A folder that was written to within `quietMs` stays: a worker has not yet learned that its query is gone.
 * 3. A name that is not of Trino's exchange is never touched.
 */
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { coordinatorOfQuery } from "../../model/trino.ts";

/** `<hex>.<query id>.external-exchange-<stage>.<n>`, one for each query and stage. */
const FOLDER = /^[0-9a-f]+\.(\d{8}_\d{6}_\d{5,}_[a-z0-9]{5})\.external-exchange-\d+\.\d+$/;

/** Undefined: no folder of the exchange. */
export function queryOfFolder(name: string): string | undefined {
  return FOLDER.exec(name)?.[1];
}

export interface ExchangeFolder {
  readonly name: string;
  /** Since its last file was written. */
  readonly quietForMs: number;
}

export interface KnownQueries {
  /** Of the coordinators that were asked and answered: the queries that they know. By coordinator id. */
  readonly answered: ReadonlyMap<string, ReadonlySet<string>>;
  /** Coordinators that may live but gave no answer. `all`: nobody can say which there are. */
  readonly silent: ReadonlySet<string> | "all";
}

/** Names of the folders that belong to no query that anybody knows. */
export function orphans(folders: readonly ExchangeFolder[], { answered, silent }: KnownQueries, quietMs: number): readonly string[] {
  if (silent === "all") return [];
  return folders
    .filter(({ name, quietForMs }) => {
      const query = queryOfFolder(name);
      const coordinator = query === undefined ? undefined : coordinatorOfQuery(query);
      if (query === undefined || coordinator === undefined || quietForMs < quietMs) return false;
      return !silent.has(coordinator) && answered.get(coordinator)?.has(query) !== true;
    })
    .map(({ name }) => name);
}

/** Folders of the exchange at this place, with how long each was quiet at `now`, in ms since 1970. */
export async function listExchange(location: string, now: number): Promise<readonly ExchangeFolder[]> {
  const found: ExchangeFolder[] = [];
  for (const name of await readdir(location)) {
    if (queryOfFolder(name) === undefined) continue;
    const writtenAt = await lastWriteIn(join(location, name));
    if (writtenAt !== undefined) found.push({ name, quietForMs: Math.max(0, now - writtenAt) });
  }
  return found;
}

/** Undefined when it is gone. */
async function lastWriteIn(folder: string): Promise<number | undefined> {
  const own = await stat(folder).catch(() => undefined);
  if (own === undefined) return undefined;
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  const times = await Promise.all(
    entries.map(({ parentPath, name }) =>
      stat(join(parentPath, name)).then(
        ({ mtimeMs }) => mtimeMs,
        () => 0, // it went while it was looked at
      ),
    ),
  );
  return times.reduce((latest, time) => Math.max(latest, time), own.mtimeMs);
}

/** Removes the orphans, and names them. Looks again at each before: one that was written to meanwhile stays. */
export async function sweepExchange(
  location: string,
  { known, now, quietMs }: { readonly known: KnownQueries; readonly now: () => number; readonly quietMs: number },
): Promise<readonly string[]> {
  const swept: string[] = [];
  for (const name of orphans(await listExchange(location, now()), known, quietMs)) {
    const writtenAt = await lastWriteIn(join(location, name));
    if (writtenAt === undefined || now() - writtenAt < quietMs) continue;
    await rm(join(location, name), { recursive: true, force: true });
    swept.push(name);
  }
  return swept;
}
