/** Who may call the queue: a file with one token a line, read again when it changes, so that one can be replaced while both are good. */
import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Clock } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";

const LOOK_EVERY_MS = 1_000;
const MIN_CHARS = 16;
const MAX_TOKENS = 100;

export class QueueTokens {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #onTrouble: (error: unknown) => void;
  #text: string;
  #digests: readonly Buffer[];
  #lookedAt: number;

  /** Throws `queue_token_file_invalid`. A change that is wrong leaves what was, and is told. */
  constructor(path: string, clock: Clock, onTrouble: (error: unknown) => void) {
    this.#path = path;
    this.#clock = clock;
    this.#onTrouble = onTrouble;
    this.#text = readText(path);
    this.#digests = parseTokens(this.#text, path);
    this.#lookedAt = clock.monotonic();
  }

  isGood(authorization: string | undefined): boolean {
    this.#lookAgain();
    const token = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
    if (token === undefined) return false;
    const given = digestOf(token);
    let isGood = false;
    // All of them, whichever fits: the time tells nothing.
    for (const digest of this.#digests) if (timingSafeEqual(digest, given)) isGood = true;
    return isGood;
  }

  #lookAgain(): void {
    if (this.#clock.monotonic() - this.#lookedAt < LOOK_EVERY_MS) return;
    this.#lookedAt = this.#clock.monotonic();
    try {
      const text = readText(this.#path);
      if (text === this.#text) return;
      this.#text = text;
      this.#digests = parseTokens(text, this.#path);
    } catch (error) {
      this.#onTrouble(error);
    }
  }
}

/** What is in the file is never shown. */
function parseTokens(text: string, path: string): readonly Buffer[] {
  const tokens = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  if (tokens.length === 0) throw invalid(path, "it holds no token");
  if (tokens.length > MAX_TOKENS) throw invalid(path, `it holds more than ${MAX_TOKENS} tokens`);
  if (tokens.some((token) => token.length < MIN_CHARS || /\s/.test(token)))
    throw invalid(path, `a token has fewer than ${MIN_CHARS} characters, or a space in it`);
  return tokens.map(digestOf);
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw invalid(path, "it cannot be read", cause);
  }
}

function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

function invalid(path: string, why: string, cause?: unknown): RelevoError {
  return new RelevoError("queue_token_file_invalid", `The token file ${path} is not valid: ${why}.`, {
    allowed: "one token a line",
    cause,
  });
}
