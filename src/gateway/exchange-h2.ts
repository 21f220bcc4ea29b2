/** One request of an HTTP/2 client. */
import type { IncomingHttpHeaders } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import { BodyReader } from "./body.ts";
import type { GatewayCore } from "./core.ts";
import { Exchange } from "./exchange.ts";
import { flatToObject, type RequestHead } from "./headers.ts";
import { LIMITS } from "./limits.ts";
import type { MemberState, RouteState } from "./membership.ts";
import type { TrinoTie } from "./trino/tie.ts";

export class H2Exchange extends Exchange {
  readonly #stream: ServerHttp2Stream;
  #body: BodyReader | null = null;
  #trailers: IncomingHttpHeaders | null = null;

  constructor(
    core: GatewayCore,
    route: RouteState,
    stream: ServerHttp2Stream,
    method: string,
    path: string,
    head: RequestHead,
    trino: TrinoTie | null,
  ) {
    super(core, route, method, path, head, undefined, trino);
    this.#stream = stream;
  }

  start(hasBody: boolean): void {
    this.accept();
    this.#stream.on("close", () => this.clientGone());
    if (!hasBody) return this.begin();
    const { contentLength, expectsContinue } = this.head;
    this.#body = new BodyReader(this.#stream, this.core, () => this.#bodyLate());
    if (expectsContinue && contentLength >= 0 && contentLength <= LIMITS.heldBodyBytes) this.sendContinue();
    this.#body.start(contentLength, expectsContinue, (body) => {
      if (this.ended) return;
      this.body = body;
      this.begin();
    });
  }

  #bodyLate(): void {
    if (!this.ended) this.reject("body_timeout");
  }

  protected override async *streamBody(): AsyncGenerator<Buffer> {
    if (this.#body !== null) yield* this.#body.stream();
  }

  protected override bodyIsOver(): boolean {
    return this.#body === null || this.#stream.readableEnded;
  }

  protected override sendContinue(): void {
    this.sendInformation(100, []);
  }

  protected override sendInformation(status: number, headers: string[]): void {
    if (this.#gone() || status === 101) return;
    this.#stream.additionalHeaders({ ":status": status, ...flatToObject(headers) });
  }

  protected override sendHead(status: number, headers: string[]): void {
    if (this.#gone()) return;
    const object = flatToObject(headers);
    const waitForTrailers = "trailer" in object;
    if (waitForTrailers) this.#stream.on("wantTrailers", () => this.#stream.sendTrailers(this.#trailers ?? {}));
    this.#stream.respond({ ":status": status, ...object }, { waitForTrailers });
  }

  protected override sendWhole(status: number, headers: string[], _message: string, body: Buffer | null): void {
    if (this.#gone()) return;
    this.#stream.respond({ ":status": status, ...flatToObject(headers) }, { endStream: body === null });
    if (body !== null) this.#stream.end(body);
    this.#endUnreadBody();
  }

  protected override sendChunk(chunk: Buffer): boolean {
    if (this.#gone()) return true;
    if (this.#stream.write(chunk)) return true;
    this.#stream.once("drain", () => this.clientDrained());
    return false;
  }

  protected override sendEnd(trailers: IncomingHttpHeaders): void {
    if (this.#gone()) return;
    this.#trailers = trailers;
    this.#stream.end();
    this.#endUnreadBody();
  }

  /** RFC 9113 §8.1: after a whole answer the rest of the request is not wanted, and that is no error. */
  #endUnreadBody(): void {
    if (this.bodyIsOver()) return;
    this.#stream.once("finish", () => this.#stream.close(constants.NGHTTP2_NO_ERROR));
    this.#stream.resume();
  }

  protected override breakOff(): void {
    // `close` with a code would first end the stream, and the client would take what it has for the whole answer.
    if (!this.#gone()) this.#stream.destroy(new Error("the answer broke off"));
  }

  protected override takeUpgrade(_member: MemberState, _status: number, _headers: string[], socket: Duplex): void {
    socket.destroy();
    this.breakOff();
    this.endUpgraded("cut", "unexpected_upgrade");
  }

  protected override breakUpgraded(_code: string): void {
    this.breakOff();
  }

  #gone(): boolean {
    return this.#stream.destroyed || this.#stream.closed;
  }
}
