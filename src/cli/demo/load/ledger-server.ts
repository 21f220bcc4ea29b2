/**
 * The ledger over HTTP, on loopback:
 *
 *   POST /append  {id, kind, execution, once} → 200 after fsync
 *   POST /check   {ids: [...]} → {missing: [...]}
 *   GET /ids/ID   → 200 or 404
 *   GET /counts   → LedgerCounts
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describeError, RelevoError } from "../../../kernel/errors.ts";
import { type Ledger, parseEntry } from "./ledger.ts";

export const MAX_BODY_BYTES = 1024 * 1024;
/** Far longer than any pause of a caller, so that no write meets a closing connection. */
const KEEP_ALIVE_MS = 600_000;

export interface LedgerServer {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  close(): Promise<void>;
}

export async function serveLedger(ledger: Ledger, port = 0): Promise<LedgerServer> {
  const server = createServer(
    { keepAliveTimeout: KEEP_ALIVE_MS, noDelay: true },
    (request, response) => void answer(ledger, request, response),
  );
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => closeServer(server) };
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

async function answer(ledger: Ledger, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const { status, body } = await dispatch(ledger, request);
    send(response, status, body);
  } catch (error) {
    const status = error instanceof RelevoError && error.code.endsWith("_invalid") ? 400 : 507;
    send(response, status, { error: { code: error instanceof RelevoError ? error.code : "failed", message: describeError(error) } });
  }
}

async function dispatch(ledger: Ledger, request: IncomingMessage): Promise<{ readonly status: number; readonly body: unknown }> {
  const url = request.url ?? "/";
  switch (`${request.method} ${url.startsWith("/ids/") ? "/ids/" : url}`) {
    case "POST /append": {
      await ledger.append(parseEntry(await readJson(request)));
      return { status: 200, body: { written: true } };
    }
    case "POST /check": {
      const ids = parseIds(await readJson(request));
      return { status: 200, body: { missing: ids.filter((id) => !ledger.has(id)) } };
    }
    case "GET /ids/": {
      const id = decodeURIComponent(url.slice("/ids/".length));
      return { status: ledger.has(id) ? 200 : 404, body: { id } };
    }
    case "GET /counts":
      return { status: 200, body: ledger.counts() };
    default:
      return { status: 404, body: { error: { code: "not_found", message: "The ledger serves /append, /check, /ids/ID and /counts." } } };
  }
}

function parseIds(value: unknown): readonly string[] {
  if (
    typeof value === "object" &&
    value !== null &&
    "ids" in value &&
    Array.isArray(value.ids) &&
    value.ids.every((id) => typeof id === "string")
  )
    return value.ids;
  throw new RelevoError("ledger_ids_invalid", "A check needs `ids`, a list of texts.");
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_BODY_BYTES)
      throw new RelevoError("ledger_body_invalid", "The body is too large.", { allowed: `${MAX_BODY_BYTES} bytes` });
    chunks.push(chunk as Buffer);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch (cause) {
    throw new RelevoError("ledger_body_invalid", "The body is not JSON.", { cause });
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  if (response.destroyed) return;
  const text = JSON.stringify(body);
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  response.end(text);
}
