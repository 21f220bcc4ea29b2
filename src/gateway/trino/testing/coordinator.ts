/**
 * A small coordinator for tests: it answers as a real one does (the shapes and the order of fields are recorded from one), with results that the statement asks for:
 * `rows N` N pages of one row, `big N` one page of N MB, `spool` a page of segments, `fail`, `start transaction`, `commit`; anything else one row.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { bootIdOf } from "../../../model/trino.ts";
import type { Member } from "../../../model/membership.ts";
import { startInstance, type TestInstance } from "../../testing/gateway.ts";

export interface TestCoordinator {
  readonly instance: TestInstance;
  /** New with every process; ends the ids of its queries. */
  id: string;
  isStarting: boolean;
  /** Statements that it took. */
  readonly statements: string[];
  /** Ids of transactions, as they came in with statements. */
  readonly transactions: (string | undefined)[];
  /** Paths that it was asked for, besides its health. */
  readonly paths: string[];
  /** The heads of the same requests. */
  readonly heads: IncomingMessage["headers"][];
  /** Queries that it knows. */
  readonly queries: Map<string, { readonly sql: string; pages: number }>;
  /** Called before each answer; true: the test answers itself. */
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean;
  member(given?: Partial<Member>): Member;
}

const TRANSACTION = "7cfd3dd4-8bb8-4a3c-9a1f-7d2bb4f4b2f1";
const COLUMNS = [{ name: "n", type: "bigint", typeSignature: { rawType: "bigint", arguments: [] } }];
const MB = 1024 * 1024;

export async function startCoordinator(name: string, id: string, options: { readonly gzip?: boolean } = {}): Promise<TestCoordinator> {
  let count = 0;
  const instance = await startInstance(name, (request, response, body) => {
    const path = request.url ?? "/";
    if (path === "/v1/info") return void response.writeHead(instance.healthy ? 200 : 503).end(JSON.stringify(infoOf(name, coordinator)));
    coordinator.paths.push(path);
    coordinator.heads.push(request.headers);
    if (coordinator.intercept(request, response)) return;
    if (request.method === "POST" && path === "/v1/statement") {
      const queryId = `20261201_044100_${String(++count).padStart(5, "0")}_${coordinator.id}`;
      coordinator.statements.push(body);
      coordinator.transactions.push(request.headers["x-trino-transaction-id"] as string | undefined);
      coordinator.queries.set(queryId, { sql: body, pages: Number(/^rows (\d+)/.exec(body)?.[1] ?? 1) });
      return answer(request, response, {
        ...headOf(request, queryId),
        nextUri: `${baseOf(request)}/v1/statement/queued/${queryId}/yb1c3/1`,
        stats: { state: "QUEUED" },
        warnings: [],
      });
    }
    if (path.startsWith("/v1/spooled/")) return void response.end("rows of a segment");
    const [, queryId, token] = /^\/v1\/statement\/(?:queued|executing)\/([^/]+)\/[^/]+\/(\d+)$/.exec(path) ?? [];
    const query = queryId === undefined ? undefined : coordinator.queries.get(queryId);
    if (queryId === undefined) return void response.end();
    if (query === undefined) return void response.writeHead(404, { "content-type": "text/plain" }).end("Query not found");
    if (request.method === "DELETE") return void response.writeHead(204).end();
    if (request.method === "HEAD") return void response.end();
    page(request, response, queryId, query, Number(token));
  });

  function page(
    request: IncomingMessage,
    response: ServerResponse,
    queryId: string,
    { sql, pages }: { readonly sql: string; readonly pages: number },
    token: number,
  ): void {
    const isLast = token >= pages;
    const head = {
      ...headOf(request, queryId),
      ...(isLast ? {} : { partialCancelUri: `${baseOf(request)}/v1/statement/executing/partialCancel/${queryId}/0/y1/${token}` }),
      ...(isLast ? {} : { nextUri: `${baseOf(request)}/v1/statement/executing/${queryId}/yc4d1/${token + 1}` }),
      columns: COLUMNS,
    };
    const tail = { stats: { state: isLast ? "FINISHED" : "RUNNING" }, warnings: [] };
    if (sql === "start transaction") response.setHeader("X-Trino-Started-Transaction-Id", TRANSACTION);
    if (sql === "commit") response.setHeader("X-Trino-Clear-Transaction-Id", "true");
    if (sql === "fail")
      return answer(request, response, {
        ...head,
        ...tail,
        error: { message: "it failed", errorCode: 1, errorName: "X", errorType: "USER_ERROR" },
      });
    if (sql === "spool") return answer(request, response, { ...head, data: segmentsOf(request), ...tail });
    const mb = Number(/^big (\d+)/.exec(sql)?.[1] ?? 0);
    if (mb > 0) return void big(response, head, tail, mb);
    answer(request, response, { ...head, data: [[token]], ...tail });
  }

  function answer(request: IncomingMessage, response: ServerResponse, page: object): void {
    const text = Buffer.from(JSON.stringify(page));
    const asked = request.headers["accept-encoding"] ?? "";
    const packed = options.gzip === true && asked.includes("gzip") ? gzipSync(text) : text;
    if (packed !== text) response.setHeader("content-encoding", "gzip");
    response.writeHead(200, { "content-type": "application/json", "content-length": packed.length }).end(packed);
  }

  const coordinator: TestCoordinator = {
    instance,
    id,
    isStarting: false,
    heads: [],
    statements: [],
    transactions: [],
    paths: [],
    queries: new Map(),
    intercept: () => false,
    member: (given = {}) => instance.member({ bootId: bootIdOf(name, coordinator.id), ...given }),
  };
  return coordinator;
}

