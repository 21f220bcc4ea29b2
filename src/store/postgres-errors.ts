/**
 * What PostgreSQL's SQLSTATEs, and a connection that breaks, mean to a transaction. Decided by a table, by the longest prefix that is listed
 * (https://www.postgresql.org/docs/current/errcodes-appendix.html).
 *
 * - `again`: the server rolled back because of others; the same transaction is done anew, at once, a bounded number of times. A unique or foreign key that is
 *   broken is one too: what was looked for a moment ago was inserted or deleted by another meanwhile, and the second look decides.
 * - `reconnect`: the connection is over. Before COMMIT was sent nothing of the transaction is kept, so it is done anew on another one; afterwards nobody knows.
 * - `silent`: the connection is over too, because no answer came in time. Another one may lead to the same silence, so it is tried less often.
 * - `unavailable`: for the caller, who reads again later.
 * - `corrupt`: for a person. What is not listed is a fault of ours and is thrown as it is.
 */
import { RelevoError } from "../kernel/errors.ts";
import { storeCorrupt, storeUnavailable } from "./port.ts";

export type Meaning = "again" | "reconnect" | "silent" | "unavailable" | "corrupt" | "fault";

interface Row {
  readonly meaning: Meaning;
  readonly why: string;
  readonly todo?: string;
}

const REACH = "see that PostgreSQL runs and can be reached; nothing was half-written";

export const SQLSTATES: Readonly<Record<string, Row>> = {
  "08": { meaning: "reconnect", why: "the connection broke", todo: REACH },
  "22021": { meaning: "fault", why: "a text cannot be stored" },
  "23503": { meaning: "again", why: "what a row refers to was deleted by another" },
  "23505": { meaning: "again", why: "another inserted the same" },
  "25006": { meaning: "reconnect", why: "the server takes no writes: it is a standby", todo: "let the URL lead to the primary" },
  "25P03": { meaning: "reconnect", why: "the transaction was idle for too long", todo: REACH },
  "28": {
    meaning: "unavailable",
    why: "the server refuses the user",
    todo: "correct the user or the password: PGPASSWORD, PGPASSFILE or --store-password-file",
  },
  "3D000": { meaning: "unavailable", why: "there is no such database", todo: "create it: createdb" },
  "40001": { meaning: "again", why: "others changed the same rows" },
  "40003": { meaning: "reconnect", why: "it is not known whether the statement ended", todo: REACH },
  "40P01": { meaning: "again", why: "a deadlock" },
  "42501": {
    meaning: "unavailable",
    why: "the role may not do that",
    todo: "run relevo store migrate once as the owner of the schema, and grant the role its use",
  },
  "53": {
    meaning: "unavailable",
    why: "the server is out of resources",
    todo: "free disk, memory or connections of the server; nothing was half-written",
  },
  "55P03": {
    meaning: "unavailable",
    why: "a lock was held by another for too long",
    todo: "see pg_locks for who holds it; nothing was half-written",
  },
  "57014": {
    meaning: "unavailable",
    why: "a statement took too long, or was cancelled",
    todo: "see what the server is busy with; nothing was half-written",
  },
  "57P": { meaning: "reconnect", why: "the server is ending or starting", todo: REACH },
  "58": { meaning: "unavailable", why: "the server's own system failed", todo: "see the server's log; nothing was half-written" },
  XX001: { meaning: "corrupt", why: "the server found damaged data" },
  XX002: { meaning: "corrupt", why: "the server found a damaged index" },
};

/** Of Node, and the sentences of the driver, which have no code. */
const BROKEN_CODES = /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_|ENOENT|EADDR|ERR_(SSL|TLS)|CERT_|.*CERT|UNABLE_TO_)/;
const BROKEN_SENTENCES =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Client (was closed|has encountered)|The server does not support SSL|Cannot use a pool after)/;

const BROKEN: Row = { meaning: "reconnect", why: "the connection broke or cannot be made", todo: REACH };
/** The driver's own words when the server does not answer a statement. */
const NO_ANSWER = /^Query read timeout/;
const SILENT: Row = { meaning: "silent", why: "the server does not answer", todo: REACH };
/** The driver's own words where the server asks for a password and there is none. */
const NO_PASSWORD = /^SASL: .*password must be/; // "a string", "a non-empty string"
const FAULT: Row = { meaning: "fault", why: "a fault" };

export function meaningOf(error: unknown): Meaning {
  return rowOf(error).meaning;
}

/** For the caller, of a transaction of which nothing is kept. */
export function toStoreError(error: unknown): unknown {
  const { meaning, why, todo } = rowOf(error);
  if (meaning === "fault") return error;
  if (meaning === "corrupt") return storeCorrupt(why, error);
  return storeUnavailable(`${why} (${sentenceOf(error)})`, error, todo ?? "try again; nothing was half-written");
}

function rowOf(error: unknown): Row {
  if (error instanceof RelevoError || !(error instanceof Error)) return FAULT;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (/^[0-9A-Z]{5}$/.test(code) && "severity" in error) {
    for (let length = code.length; length >= 2; length--) {
      const row = SQLSTATES[code.slice(0, length)];
      if (row !== undefined) return row;
    }
    return FAULT;
  }
  if (NO_PASSWORD.test(error.message)) return SQLSTATES["28"] as Row;
  if (NO_ANSWER.test(error.message)) return SILENT;
  return BROKEN_CODES.test(code) || BROKEN_SENTENCES.test(error.message) ? BROKEN : FAULT;
}

function sentenceOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const message = error instanceof Error ? error.message : String(error);
  return message === "" ? code : code === "" ? message : `${code} ${message}`;
}
