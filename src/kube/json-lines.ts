/** Frames a stream of one JSON value per line: a line may come in several chunks, and a chunk may hold several lines. */
import { RelevoError } from "../kernel/errors.ts";

const NEWLINE = 0x0a;

export class JsonLines {
  readonly #lineBytesMax: number;
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;

  constructor(lineBytesMax: number) {
    this.#lineBytesMax = lineBytesMax;
  }

  /** The values of the lines that this chunk completes. Throws a retryable error for a line that is too long or no JSON. */
  push(chunk: Uint8Array): readonly unknown[] {
    const values: unknown[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#keep(chunk.subarray(start, end));
      const line = this.#take();
      if (line.trim() !== "") values.push(parseLine(line));
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
    return values;
  }

  #keep(part: Uint8Array): void {
    this.#pendingBytes += part.length;
    if (this.#pendingBytes > this.#lineBytesMax) {
      throw new RelevoError("line_too_long", `a line of the stream is longer than ${this.#lineBytesMax} bytes`, { class: "retryable" });
    }
    this.#pending.push(part);
  }

  #take(): string {
    const [only] = this.#pending;
    const bytes = this.#pending.length === 1 && only ? only : Buffer.concat(this.#pending);
    this.#pending = [];
    this.#pendingBytes = 0;
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  }
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new RelevoError("line_no_json", "a line of the stream is no JSON", { class: "retryable", found: line.slice(0, 200), cause });
  }
}
