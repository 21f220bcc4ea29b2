/**
 * The file under the store: one owner, write-ahead log, fsync at every commit.
 *
 * SQLite's own exclusive lock is the owner's mark: the kernel frees it when the process dies, however it dies. The pid beside the file only makes the refusal
 * readable. Nothing else in this process may open the file: closing any descriptor of it would drop the lock (POSIX).
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { RelevoError } from "../kernel/errors.ts";
import { migrate, requireKnownSchema, schemaOf } from "./migrate.ts";
import { MIGRATIONS } from "./migrations/index.ts";
import type { Migration } from "./migrations/migration.ts";
import { storeCorrupt, storeUnavailable } from "./port.ts";
import { isBusy, toStoreError } from "./sqlite-errors.ts";

/** How long a start waits for a former owner that is just ending. */
const OWNER_WAIT_MS = 500;
/** After a checkpoint the log is cut back to this, so that one burst does not keep its disk space. */
const MAX_IDLE_LOG_BYTES = 16 * 1024 * 1024;

export const IN_MEMORY = ":memory:";

export interface SqliteFile {
  readonly database: DatabaseSync;
  readonly path: string;
  readonly isOnDisk: boolean;
  /** The number of the newest migration. */
  readonly schema: () => number;
  /** Closes the database and gives up the ownership. */
  readonly close: () => void;
}

export interface SqliteFileOptions {
  /** A file, made with its folder when it is not there, or `:memory:`. */
  readonly path: string;
  /** The file never grows beyond this many pages of 4 KiB; a commit that would need more fails as on a full disk. */
  readonly maxPages?: number;
  readonly migrations?: readonly Migration[];
}

/** Errors: `store_in_use`, `store_corrupt`, `store_unavailable`, `store_from_newer_version`. */
export function openSqliteFile({ path, maxPages, migrations = MIGRATIONS }: SqliteFileOptions): SqliteFile {
  if (path !== IN_MEMORY) makeFolder(path);
  const database = openDatabase(path);
  try {
    if (path !== IN_MEMORY) becomeOwner(database, path);
    requireKnownSchema(database, migrations);
    if (path !== IN_MEMORY) makeDurable(database);
    migrate(database, migrations);
    if (maxPages !== undefined) database.exec(`PRAGMA max_page_count = ${Math.trunc(maxPages)}`);
  } catch (error) {
    database.close();
    throw toStoreError(error);
  }
  const close = (): void => {
    try {
      if (path !== IN_MEMORY) rmSync(pidFileOf(path), { force: true }); // first: once the lock is free, the file is the next owner's
    } finally {
      database.close();
    }
  };
  return { database, path, isOnDisk: path !== IN_MEMORY, schema: () => schemaOf(database), close };
}

function openDatabase(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path, { timeout: OWNER_WAIT_MS, enableForeignKeyConstraints: true, enableDoubleQuotedStringLiterals: false });
  } catch (error) {
    throw toStoreError(error);
  }
}

function becomeOwner(database: DatabaseSync, path: string): void {
  try {
    database.exec("PRAGMA locking_mode = EXCLUSIVE");
    checkPages(database);
    // A database that is new has no log yet, and its first reader holds a shared lock only: this takes the exclusive one without writing.
    database.exec("BEGIN EXCLUSIVE; COMMIT");
  } catch (error) {
    throw isBusy(error) ? storeInUse(path) : error;
  }
  writePid(path);
}

function makeDurable(database: DatabaseSync): void {
  const mode = database.prepare("PRAGMA journal_mode = WAL").get()?.["journal_mode"];
  if (mode !== "wal")
    throw new RelevoError("store_unavailable", "the file system does not take a write-ahead log", {
      found: mode,
      allowed: "wal",
      todo: "put the store on a local disk",
    });
  database.exec(`PRAGMA synchronous = FULL; PRAGMA journal_size_limit = ${MAX_IDLE_LOG_BYTES}`);
}

function checkPages(database: DatabaseSync): void {
  const answer = database.prepare("PRAGMA quick_check(1)").get()?.["quick_check"];
  if (answer !== "ok") throw storeCorrupt(String(answer), undefined);
}

function storeInUse(path: string): RelevoError {
  const pid = readPid(path);
  return new RelevoError("store_in_use", `the store ${path} is open in another process`, {
    found: pid === undefined ? "a lock of an unknown process" : `pid ${pid}`,
    allowed: "one owner at a time",
    todo: "stop that process, or use another file",
  });
}

function readPid(path: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(pidFileOf(path), "utf8"), 10);
    return Number.isNaN(pid) ? undefined : pid;
  } catch {
    return undefined; // the other one may just be starting: the refusal stands without its number
  }
}

function writePid(path: string): void {
  try {
    writeFileSync(pidFileOf(path), `${process.pid}\n`);
  } catch (error) {
    throw storeUnavailable("the owner's pid cannot be written beside it", error);
  }
}

function pidFileOf(path: string): string {
  return `${path}.pid`;
}

function makeFolder(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true });
  } catch (error) {
    throw new RelevoError("store_unavailable", `the folder of the store cannot be made: ${dirname(path)}`, {
      class: "retryable",
      cause: error,
    });
  }
}
