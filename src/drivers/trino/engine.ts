/**
 * What the engine says about itself: asked at the coordinator, by its public paths where there are any, else by SQL over `system.runtime`.
 *
 * Such reads fail for other reasons than their own (those of tasks run on the workers, one of which may just be dying): they are tried again.
 */
import { z } from "zod";
import type { Clock } from "../../kernel/clock.ts";
import { isRetryable, RelevoError } from "../../kernel/errors.ts";
import { type NodeInfo, parseAs, parseInfo, type QueryError } from "./answers.ts";
import { refusalOf, TrinoHttp } from "./http.ts";
import { parseGauges } from "./gauges.ts";
import { type QueryResult, StatementClient } from "./statement-client.ts";

/** As which program Relevo's own looks are sent: nobody's work. */
export const OWN_SOURCE = "relevo";

const READ_LIMIT_MS = 5_000;
const INFO_BYTES_MAX = 64 * 1024;
const GAUGES_BYTES_MAX = 64 * 1024;
const QUERIES_BYTES_MAX = 8 * 1024 * 1024;
const TRIES = 5;
const TRY_LIMIT_MS = 20_000;
const TRIES_LIMIT_MS = 60_000;
const TRY_AGAIN_MS = 500;
/** From this version on a list of queries can be asked for by several states; an older one would take the first alone. */
const SEVERAL_STATES_SINCE = 483;

/** As `QueryState` names them; the others are `FINISHED` and `FAILED`. */
const UNFINISHED = ["QUEUED", "WAITING_FOR_RESOURCES", "DISPATCHING", "PLANNING", "STARTING", "RUNNING", "FINISHING"] as const;
const ENDED: readonly string[] = ["FINISHED", "FAILED"];

export interface EngineNode {
  readonly nodeId: string;
  readonly uri: string;
  readonly version: string;
  readonly isCoordinator: boolean;
  /** `active`, `inactive`, `draining`, `drained`, `shutting_down`; up to 8 s old. A killed worker is not listed. */
  readonly state: string;
}

export interface EngineQuery {
  readonly queryId: string;
  /** `QUEUED`, `RUNNING`, … */
  readonly state: string;
  readonly user: string;
  readonly source: string | null;
  readonly sql: string;
}

export interface EngineTask {
  readonly nodeId: string;
  readonly taskId: string;
  readonly stageId: string;
  readonly queryId: string;
  /** `RUNNING`, `FLUSHING`, `FINISHED`, … */
  readonly state: string;
  readonly splits: number;
  readonly runningSplits: number;
  readonly completedSplits: number;
  readonly processedRows: number;
}

export interface EngineTransaction {
  readonly transactionId: string;
  /** Of a single statement; it ends with it. */
  readonly isAutoCommit: boolean;
  readonly isReadOnly: boolean;
  readonly idleSeconds: number;
}

