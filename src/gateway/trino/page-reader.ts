/**
 * Stands in the way of one page: holds its first bytes back until its head is known, then lets all pass. Only a page with segments is held whole, because the
 * segments' addresses change; one that is too long for that passes unchanged.
 */
import { LIMITS } from "../limits.ts";
import { startOfGzip } from "./encoding.ts";
import { HeadScanner, type PageHead } from "./head-scanner.ts";

export interface PageReaderOptions {
  readonly isGzip: boolean;
  /** Called once, before a byte of the page goes on. */
  readonly headKnown: (head: PageHead) => void;
  /** The page, uncompressed, as the client gets it; undefined: as it is. */
  readonly rewritten: (page: Buffer) => Buffer | undefined;
}

/** What goes on: nothing yet, these bytes, or a whole page in place of what came. */
export type Passing = { readonly kind: "nothing" } | { readonly kind: "bytes" | "instead"; readonly bytes: Buffer };

const NOTHING: Passing = { kind: "nothing" };

export class PageReader {
  readonly #options: PageReaderOptions;
  readonly #scanner = new HeadScanner();
  #held: Buffer[] = [];
  #size = 0;
  #holdsWhole = false;
  #isOver = false;

  constructor(options: PageReaderOptions) {
    this.#options = options;
  }

  /** True once nothing is held back any more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  push(chunk: Buffer): Passing {
    if (this.#isOver) return { kind: "bytes", bytes: chunk };
    this.#held.push(chunk);
    this.#size += chunk.length;
    if (this.#holdsWhole) return this.#size > LIMITS.trinoSegmentsBytes ? this.#release() : NOTHING;
    if (!this.#scan(chunk)) return NOTHING;
    const head = this.#scanner.end();
    this.#options.headKnown(head);
    if (head.data !== "encoded") return this.#release();
    this.#holdsWhole = true;
    return this.#size > LIMITS.trinoSegmentsBytes ? this.#release() : NOTHING;
  }

  /** The page has come to its end. */
  end(): Passing {
    if (this.#isOver) return NOTHING;
    if (!this.#holdsWhole) {
      const head = this.#scanner.end();
      this.#options.headKnown(head);
    }
    const bytes = this.#take();
    const plain = !this.#holdsWhole ? undefined : this.#options.isGzip ? startOfGzip(bytes, LIMITS.trinoUnpackedBytes) : bytes;
    const instead = plain === undefined ? undefined : this.#options.rewritten(plain);
    if (instead !== undefined) return { kind: "instead", bytes: instead };
    return bytes.length === 0 ? NOTHING : { kind: "bytes", bytes };
  }

  /** True when enough was seen, or no more may be looked at. */
  #scan(chunk: Buffer): boolean {
    if (!this.#options.isGzip) return this.#scanner.push(chunk) || this.#size > LIMITS.trinoHeadBytes;
    const held = this.#size === chunk.length ? chunk : Buffer.concat(this.#held);
    for (const length of LIMITS.trinoGzipHeadBytes) {
      const plain = startOfGzip(held.subarray(0, length), LIMITS.trinoUnpackedBytes);
      if (plain === undefined) return true;
      const scanner = new HeadScanner();
      if (scanner.push(plain)) {
        this.#scanner.head = scanner.head;
        return true;
      }
      if (held.length < length) return false;
    }
    return true;
  }

  #release(): Passing {
    return { kind: "bytes", bytes: this.#take() };
  }

  #take(): Buffer {
    this.#isOver = true;
    const [only] = this.#held;
    const bytes = this.#held.length === 1 && only !== undefined ? only : Buffer.concat(this.#held);
    this.#held = [];
    return bytes;
  }
}
