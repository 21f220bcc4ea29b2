/** HTTP/1.1 clients. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { RejectionCode } from "./codes.ts";
import { REJECTIONS } from "./codes.ts";
import type { GatewayCore } from "./core.ts";
import { Limit } from "./deadlines.ts";
import { Exchange } from "./exchange.ts";
import { readRequestHead, type RequestHead } from "./headers.ts";
import { LIMITS } from "./limits.ts";
import type { MemberState, RouteState } from "./membership.ts";
import { HEADERS } from "../model/membership.ts";

const CONNECTION = Symbol("connection");

interface Connection {
  /** The newest; earlier ones that are not over (pipelining) stand in `earlier`. */
  current: H1Exchange | null;
  earlier: Set<H1Exchange> | null;
  requests: number;
  /** Of the sweep: how many requests it saw last time, and since when (monotonic ms). */
  seen: number;
  idleSince: number;
}

type ClientSocket = Socket & { [CONNECTION]?: Connection };

export class H1Exchange extends Exchange {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;

  constructor(core: GatewayCore, route: RouteState, request: IncomingMessage, response: ServerResponse, path: string, head: RequestHead) {
    super(core, route, request.method ?? "GET", path, head);
    this.#request = request;
    this.#response = response;
  }

  start(): void {
    this.accept();
    const { contentLength, chunked } = this.head;
    if (!chunked && contentLength <= 0) this.begin();
    else if (!chunked && contentLength <= LIMITS.heldBodyBytes) this.#holdBody();
    else {
      this.body = "stream";
      this.begin();
    }
  }

  #holdBody(): void {
    if (this.head.expectsContinue) this.#response.writeContinue();
    const chunks: Buffer[] = [];
    const limit = new Limit(() => this.#bodyLate());
    const limits = this.core.deadlines(LIMITS.bodyIdleMs);
    limits.start(limit);
    this.#request.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      limits.start(limit);
    });
    this.#request.on("end", () => {
      limit.stop();
      if (this.ended) return;
      const [only] = chunks;
      this.body = chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks);
      this.begin();
    });
    // The connection's `close` ends the exchange; here it only must not be unhandled.
    this.#request.on("error", () => limit.stop());
  }

  #bodyLate(): void {
    if (this.ended) return;
    this.#response.shouldKeepAlive = false;
    this.reject("body_timeout");
  }

  protected override async *streamBody(): AsyncGenerator<Buffer> {
    const limit = new Limit(() => this.#request.destroy(new Error("the request's body did not come in time")));
    const limits = this.core.deadlines(LIMITS.bodyIdleMs);
    try {
      limits.start(limit);
      for await (const chunk of this.#request.iterator({ destroyOnReturn: false })) {
        limit.stop();
        yield chunk as Buffer;
        limits.start(limit);
      }
    } finally {
      limit.stop();
    }
  }

  protected override bodyIsOver(): boolean {
    return this.#request.complete;
  }

  protected override sendContinue(): void {
    this.#response.writeContinue();
  }

  protected override sendInformation(status: number, headers: string[]): void {
    if (status === 103) this.#response.writeEarlyHints(toObject(headers));
    else if (status === 102) this.#response.writeProcessing();
  }

  protected override sendHead(status: number, headers: string[], message: string): void {
    this.#writeHead(status, headers, message);
    this.#response.flushHeaders();
  }

  protected override sendWhole(status: number, headers: string[], message: string, body: Buffer | null): void {
    this.#writeHead(status, headers, message);
    // As one string with the head it goes out in one write; latin1 keeps every byte.
    if (body === null) this.#response.end();
    else this.#response.end(body.toString("latin1"), "latin1");
    this.#endUnreadBody();
  }

  #writeHead(status: number, headers: string[], message: string): void {
    const response = this.#response;
    response.sendDate = false;
    if (this.core.stopping) response.shouldKeepAlive = false;
    if (message === "") response.writeHead(status, headers);
    else response.writeHead(status, message, headers);
  }

  protected override sendChunk(chunk: Buffer): boolean {
    if (this.#response.write(chunk)) return true;
    this.#response.once("drain", () => this.clientDrained());
    return false;
  }

  protected override sendEnd(trailers: IncomingHttpHeaders): void {
    if (this.#response.chunkedEncoding) for (const name in trailers) this.#response.addTrailers({ [name]: String(trailers[name]) });
    this.#response.end();
    this.#endUnreadBody();
  }

  /** A client that goes on sending after its answer is given the time of a body, and no more. */
  #endUnreadBody(): void {
    const request = this.#request;
    if (request.complete) return;
    const limit = new Limit(() => {
      if (!request.complete) request.socket.destroy();
    });
    this.core.deadlines(LIMITS.bodyIdleMs).start(limit);
    request.once("end", () => limit.stop());
    request.resume();
  }

  protected override breakOff(): void {
    this.#response.destroy();
  }

  protected override takeUpgrade(_member: MemberState, _status: number, _headers: IncomingHttpHeaders, socket: Duplex): void {
    socket.destroy();
    this.endUpgraded("cut", "unexpected_upgrade");
  }

  protected override breakUpgraded(): void {}
}

