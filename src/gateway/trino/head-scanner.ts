/**
 * Reads the beginning of a page of the statement protocol as it comes in, byte by byte and only as far as needed: its id, whether a `nextUri` follows, and whether
 * its data are rows or segments. Trino writes `id`, `infoUri`, `partialCancelUri`, `nextUri`, `columns`, `data` in this order and leaves out what there is not;
 * of a page that begins otherwise nothing is concluded.
 */

export interface PageHead {
  readonly id: string | undefined;
  /** False: it is the last page. Undefined: it cannot be told. */
  readonly hasNext: boolean | undefined;
  /** `encoded`: an object with segments, whose addresses may lead here. */
  readonly data: "rows" | "encoded" | "none" | "unknown";
}

const BEFORE_NEXT = new Set(["id", "infoUri", "partialCancelUri"]);
const LONGEST_KEY = 64;
const LONGEST_ID = 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;

type Place = "start" | "key" | "colon" | "value" | "over";

export class HeadScanner {
  /** What is known, once enough was read. */
  head: PageHead | null = null;

  #place: Place = "start";
  #depth = 0;
  #inString = false;
  #escaped = false;
  #text = "";
  #key = "";
  #keys = 0;
  #id: string | undefined;
  #hasNext: boolean | undefined;

  /** True once the head is known. */
  push(chunk: Buffer): boolean {
    for (let index = 0; index < chunk.length && this.head === null; index++) {
      if (this.#inString && !this.#escaped && !this.#keeps()) {
        // Most of what is skipped are strings: their ends are found faster than byte by byte.
        index = endOfPlain(chunk, index);
        if (index >= chunk.length) break;
      }
      this.#take(chunk[index] as number);
    }
    return this.head !== null;
  }

  /** The answer is over, or no more of it may be read. */
  end(): PageHead {
    this.head ??= { id: this.#id, hasNext: this.#hasNext, data: "unknown" };
    return this.head;
  }

  #take(byte: number): void {
    if (this.#inString) return this.#takeInString(byte);
    if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) return;
    switch (this.#place) {
      case "start":
        if (byte !== OPEN_OBJECT) return this.#giveUp();
        this.#place = "key";
        break;
      case "key":
        if (byte === CLOSE_OBJECT) return this.#decide("none");
        if (byte === QUOTE) this.#beginString();
        else if (byte !== COMMA) this.#giveUp();
        break;
      case "colon":
        if (byte !== COLON) return this.#giveUp();
        this.#place = "value";
        break;
      case "value":
        this.#takeValue(byte);
        break;
      case "over":
        break;
      default:
        this.#place satisfies never;
    }
  }

  #takeValue(byte: number): void {
    if (this.#depth === 0 && this.#key === "data") return this.#decide(byte === OPEN_OBJECT ? "encoded" : "rows");
    if (byte === QUOTE) return this.#beginString();
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) this.#depth += 1;
    else if (this.#depth > 0 && (byte === CLOSE_OBJECT || byte === CLOSE_LIST)) this.#depth -= 1;
    else if (this.#depth === 0 && byte === COMMA) this.#place = "key";
    else if (this.#depth === 0 && byte === CLOSE_OBJECT) this.#decide("none");
  }

  #beginString(): void {
    this.#inString = true;
    this.#text = "";
  }

  /** Whether the string that is being read matters. */
  #keeps(): boolean {
    return this.#depth === 0 && (this.#place === "key" || this.#key === "id");
  }

  #takeInString(byte: number): void {
    if (this.#escaped) {
      this.#escaped = false;
    } else if (byte === BACKSLASH) {
      this.#escaped = true;
    } else if (byte === QUOTE) {
      this.#inString = false;
      return this.#stringEnded();
    }
    if (!this.#keeps()) return;
    this.#text += String.fromCharCode(byte);
    if (this.#text.length > (this.#place === "key" ? LONGEST_KEY : LONGEST_ID)) this.#giveUp();
  }

  #stringEnded(): void {
    if (this.#depth > 0) return;
    if (this.#place === "value") {
      if (this.#key === "id") this.#id = this.#text;
      return;
    }
    this.#key = this.#text;
    this.#place = "colon";
    this.#keys += 1;
    if (this.#keys === 1 && this.#key !== "id") return this.#giveUp();
    if (this.#key === "nextUri") this.#hasNext = true;
    else if (!BEFORE_NEXT.has(this.#key)) this.#hasNext ??= false;
    // What stands behind the data says that there are none.
    if (this.#hasNext !== undefined && !BEFORE_NEXT.has(this.#key) && !["nextUri", "columns", "data"].includes(this.#key))
      this.#decide("none");
  }

  #decide(data: PageHead["data"]): void {
    this.#place = "over";
    this.head = { id: this.#id, hasNext: this.#hasNext ?? false, data };
  }

  #giveUp(): void {
    this.#place = "over";
    this.head = { id: undefined, hasNext: undefined, data: "unknown" };
  }
}

/** The index of the next quote or backslash; the length when there is none. */
function endOfPlain(chunk: Buffer, from: number): number {
  let index = from;
  while (index < chunk.length && chunk[index] !== QUOTE && chunk[index] !== BACKSLASH) index++;
  return index;
}