export interface Engine {
  info(): Promise<NodeInfo>;
  nodes(): Promise<readonly EngineNode[]>;
  /** With those that ended, as far as the engine keeps them; without its own. */
  queries(): Promise<readonly EngineQuery[]>;
  /** That have not ended, of everybody; not by SQL. Errors: `trino_too_many_queries` (terminal). */
  unfinished(version: string): Promise<readonly EngineQuery[]>;
  tasks(queryId?: string): Promise<readonly EngineTask[]>;
  /** That have not ended; without its own. */
  transactions(): Promise<readonly EngineTransaction[]>;
  /** Of `/metrics`, these alone: all of them are 870 KB. What the server does not have is not in the answer. */
  gauges(names: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** One statement of its own, tried again while the fault is not its own. */
  read(sql: string): Promise<QueryResult>;
}

export interface EngineOptions {
  /** `http://host:port` of the coordinator. */
  readonly base: string;
  readonly user: string;
  readonly clock: Clock;
  readonly http?: TrinoHttp;
}

const identity = z.array(z.tuple([z.string(), z.string(), z.string(), z.boolean(), z.string()]));
const querySchema = z.array(z.tuple([z.string(), z.string(), z.string(), z.string().nullable(), z.string()]));
const count = z.union([z.number(), z.bigint().transform(Number)]);
const taskSchema = z.array(z.tuple([z.string(), z.string(), z.string(), z.string(), z.string(), count, count, count, count]));
const transactionSchema = z.array(z.tuple([z.string(), z.boolean(), z.boolean(), count]));
const listedSchema = z.array(
  z.object({
    queryId: z.string(),
    state: z.string(),
    query: z.string().default(""),
    session: z.object({ user: z.string(), source: z.string().nullish() }),
  }),
);

/** Shows a node's own `/v1/info`, of a coordinator or a worker: it asks for no user. */
export async function readInfo(base: string, http: TrinoHttp): Promise<NodeInfo> {
  const answer = await http.send(`${base}/v1/info`, { limitMs: READ_LIMIT_MS, bytesMax: INFO_BYTES_MAX });
  if (answer.status !== 200) throw refusalOf(answer, base);
  return parseInfo(answer.text, base);
}

export function engineAt(options: EngineOptions): Engine {
  const { base, user, clock } = options;
  const http = options.http ?? new TrinoHttp(clock);
  const headers = { "x-trino-user": user, "x-trino-source": OWN_SOURCE };
  const client = new StatementClient({ base, user, clock, http, source: OWN_SOURCE, limits: { queryMs: TRY_LIMIT_MS, retryForMs: 2_000 } });

  const read = (sql: string): Promise<QueryResult> => readAgain(clock, () => client.query(sql));

  const get = async (path: string, bytesMax: number): Promise<string> => {
    const answer = await http.send(`${base}${path}`, { headers, limitMs: READ_LIMIT_MS, bytesMax });
    if (answer.status !== 200) throw refusalOf(answer, base);
    return answer.text;
  };

  return {
    info: () => readInfo(base, http),

    async nodes() {
      const { rows } = await read("SELECT node_id, http_uri, node_version, coordinator, state FROM system.runtime.nodes");
      return parseRows(rows, identity, base).map(([nodeId, uri, version, isCoordinator, state]) => ({
        nodeId,
        uri,
        version,
        isCoordinator,
        state,
      }));
    },

    async queries() {
      const { queryId: own, rows } = await read('SELECT query_id, state, "user", source, query FROM system.runtime.queries');
      return parseRows(rows, querySchema, base)
        .map(([queryId, state, by, source, sql]) => ({ queryId, state, user: by, source, sql }))
        .filter(({ queryId }) => queryId !== own);
    },

    async unfinished(version) {
      const filter =
        Number.parseInt(version, 10) >= SEVERAL_STATES_SINCE ? `?${UNFINISHED.map((state) => `state=${state}`).join("&")}` : "";
      const listed = parseAs(await get(`/v1/query${filter}`, QUERIES_BYTES_MAX), listedSchema, base);
      return listed
        .filter(({ state }) => !ENDED.includes(state))
        .map(({ queryId, state, query, session }) => ({ queryId, state, user: session.user, source: session.source ?? null, sql: query }));
    },

    async tasks(queryId) {
      const only = queryId === undefined ? "" : ` WHERE query_id = ${literal(queryId)}`;
      const { rows } = await read(
        `SELECT node_id, task_id, stage_id, query_id, state, splits, running_splits, completed_splits, processed_input_rows FROM system.runtime.tasks${only}`,
      );
      return parseRows(rows, taskSchema, base).map(([nodeId, taskId, stageId, query, state, splits, running, completed, processed]) => ({
        nodeId,
        taskId,
        stageId,
        queryId: query,
        state,
        splits,
        runningSplits: running,
        completedSplits: completed,
        processedRows: processed,
      }));
    },

    async transactions() {
      const { rows } = await read(
        "SELECT transaction_id, auto_commit_context, read_only, idle_time_secs FROM system.runtime.transactions WHERE NOT auto_commit_context",
      );
      return parseRows(rows, transactionSchema, base).map(([transactionId, isAutoCommit, isReadOnly, idleSeconds]) => ({
        transactionId,
        isAutoCommit,
        isReadOnly,
        idleSeconds,
      }));
    },

    async gauges(names) {
      const query = names.map((name) => `name[]=${encodeURIComponent(name)}`).join("&");
      return parseGauges(await get(`/metrics?${query}`, GAUGES_BYTES_MAX), names);
    },

    read,
  };
}

/** Tries a read of the system again for as long as its failure may be that of a node that is dying. Throws `trino_read_failed`. */
async function readAgain(clock: Clock, attempt: () => Promise<QueryResult>): Promise<QueryResult> {
  const until = clock.monotonic() + TRIES_LIMIT_MS;
  for (let tries = 1; ; tries++) {
    const isLast = tries >= TRIES || clock.monotonic() >= until;
    try {
      const result = await attempt();
      if (result.error === undefined) return result;
      if (isLast || !mayPass(result.error)) throw failed(result.queryId, result.error);
    } catch (error) {
      if (isLast || !isRetryable(error)) throw error;
    }
    await clock.sleep(TRY_AGAIN_MS);
  }
}

/** What was asked for is right, so that only the one who asks can be wrong: whatever is no fault of its user's may pass. */
function mayPass({ type }: QueryError): boolean {
  return type !== "USER_ERROR";
}

function failed(queryId: string, error: QueryError): RelevoError {
  return new RelevoError("trino_read_failed", "The engine did not say how it is.", {
    class: mayPass(error) ? "retryable" : "terminal",
    found: `${error.name} (${error.type}): ${error.message}, ${queryId}`,
    ...(error.name === "PERMISSION_DENIED" ? { todo: "Allow the user of spec.trino.user to read the schema system.runtime." } : {}),
  });
}

function parseRows<T>(rows: readonly unknown[][], schema: z.ZodType<T>, where: string): T {
  const parsed = schema.safeParse(rows);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new RelevoError("instance_answer_invalid", `The system tables at ${where} are not those of Trino.`, {
    found: `${issue?.path.join(".")}: ${issue?.message}`,
  });
}

/** A text in SQL. */
function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
