/**
 * How an answer goes out: what is small, or has no body, whole and in one write; a page of Trino's protocol once it is known what it says; all else as it comes.
 */
import type { IncomingHttpHeaders } from "node:http";
import { ClientSide } from "./client-side.ts";
import { LIMITS } from "./limits.ts";
import type { PageReader, Passing } from "./trino/page-reader.ts";

export abstract class Answering extends ClientSide {
  /** Something of an answer has gone out. */
  protected headSent = false;
  /** Of an answer that is held until it is whole. */
  #status = 0;
  #headers: string[] | null = null;
  #message = "";
  #length = -1;
  /** Stands in the way of its body. */
  #page: PageReader | null = null;

  /** `length` as the instance said it. */
  protected beginAnswer(status: number, headers: string[], message: string, length: string | undefined, page: PageReader | null): void {
    this.#status = status;
    this.#headers = headers;
    this.#message = message;
    this.#length = length === undefined ? -1 : Number(length);
    this.#page = page;
  }

  /** Its head goes out before its body is there, unless the body is small or is looked into. */
  protected beginBody(): void {
    if (this.#page === null && !(this.#length >= 0 && this.#length <= LIMITS.wholeAnswerBytes)) this.#releaseHead();
  }

  /** What was held of it is forgotten. */
  protected dropAnswer(): void {
    this.#headers = null;
    this.#page = null;
  }

  /** False when the client should be given time. */
  protected passData(chunk: Buffer): boolean {
    return this.#page === null ? this.#pass(chunk) : this.#passPage(this.#page, this.#page.push(chunk));
  }

  protected endAnswer(trailers: IncomingHttpHeaders): void {
    if (this.#page !== null) this.#passPage(this.#page, this.#page.end());
    const headers = this.#headers;
    if (headers === null) return this.sendEnd(trailers);
    this.#headers = null;
    this.headSent = true;
    this.sendWhole(this.#status, headers, this.#message, null);
  }

  #passPage(page: PageReader, passing: Passing): boolean {
    if (page.isOver) this.#page = null;
    if (passing.kind === "nothing") return true;
    if (passing.kind === "instead") this.#length = passing.bytes.length;
    return this.#pass(passing.bytes);
  }

  #pass(chunk: Buffer): boolean {
    const headers = this.#headers;
    if (headers !== null && chunk.length === this.#length) {
      this.#headers = null;
      this.headSent = true;
      this.sendWhole(this.#status, headers, this.#message, chunk);
      return true;
    }
    if (headers !== null) this.#releaseHead();
    return this.sendChunk(chunk);
  }

  #releaseHead(): void {
    const headers = this.#headers;
    if (headers === null) return;
    this.#headers = null;
    this.headSent = true;
    this.sendHead(this.#status, headers, this.#message);
  }
}
