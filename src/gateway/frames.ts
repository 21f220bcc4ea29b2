/**
 * Follows WebSocket frames (RFC 6455 §5.2) as they pass by, without holding them: where a frame ends, so that a close frame can be put between two, and
 * whether one side has said its close.
 */

/** "Internal error": the process behind the connection was lost. */
export const CLOSE_LOST = 1011;
/** "Service restart": connect again at once. */
export const CLOSE_RESTART = 1012;

const OPCODE_CLOSE = 8;

export class FrameTracker {
  /** Of the frame whose head is not whole yet. */
  readonly #head: number[] = [];
  #headLength = 2;
  #payloadLeft = 0;
  #opcode = 0;
  #mask: readonly number[] | null = null;
  #payloadSeen = 0;
  #code = 0;

  /** The code of the close frame that passed, 1005 when it had none; null before. */
  closeCode: number | null = null;

  get atBoundary(): boolean {
    return this.#head.length === 0 && this.#payloadLeft === 0;
  }

  /** Follows the chunk; with `stop` only up to the first boundary. Returns how many bytes it followed. */
  advance(chunk: Uint8Array, stop = false): number {
    let at = 0;
    while (at < chunk.length) {
      if (stop && this.atBoundary) return at;
      at = this.#payloadLeft > 0 ? this.#payload(chunk, at) : this.#headByte(chunk[at] ?? 0, at);
    }
    return at;
  }

  #payload(chunk: Uint8Array, at: number): number {
    const count = Math.min(this.#payloadLeft, chunk.length - at);
    if (this.#opcode === OPCODE_CLOSE) for (let index = at; index < at + count; index++) this.#closeByte(chunk[index] ?? 0);
    this.#payloadLeft -= count;
    return at + count;
  }

  #closeByte(byte: number): void {
    const plain = this.#mask === null ? byte : byte ^ (this.#mask[this.#payloadSeen % 4] ?? 0);
    if (this.#payloadSeen === 0) this.#code = plain << 8;
    else if (this.#payloadSeen === 1) this.closeCode = this.#code | plain;
    this.#payloadSeen += 1;
  }

  #headByte(byte: number, at: number): number {
    const head = this.#head;
    head.push(byte);
    if (head.length === 2) this.#headLength = 2 + extendedLength(byte & 0x7f) + ((byte & 0x80) === 0 ? 0 : 4);
    if (head.length < 2 || head.length < this.#headLength) return at + 1;
    const lengthBytes = extendedLength((head[1] ?? 0) & 0x7f);
    this.#payloadLeft =
      lengthBytes === 0 ? (head[1] ?? 0) & 0x7f : head.slice(2, 2 + lengthBytes).reduce((sum, part) => sum * 256 + part, 0);
    this.#mask = ((head[1] ?? 0) & 0x80) === 0 ? null : head.slice(2 + lengthBytes);
    this.#opcode = (head[0] ?? 0) & 0x0f;
    this.#payloadSeen = 0;
    head.length = 0;
    this.#headLength = 2;
    if (this.#opcode === OPCODE_CLOSE && this.#payloadLeft === 0) this.closeCode = 1005;
    return at + 1;
  }
}

function extendedLength(length: number): number {
  return length === 126 ? 2 : length === 127 ? 8 : 0;
}

/** An unmasked close frame, as a server sends it. */
export function closeFrame(code: number, why: string): Buffer {
  const text = Buffer.from(why).subarray(0, 123);
  return Buffer.concat([Buffer.from([0x80 | OPCODE_CLOSE, text.length + 2, code >> 8, code & 0xff]), text]);
}
