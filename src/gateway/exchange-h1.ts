/** One request of an HTTP/1.1 client. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { BodyReader } from "./body.ts";
import type { GatewayCore } from "./core.ts";
import { Limit } from "./deadlines.ts";
import { Exchange } from "./exchange.ts";
import { flatToObject, type RequestHead } from "./headers.ts";
import { LIMITS } from "./limits.ts";
import type { MemberState, RouteState } from "./membership.ts";
import type { TrinoTie } from "./trino/tie.ts";

export class H1Exchange extends Exchange {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  #body: BodyReader | null = null;

  constructor(
    core: GatewayCore,
    route: RouteState,
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    head: RequestHead,
    upgradeTo?: string,
    trino: TrinoTie | null = null,
  ) {
    super(core, route, request.method ?? "GET", path, head, upgradeTo, trino);
    this.#request = request;
    this.#response = response;
  }

  start(): void {
    this.accept();
    const { contentLength, chunked, expectsContinue } = this.head;
    if (!chunked && contentLength <= 0) return this.begin();
    this.#body = new BodyReader(this.#request, this.core, () => this.#bodyLate());
    if (expectsContinue && contentLength >= 0 && contentLength <= LIMITS.heldBodyBytes) this.#response.writeContinue();
    this.#body.start(contentLength, expectsContinue, (body) => {
      if (this.ended) return;
      this.body = body;
      this.begin();
    });
  }

  #bodyLate(): void {
    if (this.ended) return;
    this.#response.shouldKeepAlive = false;
    this.reject("body_timeout");
  }

  /** The request is not whole yet. */
  get isComing(): boolean {
    return !this.#request.complete;
  }

  protected override async *streamBody(): AsyncGenerator<Buffer> {
    if (this.#body !== null) yield* this.#body.stream();
  }

  protected override bodyIsOver(): boolean {
    return this.#request.complete;
  }

  protected override sendContinue(): void {
    this.#response.writeContinue();
  }

  protected override sendInformation(status: number, headers: string[]): void {
    if (status === 103) this.#response.writeEarlyHints(flatToObject(headers));
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

  // Only requests on a socket of their own are asked to upgrade; an instance that does so unasked is cut.
  protected override takeUpgrade(_member: MemberState, _status: number, _headers: string[], socket: Duplex): void {
    socket.destroy();
    this.breakOff();
    this.endUpgraded("cut", "unexpected_upgrade");
  }

  protected override breakUpgraded(_code: string): void {
    this.breakOff();
  }
}
