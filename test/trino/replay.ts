/**
 * A server that answers as a real Trino did once (recorded/*.json, made by record.ts). An exchange is found by its method and its path; of several that fit, the
 * next one each time, and the last one from then on. What was not recorded is answered 404, as Trino does.
 */
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

/** One request and its answer. */
export interface Exchange {
  readonly method: string;
  /** `http://coordinator/v1/info`. */
  readonly url: string;
  /** A statement, or a state. */
  readonly body?: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

export type Story =
  | "info"
  | "gauges"
  | "select"
  | "user-error"
  | "transaction"
  | "session"
  | "nodes"
  | "probe"
  | "running"
  | "worker-states"
  | "restarted-coordinator";

export function recorded(story: Story): readonly Exchange[] {
  return JSON.parse(readFileSync(join(import.meta.dirname, "recorded", `${story}.json`), "utf8")) as Exchange[];
}

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Undefined: as it was recorded. */
export type Instead = (request: Received, response: ServerResponse) => boolean;

export interface Replay {
  readonly base: string;
  readonly host: string;
  readonly port: number;
  readonly received: readonly Received[];
  stop(): Promise<void>;
}

/** `node`: whose answers; `coordinator`, `worker-1`. `instead` answers what shall be otherwise, and says whether it did. */
export async function replay(
  exchanges: readonly Exchange[],
  options: { readonly node?: string; readonly instead?: Instead } = {},
): Promise<Replay> {
  const { node = "coordinator", instead } = options;
  const prefix = `http://${node}`;
  const mine = exchanges.filter(({ url }) => url.startsWith(prefix));
  const served = new Map<string, number>();
  const received: Received[] = [];
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const base = `http://127.0.0.1:${port}`;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const part of request.setEncoding("utf8")) body += part;
    const { method = "GET", url: path = "/" } = request;
    const asked: Received = { method, path, headers: request.headers as Record<string, string>, body };
    received.push(asked);
    if (instead?.(asked, response)) return;
    const fitting = mine.filter((each) => each.method === method && pathOf(each, prefix) === path && (each.body ?? "") === body);
    const key = `${method} ${path} ${body}`;
    const index = Math.min(served.get(key) ?? 0, fitting.length - 1);
    served.set(key, index + 1);
    const found = fitting[index];
    if (found === undefined) return void response.writeHead(404).end("not recorded");
    response.writeHead(found.status, found.headers).end(found.text.replaceAll(prefix, base));
  }

  return { base, host: "127.0.0.1", port, received, stop: () => stop(server) };
}

/** One whole answer to a statement, of nobody's query. */
export function finished(rows: readonly unknown[][], more: object = {}): string {
  return JSON.stringify({ id: "20261201_000000_00000_xxxxx", infoUri: "", data: rows, stats: { state: "FINISHED" }, ...more });
}

function pathOf({ url }: Exchange, prefix: string): string {
  return url.slice(prefix.length);
}

function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
