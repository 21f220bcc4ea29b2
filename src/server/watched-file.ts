/**
 * What is kept in a file and exchanged there while the process runs, as a mounted Secret is: what is in the file counts within a second. While it is being written, or
 * when what was written does not do, what was there before stays: a slip of the pen must not lock everybody out.
 */
import { statSync } from "node:fs";
import type { Clock } from "../kernel/clock.ts";
import { describeError } from "../kernel/errors.ts";

const LOOK_EVERY_MS = 1_000;

export interface FileLog {
  error(fields: object, message: string): void;
  info(fields: object, message: string): void;
}

export interface WatchedFileOptions<T> {
  readonly path: string;
  /** Throws when there is none, or one that does not do; never shows what is in the file. */
  readonly read: () => T;
  readonly clock: Clock;
  readonly onRead: (now: T, before: T) => void;
  /** Told once, as long as it is the same. */
  readonly onTrouble: (trouble: string) => void;
}

export class WatchedFile<T> {
  readonly #options: WatchedFileOptions<T>;
  #value: T;
  #stamp: string | undefined;
  #lookedAt: number;
  #trouble: string | undefined;

  /** Throws what `read` throws. */
  constructor(options: WatchedFileOptions<T>) {
    this.#options = options;
    // The stamp first: what is written between the two is seen at the next look.
    this.#stamp = stampOf(options.path);
    this.#value = options.read();
    this.#lookedAt = options.clock.monotonic();
  }

  current(): T {
    const now = this.#options.clock.monotonic();
    if (now - this.#lookedAt >= LOOK_EVERY_MS) {
      this.#lookedAt = now;
      this.#lookAgain();
    }
    return this.#value;
  }

  /** What could not be read is tried again at each look, whatever its stamp is: who may read it is often set right after it was written. */
  #lookAgain(): void {
    const { path, read, onRead, onTrouble } = this.#options;
    const stamp = stampOf(path);
    if (stamp !== undefined && stamp === this.#stamp) return;
    try {
      const before = this.#value;
      this.#value = read();
      this.#stamp = stamp;
      this.#trouble = undefined;
      onRead(this.#value, before);
    } catch (error) {
      this.#stamp = undefined;
      const trouble = describeError(error);
      if (trouble !== this.#trouble) onTrouble(trouble);
      this.#trouble = trouble;
    }
  }
}

/** Undefined: it is not there, or cannot be looked at. The time of change, for that of writing is whatever a copy says that it is. */
function stampOf(path: string): string | undefined {
  try {
    const { ctimeMs, mtimeMs, size, ino } = statSync(path);
    return `${ctimeMs} ${mtimeMs} ${size} ${ino}`;
  } catch {
    return undefined; // reading it says why
  }
}
