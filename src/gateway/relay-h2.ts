/** The front for HTTP/2 clients (cleartext, prior knowledge); instances are spoken to in HTTP/1.1. */
import type { IncomingHttpHeaders } from "node:http";
import { constants, createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { rejectionAnswer } from "./codes.ts";
import type { GatewayCore } from "./core.ts";
import { H2Exchange } from "./exchange-h2.ts";
import { flatToObject, readRequestHead } from "./headers.ts";
import { LIMITS } from "./limits.ts";
import { TrinoTie } from "./trino/tie.ts";

/** Accepts connections that began with HTTP/2's preface. */
export class H2Front {
  readonly server: Http2Server;
  readonly #core: GatewayCore;
  /** With how many streams are open on each. */
  readonly #sessions = new Map<ServerHttp2Session, number>();

  constructor(core: GatewayCore) {
    this.#core = core;
    this.server = createServer({
      settings: { maxConcurrentStreams: LIMITS.streamsPerConnection, maxHeaderListSize: LIMITS.requestHeadBytes },
    });
    this.server.on("session", (session) => {
      this.#sessions.set(session, 0);
      session.on("close", () => this.#sessions.delete(session));
      session.setTimeout(LIMITS.clientIdleMs, () => this.#idle(session));
    });
    this.server.on("stream", (stream, headers, _flags, raw) => this.#request(stream, headers, raw));
    this.server.on("sessionError", () => {
      core.faults.malformed += 1;
    });
  }

  accept(socket: Socket): void {
    this.server.emit("connection", socket);
  }

  #request(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, raw: readonly string[]): void {
    stream.on("error", () => undefined); // `close` follows and ends the exchange
    this.#countStream(stream);
    this.#begin(stream, headers, raw, false);
  }

  #begin(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, raw: readonly string[], waited: boolean): void {
    if (stream.destroyed || stream.closed) return;
    const pseudo = (name: string) => {
      const value = headers[name];
      return typeof value === "string" ? value : undefined;
    };
    const head = readRequestHead(raw, stream.session?.socket.remoteAddress ?? "", pseudo(":authority"));
    const route = this.#core.routeFor(head.host);
    const method = pseudo(":method") ?? "GET";
    const path = pseudo(":path");
    if (route === undefined || path === undefined || !path.startsWith("/") || method === "CONNECT") {
      const notReady = route === undefined && this.#core.knowsNothing;
      if (notReady && !waited && this.#core.lobby.wait(() => this.#begin(stream, headers, raw, true))) return;
      if (route === undefined) this.#core.faults.unrouted += 1;
      else this.#core.faults.malformed += 1;
      const answer = rejectionAnswer(notReady ? "not_ready" : route === undefined ? "no_route" : "bad_request");
      stream.respond({ ":status": answer.status, ...flatToObject(answer.headers) });
      stream.end(answer.body);
      return;
    }
    const trino = route.policy.trino === null ? null : new TrinoTie(this.#core, route, method, path, head);
    const exchange =
      trino === null
        ? new H2Exchange(this.#core, route, stream, method, path, head, null)
        : new H2Exchange(this.#core, trino.route, stream, method, trino.path, trino.head, trino);
    exchange.start(!stream.endAfterHeaders);
  }

  #countStream(stream: ServerHttp2Stream): void {
    const session = stream.session as ServerHttp2Session | undefined; // a server's stream has a server's session
    if (session === undefined) return;
    this.#sessions.set(session, (this.#sessions.get(session) ?? 0) + 1);
    stream.on("close", () => {
      const open = this.#sessions.get(session);
      if (open !== undefined) this.#sessions.set(session, open - 1);
    });
  }

  // Node counts streams that are open but quiet as idle too: only a connection without any is ended.
  #idle(session: ServerHttp2Session): void {
    if (this.#sessions.get(session) === 0) session.close();
  }

  get connections(): number {
    return this.#sessions.size;
  }

  /** GOAWAY: what is in flight ends normally, nothing new is taken; clients connect elsewhere. */
  goAway(): void {
    for (const session of this.#sessions.keys()) {
      if (session.closed || session.destroyed) continue;
      // First without a last stream, so that what crosses the message is still served; then for good.
      session.goaway(constants.NGHTTP2_NO_ERROR, 2 ** 31 - 1);
      this.#core.clock.after(LIMITS.goawayMs, () => {
        if (!session.closed && !session.destroyed) session.close();
      });
    }
  }

  destroyAll(): void {
    for (const session of this.#sessions.keys()) session.destroy();
  }
}
