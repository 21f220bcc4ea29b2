/**
 * Coordinators that answer as a recorded one did, in a process of their own: a hundred of them on ports of loopback. Told to, they ignore the filter of their
 * metrics, as a proxy before them might. Speaks with its parent by messages.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { finished, recorded } from "../../test/trino/replay.ts";

const CLUSTERS = 100;
const ALL_METRICS_BYTES = 870_000;

export interface Coordinators {
  readonly ports: readonly number[];
}
/** To the process. */
export interface Order {
  readonly filters: boolean;
}

const answers = new Map(
  [...recorded("info"), ...recorded("gauges")].filter(({ status }) => status === 200).map((each) => [each.url, each]),
);
const all = "# TYPE some_gauge gauge\nsome_gauge 1.0\n".repeat(Math.ceil(ALL_METRICS_BYTES / 39));
let filters = true;

function serve(request: IncomingMessage, response: ServerResponse): void {
  const path = request.url ?? "/";
  if (path.startsWith("/metrics") && !filters) return void response.end(all);
  if (path.startsWith("/v1/query")) return void response.end("[]");
  if (path === "/v1/statement") return void request.resume().on("end", () => response.end(finished([])));
  const answer = answers.get(`http://coordinator${path}`);
  response.writeHead(answer?.status ?? 404, answer?.headers).end(answer?.text);
}

const servers = Array.from({ length: CLUSTERS }, () => createServer(serve).listen(0, "127.0.0.1"));
await Promise.all(servers.map((server) => new Promise((resolve) => server.once("listening", resolve))));
process.on("message", (order: Order) => {
  ({ filters } = order);
});
process.on("disconnect", () => process.exit());
process.send?.({ ports: servers.map((server) => (server.address() as AddressInfo).port) } satisfies Coordinators);
