/**
 * Where log lines go. A log must never stop what it tells of: when the disk is full or the reader is slow, lines wait here, at most `MAX_WAITING_BYTES` of
 * them; what is more is dropped, and how much was dropped is the first thing said afterwards. (Pino's own destination waits inside the process until the
 * disk takes the line: a full disk would stop all traffic of a gateway.)
 */
import { writeSync } from "node:fs";
import type { DestinationStream } from "pino";
import { type Clock, formatInstant } from "../kernel/clock.ts";

const MAX_WAITING_BYTES = 1024 * 1024;
const RETRY_MS = 200;
const STANDARD_OUTPUT = 1;

export interface LogSinkOptions {
  readonly clock: Clock;
  /** Which process speaks. */
  readonly name: string;
  /** Writes some of the bytes and returns how many; throws when it can write none. */
  readonly writeSome?: (bytes: Uint8Array) => number;
}

export class LogSink implements DestinationStream {
  readonly #options: LogSinkOptions;
  readonly #writeSome: (bytes: Uint8Array) => number;
  /** The rest of a line that was written in part comes first. */
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  #isRetrying = false;

  constructor(options: LogSinkOptions) {
    this.#options = options;
    this.#writeSome = options.writeSome ?? ((bytes) => writeSync(STANDARD_OUTPUT, bytes));
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) {
      this.#dropped += 1;
      return;
    }
    this.#push(bytes);
    if (!this.#isRetrying) this.#flush();
  }

  #push(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
  }

  #flush(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      let written: number;
      try {
        written = this.#writeSome(next);
      } catch {
        return this.#retryLater();
      }
      this.#waitingBytes -= written;
      if (written === next.length) this.#waiting.shift();
      else this.#waiting[0] = next.subarray(written);
      if (this.#waiting.length === 0 && this.#dropped > 0) this.#tellWhatWasDropped();
    }
  }

  #retryLater(): void {
    this.#isRetrying = true;
    this.#options.clock.after(RETRY_MS, () => {
      this.#isRetrying = false;
      this.#flush();
    });
  }

  #tellWhatWasDropped(): void {
    const { clock, name } = this.#options;
    const [time, lines, msg] = [formatInstant(clock.now()), this.#dropped, "log lines were dropped: they could not be written"];
    this.#push(Buffer.from(`${JSON.stringify({ level: "warn", time, name, event: "log_dropped", lines, msg })}\n`));
    this.#dropped = 0;
  }
}
