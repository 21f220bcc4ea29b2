/**
 * A secret that is kept in a file and exchanged there while the process runs, as a mounted Secret is: what is in the file counts within a second. While it is being
 * written, or when what was written is no secret, the one from before stays: a slip of the pen must not lock every sender out.
 */
import { statSync } from "node:fs";
import type { Clock } from "../kernel/clock.ts";
import { describeError } from "../kernel/errors.ts";

const LOOK_EVERY_MS = 1_000;

export interface SecretFileOptions {
  readonly path: string;
  /** Throws when there is none, or one that does not do; never shows what is in the file. */
  readonly read: () => string;
  readonly clock: Clock;
  readonly log: { error(fields: object, message: string): void; info(fields: object, message: string): void };
}

export class SecretFile {
  readonly #options: SecretFileOptions;
  #secret: string;
  #stamp: string | undefined;
  #lookedAt: number;
  /** What was last said to be wrong: said once. */
  #trouble: string | undefined;

  /** Throws what `read` throws. */
  constructor(options: SecretFileOptions) {
    this.#options = options;
    // The stamp first: what is written between the two is seen at the next look.
    this.#stamp = stampOf(options.path);
    this.#secret = options.read();
    this.#lookedAt = options.clock.monotonic();
  }

  current(): string {
    const now = this.#options.clock.monotonic();
    if (now - this.#lookedAt >= LOOK_EVERY_MS) {
      this.#lookedAt = now;
      this.#lookAgain();
    }
    return this.#secret;
  }

  /** What could not be read is tried again at each look, whatever its stamp is. */
  #lookAgain(): void {
    const { path, read, log } = this.#options;
    const stamp = stampOf(path);
    if (stamp !== undefined && stamp === this.#stamp) return;
    try {
      const secret = read();
      this.#stamp = stamp;
      this.#trouble = undefined;
      if (secret === this.#secret) return;
      this.#secret = secret;
      log.info({ event: "secret_file", path }, "the secret was exchanged in its file: only what is signed with the new one is taken");
    } catch (error) {
      this.#stamp = undefined;
      const trouble = describeError(error);
      if (trouble !== this.#trouble) log.error({ event: "secret_file", path }, `the secret from before stays: ${trouble}`);
      this.#trouble = trouble;
    }
  }
}

/** Undefined: it is not there, or cannot be looked at. */
function stampOf(path: string): string | undefined {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return `${mtimeMs} ${size} ${ino}`;
  } catch {
    return undefined; // reading it says why
  }
}
