/** The engine's port over the driver's own clients. Its reads are not counted among the queries of a run: they have another source. */
import { z } from "zod";
import type { Clock } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { bootIdOf } from "../../model/trino.ts";
import { parseAs } from "../../drivers/trino/answers.ts";
import { engineAt } from "../../drivers/trino/engine.ts";
import { refusalOf, TrinoHttp } from "../../drivers/trino/http.ts";
import { StatementClient } from "../../drivers/trino/statement-client.ts";
import type { GateEngine } from "./ports.ts";

const SOURCE = "relevo-gate";
const QUERY_LIMIT_MS = 10_000;
const QUERY_BYTES_MAX = 8 * 1024 * 1024;
const QUERY_ID = /^[\w-]{1,100}$/;

const taskRows = z.array(z.tuple([z.string(), z.string(), z.string(), z.string()]));
const properties = z.record(z.string(), z.string()).default({});
const queryInfo = z.object({
  state: z.string(),
  retryPolicy: z.string().nullish(),
  session: z.object({ systemProperties: properties, catalogProperties: z.record(z.string(), properties).default({}) }),
});

export interface TrinoEngineOptions {
  /** `http://host:port` of the coordinator. */
  readonly base: string;
  readonly user: string;
  readonly clock: Clock;
}

export function trinoEngine({ base, user, clock }: TrinoEngineOptions): GateEngine & { close(): Promise<void> } {
  const http = new TrinoHttp(clock);
  const engine = engineAt({ base, user, clock, http });
  return {
    async info() {
      const { nodeId, coordinatorId, version, environment, isCoordinator } = await engine.info();
      if (!isCoordinator || coordinatorId === null)
        throw new RelevoError("not_a_coordinator", `What answers at ${base} is no coordinator.`, {
          found: `node ${nodeId}`,
          todo: "name the coordinator's own address, not a worker's nor a gateway's",
        });
      return { bootId: bootIdOf(nodeId, coordinatorId), version, environment };
    },

    nodes: () => engine.nodes(),

    async tasks(queryIds) {
      if (queryIds.length === 0) return [];
      const ids = queryIds.map((id) => `'${assertQueryId(id)}'`).join(", ");
      const { rows } = await engine.read(`SELECT node_id, task_id, query_id, state FROM system.runtime.tasks WHERE query_id IN (${ids})`);
      const parsed = taskRows.safeParse(rows);
      if (!parsed.success) throw new RelevoError("instance_answer_invalid", `The table of tasks at ${base} is not that of Trino.`);
      return parsed.data.map(([nodeId, taskId, queryId, state]) => ({ nodeId, taskId, queryId, state }));
    },

    async query(queryId) {
      const answer = await http.send(`${base}/v1/query/${assertQueryId(queryId)}?pruned=true`, {
        headers: { "x-trino-user": user, "x-trino-source": SOURCE },
        limitMs: QUERY_LIMIT_MS,
        bytesMax: QUERY_BYTES_MAX,
      });
      // The coordinator knows a query only once its first page was asked for.
      if (answer.status === 404 || answer.status === 410)
        throw new RelevoError("query_unknown", `The coordinator at ${base} does not know this query.`, {
          class: "retryable",
          found: queryId,
        });
      if (answer.status !== 200) throw refusalOf(answer, base);
      const { state, retryPolicy, session } = parseAs(answer.text, queryInfo, base);
      const ofCatalogs = Object.entries(session.catalogProperties).flatMap(([catalog, values]) =>
        Object.entries(values).map(([name, value]) => [`${catalog}.${name}`, value] as const),
      );
      return { state, retryPolicy: retryPolicy ?? null, session: { ...session.systemProperties, ...Object.fromEntries(ofCatalogs) } };
    },

    async start(sql, session) {
      const client = new StatementClient({ base, user, clock, source: SOURCE, session, http });
      const statement = await client.start(sql);
      return {
        queryId: statement.queryId,
        async next() {
          const page = await statement.next();
          return page === undefined ? undefined : { rows: page.rows, error: page.error ?? null };
        },
        cancel: () => statement.cancel(),
      };
    },

    close: () => http.destroy(),
  };
}

function assertQueryId(queryId: string): string {
  if (QUERY_ID.test(queryId)) return queryId;
  throw new RelevoError("instance_answer_invalid", "The engine gave a query an id that is none.", { found: queryId });
}
