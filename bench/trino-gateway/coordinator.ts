/**
 * A coordinator that answers what a real one answered (`test/trino/recorded`), at the cost of a few string operations, so that what is measured is what stands before
 * it: `PORT`. A statement `big N` has a result of N MB, in pages as large as Trino makes them; any other one takes a POST and three polls. Says `up` when it
 * serves.
 */
import { readFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";

const port = Number(process.argv[2]);
const COORDINATOR_ID = "bench";
const RECORDED = new URL("../../test/trino/recorded/select.json", import.meta.url);
const PIECE = Buffer.from(
  `${JSON.stringify([1, "a row of the bench, about as wide as a narrow one of a fact table", 12.5, "2026-12-01"])},`.repeat(700),
);
const MB = 1024 * 1024;
/** The engine aims at 16 MB at most; a proxy that holds pages whole may refuse larger ones. */
const PAGE_MB = 8;

const pages = (JSON.parse(readFileSync(RECORDED, "utf8")) as readonly { readonly text: string }[]).map(({ text }) => text);
const recordedId = /"id":"([^"]+)"/.exec(pages[0] ?? "")?.[1] ?? "";
/** The first, the one after it, one with rows, the last. */
const chosen = [pages[0], pages[2], pages.find((page) => page.includes('"data":')), pages.at(-1)].map((page) => page ?? "");

let queries = 0;
const big = new Map<string, number>();

createServer((socket) => {
  socket.setNoDelay(true);
  socket.on("error", () => undefined);
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    for (;;) {
      const head = text.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(0, head))?.[1] ?? 0);
      if (text.length < head + 4 + length) return;
      const request = text.slice(0, head);
      const body = text.slice(head + 4, head + 4 + length);
      text = text.slice(head + 4 + length);
      answer(socket, request, body);
    }
  });
}).listen(port, "127.0.0.1", () => console.log("up"));

function answer(socket: Socket, request: string, body: string): void {
  if (request.startsWith("POST /v1/statement")) {
    const id = `20261201_044100_${String(++queries).padStart(5, "0")}_${COORDINATOR_ID}`;
    if (body.startsWith("big ")) big.set(id, Number(body.slice(4)));
    return page(socket, request, id, 0);
  }
  const [, id, at] = /^GET \/v1\/statement\/\w+\/([^/]+)\/[^/]+\/(\d+) /.exec(request) ?? [];
  if (id === undefined) {
    // Whatever a gateway asks before it sends statements.
    const info = `{"nodeId":"c","state":"ACTIVE","nodeVersion":{"version":"483"},"environment":"test","coordinator":true,"coordinatorId":"${COORDINATOR_ID}","starting":false,"uptime":"5.00m"}`;
    return void socket.write(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${info.length}\r\n\r\n${info}`);
  }
  const mb = big.get(id);
  if (mb === undefined) return page(socket, request, id, Number(at));
  if (mb <= PAGE_MB) big.delete(id);
  else big.set(id, mb - PAGE_MB);
  void bigPage(socket, request, { id, mb: Math.min(mb, PAGE_MB), next: mb <= PAGE_MB ? undefined : Number(at) + 1 });
}

function page(socket: Socket, request: string, id: string, at: number): void {
  const base = baseOf(request);
  const next = at + 1 < chosen.length ? `"nextUri":"${base}/v1/statement/executing/${id}/yb1c3/${at + 1}",` : "";
  const text = (chosen[at] ?? "")
    .replace(/"nextUri":"[^"]*",/, () => next)
    .replaceAll(recordedId, id)
    .replaceAll("http://coordinator", base);
  socket.write(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
}

interface BigPage {
  readonly id: string;
  readonly mb: number;
  /** The number of the next one. */
  readonly next: number | undefined;
}

/** As fast as it is taken. */
async function bigPage(socket: Socket, request: string, { id, mb, next }: BigPage): Promise<void> {
  const count = Math.round((mb * MB) / PIECE.length);
  const base = baseOf(request);
  const nextUri = next === undefined ? "" : `"nextUri":"${base}/v1/statement/executing/${id}/yb1c3/${next}",`;
  const head = `{"id":"${id}","infoUri":"${base}/ui/query.html?${id}",${nextUri}"columns":[{"name":"a","type":"bigint"}],"data":[`;
  const tail = `[]],"stats":{"state":"RUNNING","queued":false},"warnings":[]}`;
  socket.write(
    `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${head.length + count * PIECE.length + tail.length}\r\n\r\n${head}`,
  );
  for (let index = 0; index < count && !socket.destroyed; index++)
    if (!socket.write(PIECE)) await new Promise<void>((resolve) => socket.once("drain", resolve));
  socket.write(tail);
}

/** As Trino does behind a proxy. */
function baseOf(request: string): string {
  const host = /\r\nx-forwarded-host: *([^\r]+)/i.exec(request)?.[1];
  const port = /\r\nx-forwarded-port: *(\d+)/i.exec(request)?.[1];
  if (host === undefined) return `http://${/\r\nhost: *([^\r]+)/i.exec(request)?.[1]}`;
  return `http://${host.includes(":") || port === undefined ? host : `${host}:${port}`}`;
}
