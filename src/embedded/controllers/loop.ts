/**
 * Reconcile by key: keys coalesce, one is worked on at a time, a failure comes back with a growing delay. A reconcile reads the present state, never what an
 * event said, and never sleeps: it returns when it wants to be called again.
 */
import { isConflict } from "../../kube/api.ts";
import type { Clock, Timer } from "../../kernel/clock.ts";
import { isRetryable } from "../../kernel/errors.ts";
import type { ClusterLog } from "./log.ts";

export interface ReconcileResult {
  /** Call again after this many milliseconds, unless something changes before. */
  readonly requeueAfterMs?: number | undefined;
}

export type Reconcile = (key: string) => Promise<ReconcileResult | void>;

export interface LoopOptions {
  readonly name: string;
  readonly clock: Clock;
  readonly log: ClusterLog;
  readonly signal: AbortSignal;
  readonly reconcile: Reconcile;
}

const RETRY_MS = { first: 10, max: 10_000 };
/** After this many keys other work of the process gets its turn. */
const KEYS_PER_TURN = 64;

export class ControllerLoop {
  readonly name: string;
  readonly #options: LoopOptions;
  readonly #queue = new Set<string>();
  readonly #delayed = new Map<string, { readonly at: number; readonly timer: Timer }>();
  readonly #failures = new Map<string, number>();
  #started = false;
  #working = false;

  constructor(options: LoopOptions) {
    this.name = options.name;
    this.#options = options;
    options.signal.addEventListener("abort", () => this.#stop(), { once: true });
  }

  enqueue(key: string): void {
    if (this.#options.signal.aborted) return;
    this.#queue.add(key);
    this.#wake();
  }

  /** The earliest of several calls for one key counts. */
  enqueueAfter(key: string, delayMs: number): void {
    if (this.#options.signal.aborted) return;
    const at = this.#options.clock.monotonic() + delayMs;
    const planned = this.#delayed.get(key);
    if (planned !== undefined && planned.at <= at) return;
    planned?.timer.cancel();
    const timer = this.#options.clock.after(delayMs, () => {
      this.#delayed.delete(key);
      this.enqueue(key);
    });
    this.#delayed.set(key, { at, timer });
  }

  /** Call once the caches are filled; keys that came before are kept. */
  start(): void {
    this.#started = true;
    this.#wake();
  }

  #wake(): void {
    if (!this.#started || this.#working || this.#queue.size === 0) return;
    this.#working = true;
    void Promise.resolve().then(() => this.#work());
  }

  async #work(): Promise<void> {
    let done = 0;
    for (const key of this.#queue) {
      if (this.#options.signal.aborted) break;
      this.#queue.delete(key);
      await this.#one(key);
      if (++done >= KEYS_PER_TURN) break;
    }
    this.#working = false;
    if (this.#queue.size > 0 && !this.#options.signal.aborted) this.#options.clock.after(0, () => this.#wake());
  }

  async #one(key: string): Promise<void> {
    try {
      const result = await this.#options.reconcile(key);
      this.#failures.delete(key);
      if (result?.requeueAfterMs !== undefined) this.enqueueAfter(key, result.requeueAfterMs);
    } catch (error) {
      if (this.#options.signal.aborted) return;
      const failures = (this.#failures.get(key) ?? 0) + 1;
      this.#failures.set(key, failures);
      const delayMs = Math.min(RETRY_MS.first * 2 ** (failures - 1), RETRY_MS.max);
      const level = isConflict(error) || isRetryable(error) ? "debug" : "warn";
      this.#options.log(level, "reconcile failed, trying again", { controller: this.name, key, failures, delayMs, error });
      this.enqueueAfter(key, delayMs);
    }
  }

  #stop(): void {
    this.#queue.clear();
    for (const { timer } of this.#delayed.values()) timer.cancel();
    this.#delayed.clear();
  }
}
