/** How far a long simulation is, on stderr, at most once a second. */
import type { CliContext } from "../context.ts";

const EVERY_MS = 1_000;

export class Progress {
  readonly #context: CliContext;
  #toldAt: number;

  constructor(context: CliContext) {
    this.#context = context;
    this.#toldAt = context.clock.monotonic();
  }

  tell(sentence: () => string): void {
    const now = this.#context.clock.monotonic();
    if (now - this.#toldAt < EVERY_MS) return;
    this.#toldAt = now;
    this.#context.err(`relevo: ${sentence()}\n`);
  }
}
