/** The front for HTTP/1.1 clients: connections, malformed and slow ones, and those that ask for another protocol. */
import { createServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { HEADERS } from "../model/membership.ts";
import { rejectionAnswer } from "./codes.ts";
import type { GatewayCore } from "./core.ts";
import { H1Exchange } from "./exchange-h1.ts";
import { readRequestHead, type RequestHead } from "./headers.ts";
import { LIMITS } from "./limits.ts";
import type { RouteState } from "./membership.ts";
import { TrinoTie } from "./trino/tie.ts";
import { UpgradeExchange } from "./upgrade.ts";

const CONNECTION = Symbol("connection");

interface Connection {
  /** The client's; asking the socket each time costs. */
  readonly address: string;
  /** The newest; earlier ones that are not over (pipelining) stand in `earlier`. */
  current: H1Exchange | null;
  earlier: Set<H1Exchange> | null;
  requests: number;
  /** Of the sweep: what it saw last time, and since when (monotonic ms). */
  seen: number;
  idleSince: number;
}

type ClientSocket = Socket & { [CONNECTION]?: Connection };

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

  constructor(core: GatewayCore, limits: { readonly requestHeadMs: number; readonly requestHeadSweepMs: number } = LIMITS) {
    this.#core = core;
    this.server = createServer({
      keepAliveTimeout: 0,
      requestTimeout: 0,
      headersTimeout: limits.requestHeadMs,
      connectionsCheckingInterval: limits.requestHeadSweepMs,
      maxHeaderSize: LIMITS.requestHeadBytes,
      noDelay: true,
      optimizeEmptyRequests: true,
      // Clients offer to go on in HTTP/2 (h2c) with ordinary requests; those are answered as they are.
      shouldUpgradeCallback: (request) => !/^h2c/i.test(request.headers.upgrade ?? ""),
    });
    this.server.on("request", (request, response) => this.#request(request, response));
    this.server.on("checkContinue", (request, response) => this.#request(request, response));
    this.server.on("upgrade", (request, socket, first) => this.#upgrade(request, socket, first));
    // It never listens itself; without this it would not look for heads that take too long.
    this.server.emit("listening");
    this.server.on("clientError", (error: NodeJS.ErrnoException, socket) => this.#clientError(error, socket as ClientSocket));
  }

  accept(socket: Socket): void {
    const connection: Connection = {
      address: socket.remoteAddress ?? "",
      current: null,
      earlier: null,
      requests: 0,
      seen: 0,
      idleSince: this.#core.clock.monotonic(),
    };
    (socket as ClientSocket)[CONNECTION] = connection;
    this.#sockets.add(socket);
    socket.on("close", () => {
      this.#sockets.delete(socket);
      connection.current?.clientGone();
      for (const exchange of connection.earlier ?? []) exchange.clientGone();
    });
    this.server.emit("connection", socket);
  }

  #request(request: IncomingMessage, response: ServerResponse, waited = false): void {
    const connection = (request.socket as ClientSocket)[CONNECTION];
    const found = connection === undefined ? "bad_request" : this.#read(request, connection.address);
    if (typeof found === "string" || connection === undefined) {
      const again = () => this.#request(request, response, true);
      return this.#turnAway(typeof found === "string" ? found : "bad_request", request.socket, response, waited, again);
    }
    const { route, path, head } = found;
    const trino = route.policy.trino === null ? null : new TrinoTie(this.#core, route, request.method ?? "GET", path, head);
    this.#begin(
      connection,
      trino === null
        ? new H1Exchange(this.#core, route, request, response, path, head)
        : new H1Exchange(this.#core, trino.route, request, response, trino.path, trino.head, undefined, trino),
    );
  }

  #upgrade(request: IncomingMessage, socket: Duplex, first: Buffer): void {
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket as Socket);
    response.on("finish", () => socket.end());
    this.#beginUpgrade(request, response, socket, first, false);
  }

  #beginUpgrade(request: IncomingMessage, response: ServerResponse, socket: Duplex, first: Buffer, waited: boolean): void {
    const connection = (socket as ClientSocket)[CONNECTION];
    const read = connection === undefined ? "bad_request" : this.#read(request, connection.address);
    // Trino speaks nothing but HTTP.
    const found = typeof read === "object" && read.route.policy.trino !== null ? "bad_request" : read;
    if (typeof found === "string" || connection === undefined) {
      const again = () => this.#beginUpgrade(request, response, socket, first, true);
      return this.#turnAway(typeof found === "string" ? found : "bad_request", socket, response, waited, again);
    }
    this.#begin(connection, new UpgradeExchange(this.#core, found.route, request, response, found.path, found.head, socket, first));
  }

  #read(request: IncomingMessage, address: string): { route: RouteState; path: string; head: RequestHead } | "no_route" | "bad_request" {
    const head = readRequestHead(request.rawHeaders, address);
    const route = this.#core.routeFor(head.host);
    if (route === undefined) return "no_route";
    const path = pathOf(request.url ?? "/");
    return path === undefined || head.transfersOtherwise || head.namesTwoHosts ? "bad_request" : { route, path, head };
  }

  #begin(connection: Connection, exchange: H1Exchange): void {
    if (connection.current !== null && !connection.current.ended) this.#keepEarlier(connection, connection.current);
    connection.current = exchange;
    connection.requests += 1;
    exchange.start();
  }

  #turnAway(code: "no_route" | "bad_request", socket: Duplex, response: ServerResponse, waited: boolean, again: () => void): void {
    if (socket.destroyed) return;
    const notReady = code === "no_route" && this.#core.knowsNothing;
    if (notReady && !waited && this.#core.lobby.wait(again)) return;
    if (code === "no_route") this.#core.faults.unrouted += 1;
    else this.#core.faults.malformed += 1;
    const { status, headers, body } = rejectionAnswer(notReady ? "not_ready" : code);
    response.writeHead(status, headers).end(body);
  }

  #keepEarlier(connection: Connection, exchange: H1Exchange): void {
    connection.earlier ??= new Set();
    for (const earlier of connection.earlier) if (earlier.ended) connection.earlier.delete(earlier);
    connection.earlier.add(exchange);
  }

  #clientError(error: NodeJS.ErrnoException, socket: ClientSocket): void {
    this.#core.faults.malformed += 1;
    if (error.code === "ECONNRESET" || !socket.writable || (busy(socket) && !isBodyBroken(socket))) {
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
      // Whoever still takes what it was sent last is not idle, as long as it takes it.
      const { writableLength } = socket;
      const seen = connection.requests * 2 ** 24 + writableLength;
      if (connection.seen !== seen || busy(socket)) {
        connection.seen = seen;
        connection.idleSince = now;
      } else if (now - connection.idleSince >= (writableLength > 0 ? LIMITS.slowReaderMs : idleMs)) {
        socket.destroy();
      }
    }
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /** Ends upgraded connections in order, as far as they can be. */
  closeUpgraded(): void {
    for (const socket of this.#sockets) {
      const exchange = socket[CONNECTION]?.current;
      if (exchange instanceof UpgradeExchange) exchange.closeForStop();
    }
  }

  destroyAll(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.server.close();
  }
}

const STATUS_OF_ERROR: Readonly<Record<string, string | undefined>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "413 Payload Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
};

/**
 * What cannot be read is the body of its only request, and that has no answer yet: this one can be it. Behind an answer that has begun, or a request that is
 * whole, it would be read as something else.
 */
function isBodyBroken(socket: ClientSocket): boolean {
  const connection = socket[CONNECTION];
  for (const exchange of connection?.earlier ?? []) if (!exchange.ended) return false;
  return connection?.current?.isUnanswered === true && connection.current.isComing;
}

function busy(socket: ClientSocket): boolean {
  const connection = socket[CONNECTION];
  if (connection === undefined) return false;
  if (connection.current !== null && !connection.current.ended) return true;
  for (const exchange of connection.earlier ?? []) if (!exchange.ended) return true;
  return false;
}
