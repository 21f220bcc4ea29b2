/**
 * The file under the built-in queue: one owner, write-ahead log, fsync at every commit. It is another file than the controller's store, so that a load of jobs
 * delays no decision, and a queue may run where no controller does.
 */
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { RelevoError } from "../../kernel/errors.ts";

/** In the header of the file, so that a database of another program is told apart: "RELQ". */
const APPLICATION_ID = 0x52454c51;
const SCHEMA_VERSION = 1;
const OWNER_WAIT_MS = 500;
/** After a checkpoint the log is cut back to this. */
const MAX_IDLE_LOG_BYTES = 16 * 1024 * 1024;

export const IN_MEMORY = ":memory:";

/** `state`: 0 waits, 1 taken, 2 dead, 3 finished. A queue without a name was deleted; its rows go by and by. */
const SCHEMA = `
CREATE TABLE queues (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT UNIQUE,
  created_at INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  waiting INTEGER NOT NULL DEFAULT 0,
  taken INTEGER NOT NULL DEFAULT 0,
  dead INTEGER NOT NULL DEFAULT 0,
  done INTEGER NOT NULL DEFAULT 0,
  "nothing" INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  reaped INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE jobs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  payload TEXT NOT NULL,
  state INTEGER NOT NULL,
  attempt INTEGER NOT NULL DEFAULT 0,
  enqueued_at INTEGER NOT NULL,
  worker TEXT,
  lease TEXT,
  lease_until INTEGER,
  outcome TEXT,
  result TEXT,
  reason TEXT,
  ended_at INTEGER,
  UNIQUE (queue, id)
) STRICT;
CREATE INDEX jobs_waiting ON jobs (queue, seq) WHERE state = 0;
CREATE INDEX jobs_taken ON jobs (lease_until) WHERE state = 1;
CREATE INDEX jobs_dead ON jobs (queue, seq) WHERE state = 2;
CREATE INDEX jobs_finished ON jobs (ended_at) WHERE state = 3;
CREATE TABLE writers (
  workload TEXT PRIMARY KEY,
  era INTEGER NOT NULL,
  counter INTEGER NOT NULL,
  seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
PRAGMA application_id = ${APPLICATION_ID};
PRAGMA user_version = ${SCHEMA_VERSION};
`;

/** Errors: `queue_store_in_use`, `queue_store_foreign`, `queue_store_newer`, `queue_unavailable`. */
export function openQueueFile(path: string): DatabaseSync {
  const database = openDatabase(path);
  try {
    if (path !== IN_MEMORY) becomeOwner(database, path);
    requireOwnFile(database, path);
    if (path !== IN_MEMORY) makeDurable(database);
    if (numberOf(database, "user_version") === 0) database.exec(`BEGIN; ${SCHEMA} COMMIT`);
  } catch (error) {
    database.close();
    throw error instanceof RelevoError ? error : unavailable(error);
  }
  return database;
}

/** The storage failed: nothing of what was asked is known to be kept. */
export function unavailable(cause: unknown): RelevoError {
  return new RelevoError("queue_unavailable", "the queue cannot write its file", {
    class: "retryable",
    found: cause instanceof Error ? cause.message : String(cause),
    cause,
  });
}

function openDatabase(path: string): DatabaseSync {
  try {
    if (path !== IN_MEMORY) mkdirSync(dirname(path), { recursive: true });
    return new DatabaseSync(path, { timeout: OWNER_WAIT_MS, enableDoubleQuotedStringLiterals: false });
  } catch (error) {
    throw unavailable(error);
  }
}

/** SQLite's exclusive lock is the mark of the owner: the kernel frees it however the process dies. */
function becomeOwner(database: DatabaseSync, path: string): void {
  try {
    database.exec("PRAGMA locking_mode = EXCLUSIVE");
    database.exec("BEGIN EXCLUSIVE; COMMIT");
  } catch (cause) {
    if (!isLocked(cause)) throw cause;
    throw new RelevoError("queue_store_in_use", `the file ${path} is open in another process`, {
      allowed: "one owner at a time",
      todo: "stop that process, or use another file",
      cause,
    });
  }
}

function isLocked(error: unknown): boolean {
  const code = error instanceof Error && "errcode" in error && typeof error.errcode === "number" ? error.errcode & 0xff : 0;
  return code === 5 || code === 6;
}

function requireOwnFile(database: DatabaseSync, path: string): void {
  const id = numberOf(database, "application_id");
  const version = numberOf(database, "user_version");
  const { tables } = database.prepare("SELECT count(*) AS tables FROM sqlite_schema").get() as { tables: number };
  const isFresh = id === 0 && version === 0 && tables === 0;
  if (!isFresh && id !== APPLICATION_ID)
    throw new RelevoError("queue_store_foreign", `the file ${path} is a database of another program`, {
      todo: "give the queue a file of its own",
    });
  if (version > SCHEMA_VERSION)
    throw new RelevoError("queue_store_newer", `the file ${path} is of a newer version of Relevo`, {
      found: version,
      allowed: `up to ${SCHEMA_VERSION}`,
    });
}

function makeDurable(database: DatabaseSync): void {
  const mode = database.prepare("PRAGMA journal_mode = WAL").get()?.["journal_mode"];
  if (mode !== "wal")
    throw new RelevoError("queue_unavailable", "the file system does not take a write-ahead log", {
      found: mode,
      allowed: "wal",
      todo: "put the queue's file on a local disk",
    });
  database.exec(`PRAGMA synchronous = FULL; PRAGMA journal_size_limit = ${MAX_IDLE_LOG_BYTES}`);
}

function numberOf(database: DatabaseSync, pragma: "user_version" | "application_id"): number {
  return Number(database.prepare(`PRAGMA ${pragma}`).get()?.[pragma]);
}
