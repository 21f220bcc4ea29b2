/** What happened, one line each, with its hash: the same seed gives the same log to the byte. Stacks never get in: they hold paths. */
import { createHash } from "node:crypto";
import type { Clock } from "../kernel/clock.ts";

/** A run that says more is broken. */
const MAX_LINES = 500_000;

export class EventLog {
  readonly lines: string[] = [];
  readonly #clock: Clock;
  readonly #hash = createHash("sha256");

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(text: string): void {
    const line = `${(this.#clock.monotonic() / 1000).toFixed(3)} ${text}`;
    this.#hash.update(line).update("\n");
    if (this.lines.length < MAX_LINES) this.lines.push(line);
  }

  /** Of all lines so far. */
  hash(): string {
    return this.#hash.copy().digest("hex");
  }
}
