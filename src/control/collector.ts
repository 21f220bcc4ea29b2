/**
 * Lets the store forget what is past its time, in small batches with a pause between them, so that no commit waits for long. A batch that fails is made up for
 * by the next round.
 */
import type { Clock, Timer } from "../kernel/clock.ts";
import { describeError } from "../kernel/errors.ts";
import type { Store } from "../store/port.ts";

export const COLLECT_EVERY_MS = 600_000;
/** Between two batches of one round, and from the start to the first. */
export const BATCH_PAUSE_MS = 1_000;

export interface CollectorOptions {
  readonly store: Pick<Store, "collect">;
  readonly clock: Clock;
  readonly log: (level: "debug" | "warn", message: string, fields: Readonly<Record<string, unknown>>) => void;
}

export class Collector {
  readonly #options: CollectorOptions;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(options: CollectorOptions) {
    this.#options = options;
  }

  start(): void {
    this.#collectIn(BATCH_PAUSE_MS);
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  #collectIn(delayMs: number): void {
    if (this.#isStopped) return;
    this.#timer = this.#options.clock.after(delayMs, () => void this.#collect());
  }

  async #collect(): Promise<void> {
    const { store, clock, log } = this.#options;
    let rows = 0;
    try {
      rows = await store.collect(clock.now());
      if (rows > 0) log("debug", "what is past its time was forgotten", { rows });
    } catch (error) {
      log("warn", "what is past its time could not be forgotten and is tried again", { error: describeError(error) });
    }
    this.#collectIn(rows > 0 ? BATCH_PAUSE_MS : COLLECT_EVERY_MS);
  }
}
