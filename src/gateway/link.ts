/**
 * The line to the controller: membership comes over a stream of JSON lines, reports go back by POST. It is a convenience for traffic, never a condition:
 * when it is cut the gateway goes on with what it has, and tries again with growing, jittered pauses.
 */
import { request } from "undici";
import type { Clock, Timer } from "../kernel/clock.ts";
import { describeError, RelevoError } from "../kernel/errors.ts";
import type { Random } from "../kernel/random.ts";
import { type ControllerLine, controllerLineSchema, type GatewayReport } from "../model/membership.ts";
import type { GatewayLog } from "./core.ts";
import { LIMITS } from "./limits.ts";

export interface LinkOptions {
  /** `http://host:port` of the controller. */
  readonly controllerUrl: string;
  /** A function is asked at each call: a token that is renewed is another one by then. */
  readonly token: string | (() => string | undefined) | undefined;
  readonly replica: string;
  /** The replica in whose place this one was started, once that had ended. */
  readonly predecessor: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: GatewayLog;
  readonly line: (line: ControllerLine) => void;
  /** The stream is over; another one is opened. */
  readonly closed?: () => void;
  /** Each has a higher number than all before it, whichever controller they went to. */
  readonly report: () => GatewayReport;
}

export class ControllerLink {
  readonly #options: LinkOptions;
  readonly #stopped = new AbortController();
  #failures = 0;
  #reporting = false;
  #reportAgain = false;
  #reportTimer: Timer | null = null;
  #reportDueAt = Number.POSITIVE_INFINITY;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  start(): void {
    void this.#run();
    this.#scheduleReport(LIMITS.reportEveryMs);
  }

  stop(): void {
    this.#stopped.abort();
    this.#reportTimer?.cancel();
  }

  /** A change that the controller waits for: do not wait for the next second. */
  reportSoon(): void {
    this.#scheduleReport(LIMITS.reportSoonMs);
  }

  async #run(): Promise<void> {
    const { clock, log, controllerUrl } = this.#options;
    while (!this.#stopped.signal.aborted) {
      try {
        await this.#readStream();
        log.warn({ controllerUrl }, "the controller ended the stream");
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        this.#failures += 1;
        log.warn({ controllerUrl, failures: this.#failures, error: describeError(error) }, "the stream from the controller broke");
      }
      await clock.sleep(this.#pauseMs(), this.#stopped.signal).catch(() => undefined); // stopped: the loop's condition ends it
    }
  }

  #pauseMs(): number {
    const ceiling = Math.min(LIMITS.reconnectMaxMs, LIMITS.reconnectMinMs * 2 ** Math.min(this.#failures, 16));
    return ceiling * (0.5 + this.#options.random.next() / 2);
  }

  async #readStream(): Promise<void> {
    const { controllerUrl, replica, predecessor, clock } = this.#options;
    const query = new URLSearchParams({ replica, ...(predecessor === undefined ? {} : { predecessor }) });
    // Silence for this long means a dead connection, also one whose other end vanished without a word.
    const quiet = new AbortController();
    let silenceMs: number = LIMITS.connectControllerMs;
    let timer = clock.after(silenceMs, () => quiet.abort(new Error("silence")));
    const heard = () => {
      timer.cancel();
      timer = clock.after(silenceMs, () => quiet.abort(new Error("the controller was silent for too long")));
    };
    try {
      const answer = await request(`${controllerUrl}/gateway/v1/stream?${query}`, {
        headers: this.#headers(),
        signal: AbortSignal.any([this.#stopped.signal, quiet.signal]),
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      if (answer.statusCode !== 200) {
        await answer.body.dump();
        throw new RelevoError("controller_refused", "the controller did not open the stream", {
          found: `status ${answer.statusCode}`,
          class: "retryable",
        });
      }
      for await (const text of linesOf(answer.body)) {
        if (text.trim() === "") continue;
        const line = this.#parse(text);
        if (line?.type === "membership") silenceMs = Math.max(LIMITS.reconnectMaxMs, line.ttlMs);
        heard();
        this.#failures = 0;
        if (line !== undefined) this.#options.line(line);
      }
    } finally {
      timer.cancel();
      this.#options.closed?.();
    }
  }

  #headers(): Record<string, string> {
    const { token } = this.#options;
    const now = typeof token === "function" ? token() : token;
    return now === undefined ? {} : { authorization: `Bearer ${now}` };
  }

  /** A line that is not understood is said and left out: the rest of the stream may still be. */
  #parse(text: string): ControllerLine | undefined {
    try {
      return controllerLineSchema.parse(JSON.parse(text));
    } catch (error) {
      this.#options.log.error({ error: describeError(error), line: text.slice(0, 200) }, "a line from the controller is not understood");
      return undefined;
    }
  }

  #scheduleReport(delayMs: number): void {
    const dueAt = this.#options.clock.monotonic() + delayMs;
    if (dueAt >= this.#reportDueAt || this.#stopped.signal.aborted) return;
    this.#reportTimer?.cancel();
    this.#reportDueAt = dueAt;
    this.#reportTimer = this.#options.clock.after(delayMs, () => {
      this.#reportDueAt = Number.POSITIVE_INFINITY;
      this.#scheduleReport(LIMITS.reportEveryMs);
      void this.sendReport();
    });
  }

  /** One at a time, so that they arrive in order; what changes meanwhile goes out right after. */
  async sendReport(): Promise<void> {
    if (this.#reporting) {
      this.#reportAgain = true;
      return;
    }
    this.#reporting = true;
    try {
      do {
        this.#reportAgain = false;
        await this.#post(this.#options.report());
      } while (this.#reportAgain && !this.#stopped.signal.aborted);
    } catch (error) {
      this.#options.log.debug({ error: describeError(error) }, "a report did not reach the controller; the next one holds all again");
    } finally {
      this.#reporting = false;
    }
  }

  async #post(report: GatewayReport): Promise<void> {
    const limit = new AbortController();
    const timer = this.#options.clock.after(LIMITS.reportTimeoutMs, () =>
      limit.abort(new Error("the controller did not take the report in time")),
    );
    try {
      const answer = await request(`${this.#options.controllerUrl}/gateway/v1/reports`, {
        method: "POST",
        headers: { ...this.#headers(), "content-type": "application/json" },
        body: JSON.stringify(report),
        signal: limit.signal,
      });
      await answer.body.dump();
      if (answer.statusCode >= 400) this.#options.log.warn({ status: answer.statusCode }, "the controller refused a report");
    } finally {
      timer.cancel();
    }
  }
}

/** Splits a stream of bytes at line feeds; a line that grows beyond its limit is an error. */
export async function* linesOf(body: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let pending: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      pending.push(chunk.subarray(from, at));
      yield Buffer.concat(pending).toString();
      pending = [];
      size = 0;
      from = at + 1;
    }
    pending.push(chunk.subarray(from));
    size += chunk.length - from;
    if (size > LIMITS.controllerLineBytes) {
      throw new RelevoError("controller_line_too_long", "a line from the controller is too long", {
        found: size,
        allowed: `${LIMITS.controllerLineBytes} bytes`,
      });
    }
  }
}
