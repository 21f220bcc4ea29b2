/**
 * A light worker for storms: plain HTTP, no protocol, no dependency. `/work` answers after a moment, `/stream?ms=…` sends a line every 200 ms and says at its
 * end that it is whole; what is under way when the process is killed is lost.
 */
import { createServer } from "node:http";
import { hostname } from "node:os";

const WORK_MS = 10;
const LINE_MS = 200;
const LONGEST_MS = 60_000;
const instance = process.env.RELEVO_INSTANCE ?? hostname();

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://worker");
  const id = searchParams.get("id") ?? "";
  if (pathname === "/healthz") return response.end("ok\n");
  if (pathname === "/work") return setTimeout(() => response.end(`${JSON.stringify({ id, instance })}\n`), WORK_MS);
  if (pathname === "/stream") return stream(response, id, Math.min(LONGEST_MS, Number(searchParams.get("ms") ?? 1_000)));
  response.writeHead(404).end();
});

function stream(response, id, ms) {
  const endsAt = performance.now() + ms;
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  const timer = setInterval(() => {
    if (performance.now() < endsAt) return response.write(`${JSON.stringify({ id })}\n`);
    clearInterval(timer);
    response.end(`${JSON.stringify({ id, end: true })}\n`);
  }, LINE_MS);
  response.on("close", () => clearInterval(timer));
}

server.keepAliveTimeout = 60_000;
server.listen(Number(process.env.PORT ?? 8080), process.env.HOST ?? process.env.POD_IP ?? "0.0.0.0");
process.on("SIGTERM", () => {
  server.close(() => process.exit(0));
  server.closeIdleConnections();
});
