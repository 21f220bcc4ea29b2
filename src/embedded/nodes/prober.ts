/** One probe of one container, repeated; says when its verdict changes. */
import type { Clock, Timer } from "../../kernel/clock.ts";
import type { ProbeSpec } from "../controllers/views.ts";
import type { ActionResult } from "./pod-runtime.ts";

export interface ProberOptions {
  readonly clock: Clock;
  readonly probe: ProbeSpec;
  /** Until the first success it asks this often, so that a small cluster is up quickly; failures count once per period all the same. */
  readonly eagerMs: number;
  /** Undefined when nothing can be said: the machine itself does not answer. */
  readonly act: (timeoutMs: number) => Promise<ActionResult | undefined>;
  /** Called at each change of the verdict; the first failure verdict counts as one. */
  readonly decided: (ok: boolean, message: string) => void;
  /** Called at each failed attempt that counts. */
  readonly failed: (message: string) => void;
}

export class Prober {
  readonly #options: ProberOptions;
  readonly #periodMs: number;
  #timer: Timer | undefined;
  #stopped = false;
  #verdict: boolean | undefined;
  #inRow = 0;
  #lastOk: boolean | undefined;
  #countedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ProberOptions) {
    this.#options = options;
    this.#periodMs = (options.probe.periodSeconds ?? 10) * 1000;
  }

  start(): void {
    this.#plan((this.#options.probe.initialDelaySeconds ?? 0) * 1000);
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  #plan(delayMs: number): void {
    if (this.#stopped) return;
    this.#timer = this.#options.clock.after(delayMs, () => void this.#once());
  }

  async #once(): Promise<void> {
    const result = await this.#options
      .act((this.#options.probe.timeoutSeconds ?? 1) * 1000)
      .catch((error: unknown) => ({ ok: false, message: String(error) }));
    if (this.#stopped) return;
    if (result !== undefined) this.#take(result);
    const isEager = this.#verdict !== true && this.#lastOk !== true;
    this.#plan(isEager ? Math.min(this.#options.eagerMs, this.#periodMs) : this.#periodMs);
  }

  #take({ ok, message }: ActionResult): void {
    const { clock, probe } = this.#options;
    const now = clock.monotonic();
    const isRepeat = !ok && this.#lastOk === false && now - this.#countedAt < this.#periodMs;
    if (isRepeat) return;
    this.#countedAt = now;
    this.#inRow = ok === this.#lastOk ? this.#inRow + 1 : 1;
    this.#lastOk = ok;
    if (!ok) this.#options.failed(message);
    const needed = ok ? (probe.successThreshold ?? 1) : (probe.failureThreshold ?? 3);
    if (this.#inRow < needed || this.#verdict === ok) return;
    this.#verdict = ok;
    this.#options.decided(ok, message);
  }
}
