/**
 * A long answer of JSON lines to one reader. Bounded: a reader that does not keep up is cut off, not waited for; it comes again and gets the present state.
 */
import type { ServerResponse } from "node:http";
import type { Clock, Timer } from "../kernel/clock.ts";

export interface LineStreamOptions {
  readonly clock: Clock;
  readonly pingEveryMs: number;
  /** What is sent when nothing else was for `pingEveryMs`. */
  readonly ping: unknown;
  /** More than this unread ends the stream. */
  readonly maxBufferedBytes: number;
}

export type StreamEnd = "closed" | "reader_too_slow";

export class LineStream {
  readonly #response: ServerResponse;
  readonly #options: LineStreamOptions;
  readonly #onEnd: (why: StreamEnd) => void;
  #timer: Timer | undefined;
  #isOver = false;
  /** Lines before the head; undefined once it is sent. */
  #waiting: unknown[] | undefined = [];

  /** `onEnd` is called once, whoever ended it. */
  constructor(response: ServerResponse, options: LineStreamOptions, onEnd: (why: StreamEnd) => void) {
    this.#response = response;
    this.#options = options;
    this.#onEnd = onEnd;
    response.on("close", () => this.#finish("closed"));
    response.on("error", () => this.#finish("closed"));
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Sends the head; lines before it wait. */
  open(headers: Readonly<Record<string, string>> = {}): void {
    if (this.#response.destroyed) this.#finish("closed");
    if (this.#isOver) return;
    this.#response.writeHead(200, { "content-type": "application/x-ndjson", "cache-control": "no-store", ...headers });
    this.#response.flushHeaders();
    this.#armPing();
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const value of waiting) this.send(value);
  }

  /** False when the stream is over. */
  send(value: unknown): boolean {
    if (this.#isOver) return false;
    if (this.#waiting !== undefined) {
      this.#waiting.push(value);
      return true;
    }
    this.#response.write(`${JSON.stringify(value)}\n`);
    if (this.#response.writableLength > this.#options.maxBufferedBytes) {
      this.#finish("reader_too_slow");
      this.#response.destroy();
      return false;
    }
    this.#armPing();
    return true;
  }

  end(): void {
    if (this.#isOver) return;
    this.#response.end();
    this.#finish("closed");
  }

  #armPing(): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.after(this.#options.pingEveryMs, () => void this.send(this.#options.ping));
  }

  #finish(why: StreamEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timer?.cancel();
    this.#onEnd(why);
  }
}
