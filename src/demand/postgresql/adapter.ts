/**
 * Backlog by a query to PostgreSQL: one row with `backlog` and, as far as it knows them, `in_flight`, `oldest_age_seconds` and `flow`.
 *
 * 1. The query is one statement, the inside of a SELECT of ours in a read-only transaction that is always rolled back, with a limit of time on the server.
 * 2. No row is no zero, and several are no sum.
 * 3. Ages are measured by the server: by its own now(), whatever our clock says. Of a standby the numbers are as old as its replication.
 */
import type { Client, ClientBase, DatabaseError, Pool } from "pg";
import type { DemandReading, DemandTrouble, SignalOf } from "../../model/demand.ts";
import type { ConnectionOf } from "../connections.ts";
import { demandError, unreachable } from "../errors.ts";
import type { DemandAdapter } from "../port.ts";
import { type ClientLease, SharedClients } from "../shared-clients.ts";

type Spec = SignalOf<"postgresql">;

/** To one server, for all signals that are read there. */
const CONNECTIONS_MAX = 4;
const CONNECT_LIMIT_MS = 5_000;
const STATEMENT_LIMIT_MS = 5_000;
const IDLE_MS = 60_000;
/** Shown where the flow would be; no pool's flow is called so. */
const NO_FLOW = "(the query has no column flow)";

const BEGIN = `BEGIN TRANSACTION READ ONLY; SET LOCAL statement_timeout = ${STATEMENT_LIMIT_MS}`;

/** A session's advisory lock outlives its transaction: a query that takes one would keep others out as long as the connection is kept. */
const END = "ROLLBACK; SELECT pg_advisory_unlock_all()";

/** Types that come as text and are numbers: int8 and numeric. */
const NUMBERS_AS_TEXT = [20, 1_700];

const pools = new SharedClients<ConnectionOf<"postgresql">, Pool>(openPool, (pool) => pool.end());

export const postgresqlAdapter: DemandAdapter<"postgresql"> = {
  kind: "postgresql",
  needs: { infrastructure: "PostgreSQL 12 or newer", permissions: ["CONNECT on the database", "SELECT on what the query reads"] },
  flowOf: () => null,
  open(spec, connection) {
    if (connection?.kind !== "postgresql") throw demandError("not_available", "a postgresql signal needs a connection of kind postgresql");
    const lease = pools.lease(connection);
    return { read: (signal) => readDemand(spec, lease, signal), close: () => lease.release() };
  },
};

async function openPool({ url }: ConnectionOf<"postgresql">): Promise<Pool> {
  const { Pool: PgPool, types } = (await import("pg")).default;
  const parserOf = ((oid: number, format?: "text" | "binary") =>
    NUMBERS_AS_TEXT.includes(oid) ? Number : types.getTypeParser(oid, format as "text")) as typeof types.getTypeParser;
  const pool = new PgPool({
    connectionString: url,
    max: CONNECTIONS_MAX,
    connectionTimeoutMillis: CONNECT_LIMIT_MS,
    idleTimeoutMillis: IDLE_MS,
    application_name: "relevo",
    keepAlive: true,
    types: { getTypeParser: parserOf },
  });
  // Of a connection that nobody uses just now: the next look opens another one.
  pool.on("error", () => undefined);
  // One that breaks while it is in use tells whoever uses it, by the next query; without a listener it would end this process.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

async function readDemand({ query }: Spec, lease: ClientLease<Pool>, signal: AbortSignal): Promise<DemandReading> {
  try {
    const rows = await queryOnce(await lease.client(), statementOf(query), signal);
    return readingOf(rows);
  } catch (error) {
    throw asTrouble(error, signal);
  }
}

/** At most two rows come over the wire; a comment at its end does not swallow what follows. */
export function statementOf(query: string): string {
  return `SELECT * FROM (${query.trim().replace(/;+$/, "")}\n) AS demand LIMIT 2`;
}

type Row = Readonly<Record<string, unknown>>;

async function queryOnce(pool: Pool, text: string, signal: AbortSignal): Promise<readonly Row[]> {
  signal.throwIfAborted();
  const client = await pool.connect();
  let isBroken = false;
  // The server ends the statement by itself; the connection is not used again.
  const giveUp = (): void => {
    isBroken = true;
    void (client as ClientBase as Client).end().catch(() => undefined);
  };
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    signal.throwIfAborted();
    await client.query(BEGIN);
    // The extended protocol takes one statement only: nothing that the query says can follow the transaction.
    const { rows } = await client.query<Row>({ text, queryMode: "extended" } as { text: string });
    return rows;
  } catch (error) {
    isBroken ||= !isAnswer(error);
    throw error;
  } finally {
    signal.removeEventListener("abort", giveUp);
    if (!isBroken)
      isBroken = await client.query(END).then(
        () => false,
        () => true,
      );
    client.release(isBroken);
  }
}

/** As they came: whether the numbers can be believed is judged elsewhere. */
export function readingOf(rows: readonly Row[]): DemandReading {
  const [row] = rows;
  if (row === undefined) throw demandError("missing", "the query answers no row", { todo: "count(*) answers one, also of nothing" });
  if (rows.length > 1) throw demandError("partial", "the query answers several rows, and only one can be the backlog");
  const { backlog, in_flight: inFlight, oldest_age_seconds: age, flow } = row;
  if (backlog === undefined)
    throw demandError("missing", "the row has no column backlog", { found: Object.keys(row).slice(0, 20).join(", ") });
  return {
    backlog: backlog as number,
    inFlight: (inFlight ?? null) as number | null,
    oldestAgeMs: typeof age === "number" ? age * 1_000 : ((age ?? null) as null),
    flow: flow === undefined || flow === null ? NO_FLOW : (flow as string),
    valueAt: null,
    sourceNow: null,
  };
}

/** https://www.postgresql.org/docs/current/errcodes-appendix.html; the longest prefix counts. */
const TROUBLES: readonly (readonly [string, DemandTrouble, string])[] = [
  ["28", "credentials_refused", "PostgreSQL refuses our credentials"],
  ["42501", "credentials_refused", "the role may not read what the query needs"],
  ["3D000", "missing", "there is no such database"],
  ["25006", "missing", "the query writes, and may only read"],
  ["57014", "unreachable", `the query took longer than ${STATEMENT_LIMIT_MS} ms`],
  ["22", "missing", "the query failed"],
  ["42", "missing", "the query is not valid there"],
  ["0A", "missing", "the query is not valid there"],
];

function asTrouble(error: unknown, signal: AbortSignal): unknown {
  const code = isAnswer(error) ? error.code : undefined;
  if (code !== undefined && !signal.aborted) {
    const known = TROUBLES.find(([prefix]) => code.startsWith(prefix));
    const { message } = error as Error;
    if (known === undefined) return demandError("unreachable", "PostgreSQL answered with an error", { found: `${code}: ${message}` });
    const [, trouble, sentence] = known;
    return demandError(trouble, sentence, { found: `${code}: ${message}`, cause: error });
  }
  // The client itself: a password is demanded and none is configured.
  if (error instanceof Error && /^SASL|password must be a string/.test(error.message))
    return demandError("credentials_refused", "PostgreSQL demands other credentials", { found: error.message });
  return unreachable("PostgreSQL", error, signal);
}

/** The server said it, so the connection is good. Of errors of sockets the codes are words. */
function isAnswer(error: unknown): error is DatabaseError & { readonly code: string } {
  return (
    error instanceof Error && "code" in error && typeof error.code === "string" && /^[0-9A-Z]{5}$/.test(error.code) && "severity" in error
  );
}
