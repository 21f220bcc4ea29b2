/** One HTTP/1.1 answer, byte for byte as it comes: its status and its body. What is no HTTP, or too long, is refused. */

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

const HEAD_BYTES_MAX = 16 * 1024;
const HEAD_END = "\r\n\r\n";
const STATUS_LINE = /^HTTP\/1\.[01] ([1-5]\d\d)(?: [^\r\n]*)?(?:\r\n|$)/;
const CHUNK_SIZE = /^([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?$/;

interface Head {
  readonly status: number;
  /** Bytes; null: all until the connection ends. */
  readonly length: number | "chunked" | null;
}

export class AnswerReader {
  readonly #bytesMax: number;
  #bytes: Buffer = Buffer.alloc(0);
  #head: Head | undefined;

  /** Of the body, as it is sent. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The answer once it is whole. Throws with the code `NOT_HTTP` or `TOO_LONG`. */
  push(chunk: Buffer): HttpAnswer | undefined {
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
    return this.#read(false);
  }

  /** The connection has ended. Undefined: in the middle of an answer. */
  end(): HttpAnswer | undefined {
    return this.#read(true);
  }

  #read(isEnd: boolean): HttpAnswer | undefined {
    while (this.#head === undefined || this.#head.status < 200) if (!this.#takeHead()) return undefined;
    const { status, length } = this.#head;
    if (status === 204 || status === 304) return { status, text: "" };
    if (typeof length === "number" && length > this.#bytesMax) throw fault("TOO_LONG", `an answer of ${length} bytes`);
    if (length === "chunked") {
      const text = this.#chunks();
      return text === undefined ? undefined : { status, text };
    }
    if (length === null && this.#bytes.length > this.#bytesMax) throw fault("TOO_LONG", `an answer of more than ${this.#bytesMax} bytes`);
    if (length === null) return isEnd ? { status, text: this.#bytes.toString("utf8") } : undefined;
    return this.#bytes.length < length ? undefined : { status, text: this.#bytes.toString("utf8", 0, length) };
  }

  /** False: more must come first. */
  #takeHead(): boolean {
    const end = this.#bytes.indexOf(HEAD_END);
    const head = this.#bytes.toString("latin1", 0, end < 0 ? Math.min(this.#bytes.length, HEAD_BYTES_MAX) : end);
    // Told as soon as it is sure: what is no HTTP may never send an empty line.
    const start = head.slice(0, 7);
    if (!"HTTP/1.".startsWith(start)) throw fault("NOT_HTTP", "no HTTP/1 answer");
    if (end < 0 && this.#bytes.length >= HEAD_BYTES_MAX) throw fault("NOT_HTTP", "headers without an end");
    if (end < 0) return false;
    this.#head = parseHead(head);
    this.#bytes = this.#bytes.subarray(end + HEAD_END.length);
    return true;
  }

  /** Undefined: more must come. Trailers after the last chunk are nobody's here. */
  #chunks(): string | undefined {
    if (this.#bytes.length > 2 * this.#bytesMax) throw fault("TOO_LONG", "too many chunks");
    const parts: Buffer[] = [];
    let length = 0;
    for (let at = 0; ; ) {
      const lineEnd = this.#bytes.indexOf("\r\n", at);
      if (lineEnd < 0) return undefined;
      const size = CHUNK_SIZE.exec(this.#bytes.toString("latin1", at, lineEnd))?.[1];
      if (size === undefined) throw fault("NOT_HTTP", "a chunk without its size");
      const from = lineEnd + 2;
      const to = from + Number.parseInt(size, 16);
      if (to === from) return Buffer.concat(parts).toString("utf8");
      length += to - from;
      if (length > this.#bytesMax) throw fault("TOO_LONG", `an answer of more than ${this.#bytesMax} bytes`);
      if (this.#bytes.length < to + 2) return undefined;
      if (this.#bytes.toString("latin1", to, to + 2) !== "\r\n") throw fault("NOT_HTTP", "a chunk of another size than it says");
      parts.push(this.#bytes.subarray(from, to));
      at = to + 2;
    }
  }
}

function parseHead(head: string): Head {
  const status = Number(STATUS_LINE.exec(head)?.[1]);
  if (!Number.isInteger(status)) throw fault("NOT_HTTP", "no HTTP/1 answer");
  let length: Head["length"] = null;
  for (const line of head.split("\r\n").slice(1)) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (name === "transfer-encoding") {
      if (value.toLowerCase() !== "chunked") throw fault("NOT_HTTP", "a transfer encoding that nobody asked for");
      length = "chunked";
    } else if (name === "content-length" && length !== "chunked") {
      if (!/^\d{1,15}$/.test(value) || (length !== null && length !== Number(value))) throw fault("NOT_HTTP", "no content length");
      length = Number(value);
    }
  }
  return { status, length };
}

function fault(code: "NOT_HTTP" | "TOO_LONG", message: string): Error {
  return Object.assign(new Error(message), { code });
}
