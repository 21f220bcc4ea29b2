/**
 * What a child says of its work on its progress pipe. What it writes there is progress, by its bytes, except a line that begins with `wait `: it says that
 * the child waits for something that may never come, and counts for nothing. The wait is over with the next progress; saying it again does not prolong it.
 */
import type { Clock } from "../kernel/clock.ts";

const WAIT = Buffer.from("wait ");
const MAX_WHAT = 200;

export class ChildProgress {
  readonly #clock: Clock;
  readonly #advanced: (amount: number) => void;
  #total = 0;
  #lastAt: number;
  #wait: { readonly what: string; readonly since: number } | null = null;
  /** The beginning of the line that is not whole yet, while it may still say that the child waits. */
  #line: Buffer | null = Buffer.alloc(0);

  /** `advanced` is told of each bit of progress. */
  constructor(clock: Clock, advanced: (amount: number) => void) {
    this.#clock = clock;
    this.#advanced = advanced;
    this.#lastAt = clock.monotonic();
  }

  get total(): number {
    return this.#total;
  }

  quietMs(): number {
    return this.#clock.monotonic() - this.#lastAt;
  }

  /** For what it waits, and for how long already; null: it does not. */
  waiting(): { readonly what: string; readonly ms: number } | null {
    return this.#wait && { what: this.#wait.what, ms: this.#clock.monotonic() - this.#wait.since };
  }

  wait(what: string): void {
    this.#wait ??= { what: what.slice(0, MAX_WHAT), since: this.#clock.monotonic() };
  }

  advance(amount: number): void {
    if (!(amount > 0)) return;
    this.#total += amount;
    this.#lastAt = this.#clock.monotonic();
    this.#wait = null;
    this.#advanced(amount);
  }

  /** What came on the pipe; cut anywhere. */
  take(chunk: Buffer): void {
    for (let from = 0; from < chunk.length; ) {
      const end = chunk.indexOf(0x0a, from);
      this.#takePart(chunk.subarray(from, end === -1 ? chunk.length : end), end !== -1);
      from = end === -1 ? chunk.length : end + 1;
    }
  }

  #takePart(part: Buffer, isEnd: boolean): void {
    if (this.#line === null) this.advance(part.length + (isEnd ? 1 : 0));
    else this.#takeBeginning(Buffer.concat([this.#line, part]), isEnd);
    if (isEnd) this.#line = Buffer.alloc(0);
  }

  #takeBeginning(line: Buffer, isEnd: boolean): void {
    const compared = Math.min(line.length, WAIT.length);
    const isWait = line.subarray(0, compared).equals(WAIT.subarray(0, compared));
    if (!isWait || (isEnd && line.length < WAIT.length)) {
      this.#line = null;
      this.advance(line.length + (isEnd ? 1 : 0));
    } else if (isEnd) this.wait(line.subarray(WAIT.length).toString("utf8"));
    else this.#line = line.subarray(0, WAIT.length + 4 * MAX_WHAT);
  }
}

/** The last bytes of what a child wrote; all of it is read, so that it never waits for its reader. */
export class Tail {
  readonly #max: number;
  #kept: Buffer = Buffer.alloc(0);
  bytes = 0;

  constructor(max: number) {
    this.#max = max;
  }

  take(chunk: Buffer): void {
    this.bytes += chunk.length;
    const last = chunk.length >= this.#max ? chunk : Buffer.concat([this.#kept, chunk]);
    // A copy, or a small rest would hold a large chunk.
    this.#kept = Buffer.from(last.subarray(Math.max(0, last.length - this.#max)));
  }

  text(): string {
    return this.#kept.toString("utf8");
  }
}
