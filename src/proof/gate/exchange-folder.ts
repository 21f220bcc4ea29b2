/** The exchange in a folder: one folder a query and stage, `<hex>.<query id>.external-exchange-<stage>.<n>`, with the files of its tasks beneath. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { RelevoError } from "../../kernel/errors.ts";
import { type ExchangeEntry, type ExchangeListing, MOST_ENTRIES } from "./ports.ts";

export function exchangeFolder(location: string): ExchangeListing {
  return {
    location,
    async list(queryId) {
      const entries: ExchangeEntry[] = [];
      for (const folder of await foldersOf(location, queryId)) await gather(join(location, folder), entries);
      return entries;
    },
  };
}

async function foldersOf(location: string, queryId: string): Promise<readonly string[]> {
  try {
    return (await readdir(location)).filter((name) => name.split(".").includes(queryId));
  } catch (cause) {
    throw new RelevoError("exchange_unreadable", `The exchange's folder ${location} cannot be listed.`, {
      found: (cause as NodeJS.ErrnoException).code,
      todo: "name the folder that is exchange.base-directories on the workers, as it is seen from here",
      cause,
    });
  }
}

/** What goes while it is looked at was there: the engine clears up when a query ends. */
async function gather(folder: string, entries: ExchangeEntry[]): Promise<void> {
  const children = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const child of children) {
    if (entries.length >= MOST_ENTRIES) return;
    const path = join(folder, child.name);
    if (child.isDirectory()) await gather(path, entries);
    else
      entries.push({
        path,
        bytes: await stat(path).then(
          ({ size }) => size,
          () => 0,
        ),
      });
  }
}
