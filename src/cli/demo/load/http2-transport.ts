/**
 * HTTP/2 over one connection at a time. After a GOAWAY new requests go over a new connection while the old one's streams finish. A stream refused with
 * REFUSED_STREAM was provably not processed (RFC 9113 §8.7): it is the client's to repeat, and is no event of its own.
 */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants, type IncomingHttpHeaders } from "node:http2";
import type { Clock } from "../../../kernel/clock.ts";
import type { Reply, ReplyHeaders } from "./outcome.ts";
import { codeOf, type Exchange, MAX_ANSWER_BYTES, type Transport } from "./transport.ts";

/** A server that refuses longer than this refuses for good. */
export const MAX_REFUSALS = 20;

type Attempt = Reply | "refused";

export class Http2Transport implements Transport {
  readonly #origin: string;
  readonly #host: string | undefined;
  readonly #clock: Clock;
  #session: ClientHttp2Session | null = null;
  readonly #leaving = new Set<ClientHttp2Session>();

  constructor(options: { readonly origin: string; readonly host?: string | undefined; readonly clock: Clock }) {
    this.#origin = options.origin;
    this.#host = options.host;
    this.#clock = options.clock;
  }

  async send(exchange: Exchange): Promise<Reply> {
    const endsAt = this.#clock.monotonic() + exchange.limitMs;
    for (let refusals = 0; refusals <= MAX_REFUSALS; refusals++) {
      const attempt = await this.#attempt(exchange, endsAt - this.#clock.monotonic());
      if (attempt !== "refused") return attempt;
    }
    return { kind: "broken", status: null, headers: {}, code: "REFUSED_STREAM" };
  }

  close(): void {
    this.#session?.destroy();
    for (const session of this.#leaving) session.destroy();
  }

  #attempt(exchange: Exchange, limitMs: number): Promise<Attempt> {
    let stream: ClientHttp2Stream;
    const session = this.#usableSession();
    try {
      stream = session.request(this.#headersFor(exchange), { endStream: exchange.body === null });
    } catch {
      this.#leave(session); // it closed between two events: nothing was sent
      return Promise.resolve("refused");
    }
    if (exchange.body !== null) stream.end(exchange.body);
    return this.#settle(stream, Math.max(0, limitMs));
  }

  #settle(stream: ClientHttp2Stream, limitMs: number): Promise<Attempt> {
    return new Promise((resolve) => {
      let head: { status: number | null; headers: ReplyHeaders } = { status: null, headers: {} };
      let ended = false;
      let failure: unknown;
      let bytes = 0;
      const chunks: Buffer[] = [];
      const timer = this.#clock.after(limitMs, () => {
        resolve({ kind: "timeout", ...head });
        stream.close(constants.NGHTTP2_CANCEL);
      });
      stream.on("response", (headers) => {
        head = { status: Number(headers[":status"]), headers: headersOf(headers) };
      });
      stream.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes <= MAX_ANSWER_BYTES) chunks.push(chunk);
        else stream.close(constants.NGHTTP2_CANCEL);
      });
      stream.on("end", () => {
        ended = true;
      });
      stream.on("error", (error) => {
        failure = error;
      });
      stream.on("close", () => {
        timer.cancel();
        if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM && head.status === null) return resolve("refused");
        if (stream.rstCode === constants.NGHTTP2_NO_ERROR && ended && head.status !== null && failure === undefined)
          return resolve({ kind: "answer", status: head.status, headers: head.headers, text: Buffer.concat(chunks).toString("utf8") });
        resolve({ kind: "broken", ...head, code: failure === undefined ? `rst_${stream.rstCode}` : codeOf(failure) });
      });
    });
  }

  #usableSession(): ClientHttp2Session {
    const current = this.#session;
    if (current !== null && !current.closed && !current.destroyed) return current;
    const session = connect(this.#origin);
    session.unref();
    session.on("error", () => this.#leave(session)); // its streams tell what became of them
    session.on("goaway", () => this.#leave(session));
    session.on("close", () => {
      this.#leave(session);
      this.#leaving.delete(session);
    });
    this.#session = session;
    return session;
  }

  #leave(session: ClientHttp2Session): void {
    if (this.#session === session) this.#session = null;
    if (!session.destroyed) this.#leaving.add(session);
  }

  #headersFor(exchange: Exchange): Record<string, string> {
    const headers: Record<string, string> = { ...exchange.headers, ":method": exchange.method, ":path": exchange.path };
    if (this.#host !== undefined) headers[":authority"] = this.#host;
    if (exchange.body !== null) headers["content-length"] = String(Buffer.byteLength(exchange.body));
    return headers;
  }
}

function headersOf(incoming: IncomingHttpHeaders): ReplyHeaders {
  const headers: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(incoming)) headers[name] = Array.isArray(value) ? value.join(", ") : value;
  return headers;
}
