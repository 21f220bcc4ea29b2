/**
 * HTTP to Trino with bounds: one limit over everything from connecting to the last byte, and one over the bytes. Connections are kept, for a client polls one
 * server many times a second.
 */
import { Agent, request } from "undici";
import type { Clock } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { faultOf, TIMED_OUT } from "../faults.ts";

const CONNECT_LIMIT_MS = 5_000;
const KEEP_ALIVE_MS = 4_000;

export interface HttpCall {
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly limitMs: number;
  readonly bytesMax: number;
  /** Of whoever does not want the answer any more. */
  readonly signal?: AbortSignal | undefined;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

export class TrinoHttp {
  readonly clock: Clock;
  readonly #agent = new Agent({
    connect: { timeout: CONNECT_LIMIT_MS },
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Any status is an answer. Errors: those of drivers/port.ts for calls that got none; `cancelled` when the signal aborts. */
  async send(url: string, call: HttpCall): Promise<HttpAnswer> {
    const where = URL.parse(url)?.host;
    if (where === undefined)
      throw new RelevoError("instance_answer_invalid", "This is no URL that can be asked.", {
        found: url,
        allowed: "http://host:port/path",
      });
    const limit = new AbortController();
    const timer = this.clock.after(call.limitMs, () => limit.abort(TIMED_OUT));
    const giveUp = (): void => limit.abort(CANCELLED);
    call.signal?.addEventListener("abort", giveUp, { once: true });
    if (call.signal?.aborted) giveUp();
    try {
      return await this.#exchange(url, call, limit.signal);
    } catch (error) {
      if (limit.signal.reason === CANCELLED) throw cancelled(where);
      throw error instanceof RelevoError ? error : faultOf(error, where, call.limitMs);
    } finally {
      timer.cancel();
      call.signal?.removeEventListener("abort", giveUp);
    }
  }

  async #exchange(url: string, call: HttpCall, signal: AbortSignal): Promise<HttpAnswer> {
    const { statusCode, headers, body } = await request(url, {
      dispatcher: this.#agent,
      method: call.method ?? "GET",
      headers: { ...call.headers },
      ...(call.body === undefined ? {} : { body: call.body }),
      signal,
    });
    // Its reader below is told of each error as well; a stream without a listener would end the process.
    body.on("error", () => undefined);
    const parts: Buffer[] = [];
    let bytes = 0;
    for await (const part of body as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > call.bytesMax) throw Object.assign(new Error(`an answer of more than ${call.bytesMax} bytes`), { code: "TOO_LONG" });
      parts.push(part);
    }
    return { status: statusCode, headers, text: Buffer.concat(parts).toString("utf8") };
  }

  /** Frees the connections; nothing can be sent afterwards. */
  async destroy(): Promise<void> {
    await this.#agent.destroy();
  }
}

const CANCELLED = Object.assign(new Error("nobody waits for the answer"), { code: "CANCELLED" });

function cancelled(where: string): RelevoError {
  return new RelevoError("cancelled", `Nobody waits for the answer of ${where} any more.`, { class: "cancelled" });
}

export function headerOf({ headers }: HttpAnswer, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.at(-1) : value;
}

/** A header that may come several times. */
export function headersOf({ headers }: HttpAnswer, name: string): readonly string[] {
  const value = headers[name];
  return value === undefined ? [] : Array.isArray(value) ? value : [value];
}

/** What is no answer of the engine's, by its status: 5xx may pass, all else was refused. */
export function refusalOf(answer: HttpAnswer, where: string): RelevoError {
  const found = `status ${answer.status}${answer.text === "" ? "" : `: ${answer.text.slice(0, 300)}`}`;
  if (answer.status >= 500) return new RelevoError("instance_failed", `Trino at ${where} failed.`, { class: "retryable", found });
  return new RelevoError("instance_refused", `Trino at ${where} refused the call.`, { found });
}
