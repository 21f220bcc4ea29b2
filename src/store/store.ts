/** Opens a store by what it is called: a file, memory, or the URL of a PostgreSQL database. */
import type { Store } from "./port.ts";
import type { PostgresOptions } from "./postgres-store.ts";
import { RelationalStore } from "./relational-store.ts";
import { openSqliteFile, type SqliteFileOptions } from "./sqlite-file.ts";
import { SqliteTurns } from "./sqlite-turns.ts";

/** `path` may be a URL too: then the options of PostgreSQL count and not those of the file. */
export type StoreOptions = SqliteFileOptions & Omit<PostgresOptions, "url">;

export function isPostgresUrl(target: string): boolean {
  return /^postgres(ql)?:\/\//.test(target);
}

/**
 * A file, made with its folder when it is not there, a new store in memory for `:memory:` (which settles by microtasks alone), or `postgresql://…`
 * (docs/store.md). Errors: see `openSqliteFile` and `openPostgres`.
 */
export async function openStore(target: string | StoreOptions): Promise<Store> {
  const { path, ...options } = typeof target === "string" ? { path: target } : target;
  if (!isPostgresUrl(path)) return new RelationalStore(new SqliteTurns(openSqliteFile({ path, ...options })));
  // Not loaded where it is not used: the simulator and a small file need none of it.
  const { openPostgres } = await import("./postgres-store.ts");
  return openPostgres({ url: path, ...options });
}
