/** One try of a request at one member: turns undici's callbacks into what the exchange needs to know. A try that ended tells nothing more. */
import type { IncomingHttpHeaders } from "node:http";
import type { Duplex } from "node:stream";
import type { Client, Dispatcher } from "undici";
import { HEADERS } from "../model/membership.ts";
import type { Exchange } from "./exchange.ts";
import type { MemberState } from "./membership.ts";
import type { RejectionCode } from "./codes.ts";
import { isStale } from "./stale.ts";

export type Failure =
  /** No byte of it reached the member, or the member said that it did not take it. */
  | { readonly kind: "not_taken"; readonly reason: string }
  /** It was written, and no answer came. */
  | { readonly kind: "lost"; readonly reason: string }
  /** It was written, and what answers may no longer write. */
  | { readonly kind: "stale"; readonly reason: "stale_writer" }
  /** It cannot be sent as it is, or its own body failed: no fault of the member's. */
  | { readonly kind: "invalid"; readonly reason: string };

export const STALE: Failure = { kind: "stale", reason: "stale_writer" };

class Aborted extends Error {}

export class Attempt implements Dispatcher.DispatchHandler {
  readonly member: MemberState;
  readonly client: Client;
  readonly #exchange: Exchange;
  #controller: Dispatcher.DispatchController | null = null;
  #ended = false;

  constructor(exchange: Exchange, member: MemberState, client: Client) {
    this.#exchange = exchange;
    this.member = member;
    this.client = client;
  }

  /** Ends it from our side; no callback follows. */
  abort(): void {
    this.#ended = true;
    if (this.#controller === null) void this.client.destroy().catch(() => undefined);
    else this.#controller.abort(new Aborted("the gateway gave this try up"));
  }

  pause(): void {
    this.#controller?.pause();
  }

  resume(): void {
    this.#controller?.resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#ended) controller.abort(new Aborted("the gateway gave this try up"));
    else this.#exchange.attemptStarted();
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders, message?: string): void {
    if (this.#ended) return;
    if (status < 200) {
      this.#exchange.attemptInformed(status, headers);
    } else if (status === 503 && headers[HEADERS.notTaken] !== undefined) {
      this.abort();
      this.#exchange.attemptFailed(this, { kind: "not_taken", reason: "not_taken" });
    } else if (this.member.writer !== null && isStale(this.member.writer, headers)) {
      this.abort();
      this.#exchange.attemptFailed(this, STALE);
    } else {
      this.#exchange.attemptAnswered(status, headers, message ?? "");
    }
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#ended) this.#exchange.attemptData(chunk);
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#exchange.attemptEnded(this, trailers);
  }

  onRequestUpgrade(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders, socket: Duplex): void {
    if (this.#ended) {
      socket.destroy();
      return;
    }
    this.#ended = true;
    if (this.member.writer !== null && isStale(this.member.writer, headers)) {
      socket.destroy();
      this.#exchange.attemptFailed(this, STALE);
      return;
    }
    this.#exchange.attemptUpgraded(status, headers, socket);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#exchange.attemptFailed(this, failureOf(error, this.#controller !== null));
  }
}

const UNSENDABLE = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_NOT_SUPPORTED", "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH"]);

function failureOf(error: Error, started: boolean): Failure {
  const code = "code" in error && typeof error.code === "string" ? error.code : error.name;
  if (UNSENDABLE.has(code)) return { kind: "invalid", reason: error.message };
  return { kind: started ? "lost" : "not_taken", reason: reasonOf(code) };
}

/** A short code for reports: `connection_refused`, `timeout`, … */
export function reasonOf(code: string): string {
  switch (code) {
    case "ECONNREFUSED":
      return "connection_refused";
    case "UND_ERR_CONNECT_TIMEOUT":
    case "ETIMEDOUT":
      return "connect_timeout";
    case "ECONNRESET":
    case "EPIPE":
    case "UND_ERR_SOCKET":
      return "connection_reset";
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "EADDRNOTAVAIL":
      return "unreachable";
    default:
      return code.startsWith("HPE_") || code === "HTTPParserError" || code === "UND_ERR_HEADERS_OVERFLOW"
        ? "bad_answer"
        : code.toLowerCase();
  }
}

/** What a client is told when nothing more can be tried; `bound`: its session is tied to that instance. */
export function rejectionOf(failure: Failure, bound: boolean): RejectionCode {
  if (failure.kind === "stale") return "stale_writer";
  if (failure.kind === "not_taken") return bound ? "session_unreachable" : failure.reason === "not_taken" ? "not_taken" : "connect_failed";
  if (failure.reason === "timeout") return "answer_timeout";
  if (failure.reason === "member_gone") return "instance_cut";
  return failure.reason === "bad_answer" ? "bad_answer" : "answer_lost";
}
