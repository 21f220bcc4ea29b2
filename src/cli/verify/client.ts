/** A client of the user's service, for the time of a verification: an open loop of plain GETs, and the only witness of what became of them. */
import type { Clock } from "../../kernel/clock.ts";
import { describeError } from "../../kernel/errors.ts";

export interface ClientOptions {
  readonly url: string;
  readonly perSecond: number;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
}

/** `ok`: any answer below 500. */
export interface ClientCounts {
  readonly sent: number;
  readonly ok: number;
  readonly failed: number;
  /** Sent after the first evidence was recorded. */
  readonly sentInWindow: number;
  /** Each kind of failure, with how often. */
  readonly failures: Readonly<Record<string, number>>;
}

const ANSWER_WITHIN_MS = 30_000;
const IN_FLIGHT_MAX = 1_000;
const KINDS_MAX = 20;

export class VerifyingClient {
  readonly #options: ClientOptions;
  readonly #stop = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #failures = new Map<string, number>();
  #sent = 0;
  #ok = 0;
  #failed = 0;
  #sentInWindow = 0;
  #isInWindow = false;
  #loop: Promise<void> = Promise.resolve();

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  start(): void {
    this.#loop = this.#send();
  }

  openWindow(): void {
    this.#isInWindow = true;
  }

  counts(): ClientCounts {
    return {
      sent: this.#sent,
      ok: this.#ok,
      failed: this.#failed,
      sentInWindow: this.#sentInWindow,
      failures: Object.fromEntries([...this.#failures].toSorted(([one], [other]) => (one < other ? -1 : 1))),
    };
  }

  /** Sends nothing more, and settles when the last request has its outcome. */
  async stop(): Promise<ClientCounts> {
    this.#stop.abort();
    await this.#loop;
    await Promise.all(this.#running);
    return this.counts();
  }

  /** One request, whose failure is thrown: whether there is anybody at all. */
  async probe(): Promise<number> {
    return (await this.#get()).status;
  }

  async #send(): Promise<void> {
    const { clock, perSecond } = this.#options;
    while (!this.#stop.signal.aborted) {
      if (this.#running.size < IN_FLIGHT_MAX) {
        const one = this.#one().finally(() => this.#running.delete(one));
        this.#running.add(one);
      }
      await clock.sleep(1_000 / perSecond, this.#stop.signal).catch(() => undefined); // aborted: it is over
    }
  }

  async #one(): Promise<void> {
    this.#sent += 1;
    if (this.#isInWindow) this.#sentInWindow += 1;
    let failure: string | undefined;
    try {
      const { status } = await this.#get();
      failure = status >= 500 ? `status ${status}` : undefined;
    } catch (error) {
      failure = describeError(error);
    }
    if (failure === undefined) {
      this.#ok += 1;
      return;
    }
    this.#failed += 1;
    const kind = this.#failures.has(failure) || this.#failures.size < KINDS_MAX ? failure : "others";
    this.#failures.set(kind, (this.#failures.get(kind) ?? 0) + 1);
  }

  async #get(): Promise<Response> {
    const { url, fetch, clock } = this.#options;
    const late = new AbortController();
    const timer = clock.after(ANSWER_WITHIN_MS, () => late.abort());
    try {
      const response = await fetch(url, { signal: late.signal, redirect: "manual" });
      await response.arrayBuffer();
      return response;
    } finally {
      timer.cancel();
    }
  }
}