function infoOf(nodeId: string, { id, isStarting }: TestCoordinator) {
  return { nodeId, state: "ACTIVE", environment: "test", coordinator: true, coordinatorId: id, starting: isStarting };
}

/** As Trino does with `http-server.process-forwarded=true`. */
function baseOf(request: IncomingMessage): string {
  const { headers } = request;
  const [host, port] = String(headers["x-forwarded-host"]).split(":");
  return `${String(headers["x-forwarded-proto"])}://${host}:${port ?? String(headers["x-forwarded-port"])}`;
}

function headOf(request: IncomingMessage, queryId: string) {
  return { id: queryId, infoUri: `${baseOf(request)}/ui/query.html?${queryId}` };
}

function segmentsOf(request: IncomingMessage) {
  const base = baseOf(request);
  return {
    encoding: "json",
    metadata: {},
    segments: [
      { type: "inline", data: "W1sxXV0=", metadata: { rowOffset: 0, rowsCount: 1 } },
      { type: "spooled", uri: `${base}/v1/spooled/download/s1`, ackUri: `${base}/v1/spooled/ack/s1`, metadata: { rowOffset: 1 } },
      { type: "spooled", uri: "http://storage:9000/v1/spooled/download/s2?X-Amz-Signature=1", ackUri: `${base}/v1/spooled/ack/s2` },
    ],
  };
}

/** As fast as it is taken. */
async function big(response: ServerResponse, head: object, tail: object, mb: number): Promise<void> {
  const row = `[${JSON.stringify("x".repeat(1018))}],`;
  const piece = Buffer.from(row.repeat(MB / row.length / 16));
  response.writeHead(200, { "content-type": "application/json" });
  response.write(`${JSON.stringify(head).slice(0, -1)},"data":[`);
  let wake = () => {};
  response.on("drain", () => wake());
  response.on("close", () => wake());
  for (let index = 0; index < mb * 16; index++) {
    if (response.destroyed) return;
    if (!response.write(piece))
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
  }
  response.end(`["end"]],${JSON.stringify(tail).slice(1)}`);
}