export function toObject(flat: readonly string[]): Record<string, string | string[]> {
  const object: Record<string, string | string[]> = {};
  for (let index = 0; index + 1 < flat.length; index += 2) {
    const name = flat[index] as string;
    const value = flat[index + 1] as string;
    const known = object[name];
    object[name] = known === undefined ? value : Array.isArray(known) ? [...known, value] : [known, value];
  }
  return object;
}

/** The path and query of a request target; absolute forms lose their origin. Undefined when it cannot be passed on. */
export function pathOf(target: string): string | undefined {
  if (target.startsWith("/")) return target;
  const match = /^https?:\/\/[^/?#]*([/?].*)?$/i.exec(target);
  if (match === null) return undefined;
  const rest = match[1] ?? "/";
  return rest.startsWith("?") ? `/${rest}` : rest;
}

/** Accepts connections that were found to speak HTTP/1.1. */
export class H1Front {
  readonly server: Server;
  readonly #core: GatewayCore;
  readonly #sockets = new Set<ClientSocket>();

  constructor(core: GatewayCore) {
    this.#core = core;
    this.server = createServer({
      keepAliveTimeout: 0,
      requestTimeout: 0,
      headersTimeout: LIMITS.requestHeadMs,
      connectionsCheckingInterval: LIMITS.requestHeadSweepMs,
      maxHeaderSize: LIMITS.requestHeadBytes,
      noDelay: true,
      optimizeEmptyRequests: true,
    });
    this.server.on("request", (request, response) => this.#request(request, response));
    this.server.on("checkContinue", (request, response) => this.#request(request, response));
    this.server.on("clientError", (error: NodeJS.ErrnoException, socket) => this.#clientError(error, socket as ClientSocket));
  }

  accept(socket: Socket): void {
    const connection: Connection = { current: null, earlier: null, requests: 0, seen: 0, idleSince: this.#core.clock.monotonic() };
    (socket as ClientSocket)[CONNECTION] = connection;
    this.#sockets.add(socket);
    socket.on("close", () => {
      this.#sockets.delete(socket);
      connection.current?.clientGone();
      for (const exchange of connection.earlier ?? []) exchange.clientGone();
    });
    this.server.emit("connection", socket);
  }

  #request(request: IncomingMessage, response: ServerResponse): void {
    const socket = request.socket as ClientSocket;
    const connection = socket[CONNECTION];
    const head = readRequestHead(request.rawHeaders, socket.remoteAddress ?? "");
    const route = this.#core.routeFor(head.host);
    const path = pathOf(request.url ?? "/");
    if (route === undefined || path === undefined || connection === undefined) {
      if (route === undefined) this.#core.faults.unrouted += 1;
      else this.#core.faults.malformed += 1;
      return refuse(response, route === undefined ? "no_route" : "bad_request");
    }
    const exchange = new H1Exchange(this.#core, route, request, response, path, head);
    if (connection.current !== null && !connection.current.ended) this.#keepEarlier(connection, connection.current);
    connection.current = exchange;
    connection.requests += 1;
    exchange.start();
  }

  #keepEarlier(connection: Connection, exchange: H1Exchange): void {
    connection.earlier ??= new Set();
    for (const earlier of connection.earlier) if (earlier.ended) connection.earlier.delete(earlier);
    connection.earlier.add(exchange);
  }

  #clientError(error: NodeJS.ErrnoException, socket: ClientSocket): void {
    this.#core.faults.malformed += 1;
    if (error.code === "ECONNRESET" || !socket.writable || busy(socket)) {
      socket.destroy();
      return;
    }
    const status = STATUS_OF_ERROR[error.code ?? ""] ?? "400 Bad Request";
    socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n${HEADERS.rejected}: malformed\r\n\r\n`, () =>
      socket.destroy(),
    );
  }

  /** Ends connections that were idle for longer than `idleMs`. */
  sweep(idleMs: number): void {
    const now = this.#core.clock.monotonic();
    for (const socket of this.#sockets) {
      const connection = socket[CONNECTION];
      if (connection === undefined) continue;
      if (connection.seen !== connection.requests || busy(socket)) {
        connection.seen = connection.requests;
        connection.idleSince = now;
      } else if (now - connection.idleSince >= idleMs) {
        socket.destroy();
      }
    }
  }

  get connections(): number {
    return this.#sockets.size;
  }

  destroyAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

const STATUS_OF_ERROR: Readonly<Record<string, string | undefined>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "413 Payload Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
};

function busy(socket: ClientSocket): boolean {
  const connection = socket[CONNECTION];
  if (connection === undefined) return false;
  if (connection.current !== null && !connection.current.ended) return true;
  for (const exchange of connection.earlier ?? []) if (!exchange.ended) return true;
  return false;
}

function refuse(response: ServerResponse, code: RejectionCode): void {
  const { status, sentence } = REJECTIONS[code];
  const body = `${JSON.stringify({ error: { code, message: sentence } })}\n`;
  response.writeHead(status, [
    HEADERS.rejected,
    code,
    "content-type",
    "application/json",
    "content-length",
    String(Buffer.byteLength(body)),
  ]);
  response.end(body);
}
