/**
 * The HTTP client of the built-in queue (`relevo queue`), with Node's own `fetch` alone. It repeats nothing by itself: what a caller may repeat is told by
 * the class of the error. A job that is put in with an id of the caller's own is kept once, however often that is repeated.
 */
import type { Clock, Instant } from "../kernel/clock.ts";
import type { Epoch } from "../kernel/epoch.ts";
import { type ErrorClass, RelevoError } from "../kernel/errors.ts";
import { systemClock } from "../kernel/system.ts";
import type { JobOutcome } from "../model/slots.ts";

/** `nothing`: it was done, and there was nothing to do. `reaped`: its child was ended from outside for want of progress. */
export type { JobOutcome };
export const JOB_OUTCOMES = ["done", "nothing", "failed", "reaped"] as const satisfies readonly JobOutcome[];

export interface QueueCounts {
  readonly queue: string;
  readonly waiting: number;
  /** Under a lease. */
  readonly taken: number;
  /** Given up after too many attempts, or by a worker's word. */
  readonly dead: number;
  readonly done: number;
  readonly nothing: number;
  readonly failed: number;
  readonly reaped: number;
  /** Of the job that waits longest, since it was put in; null: none waits. */
  readonly oldestAgeMs: number | null;
  readonly maxAttempts: number;
  /** The queue's own clock. */
  readonly now: Instant;
  /** Another one: the queue was deleted and made again. */
  readonly createdAt: Instant;
}

/** Of the jobs whose ids begin alike, as far as the queue still knows them. */
export type TaggedCounts = Pick<QueueCounts, "waiting" | "taken" | "dead" | "done" | "nothing" | "failed" | "reaped" | "oldestAgeMs">;

export interface TakenJob {
  readonly id: string;
  readonly payload: unknown;
  /** From 1. */
  readonly attempt: number;
  /** Fencing token of this attempt: whoever has an older one can do nothing with the job. */
  readonly lease: string;
}

export interface DeadJob {
  readonly id: string;
  readonly payload: unknown;
  readonly attempts: number;
  readonly reason: string;
  readonly diedAt: Instant;
}

/** Who writes: the queue keeps the highest epoch of each workload and refuses a lower one. */
export interface WriterStamp {
  /** `namespace/pool#ordinal`. */
  readonly workload: string;
  readonly epoch: Epoch;
}

export interface NewJob {
  readonly id?: string;
  /** JSON. */
  readonly payload: unknown;
}

export interface TakeOptions {
  readonly worker: string;
  readonly max: number;
  readonly leaseMs: number;
  /** How long the call may wait for a job; 0 or absent: not at all. */
  readonly waitMs?: number;
  readonly stamp?: WriterStamp;
}

export interface CompleteOptions {
  readonly lease: string;
  readonly outcome: JobOutcome;
  /** JSON; kept with the job for a while. */
  readonly result?: unknown;
  readonly stamp?: WriterStamp;
}

export interface ReturnOptions {
  readonly lease: string;
  readonly reason: string;
  /** It must not be tried again. */
  readonly dead?: true;
  /** It was not begun: the attempt does not count. */
  readonly untried?: true;
  readonly stamp?: WriterStamp;
}

export interface QueueClientOptions {
  /** `http://127.0.0.1:7090`. */
  readonly url: string;
  readonly token: string;
  readonly clock?: Clock;
  readonly fetch?: typeof fetch;
  /** For one answer, beside what a long poll waits. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** A stream that says nothing for three heartbeats is dead. */
const SILENCE_MS = 15_000;
const MAX_LINE_BYTES = 64 * 1024;

const CLASS_OF: Readonly<Record<number, ErrorClass>> = { 408: "retryable", 409: "conflict", 429: "retryable" };

/**
 * Errors: those of the queue by their own code (`lease_lost`, `stale_epoch`, `queue_missing`, `queue_full`, …), `queue_unreachable` (retryable),
 * `queue_answer_invalid`, and the reason of the caller's signal.
 */
export class QueueClient {
  readonly #base: string;
  readonly #token: string;
  readonly #clock: Clock;
  readonly #fetch: typeof fetch;
  readonly #timeoutMs: number;

  constructor({ url, token, clock = systemClock, fetch: given = globalThis.fetch, timeoutMs = TIMEOUT_MS }: QueueClientOptions) {
    this.#base = `${url.replace(/\/+$/, "")}/v1/queues`;
    this.#token = token;
    this.#clock = clock;
    this.#fetch = given;
    this.#timeoutMs = timeoutMs;
  }

  /** Makes the queue, or changes it. */
  async put(queue: string, options: { readonly maxAttempts?: number } = {}, signal?: AbortSignal): Promise<QueueCounts> {
    return countsOf(await this.#call("PUT", [queue], options, signal));
  }

  /** Durable when it settles. Returns the ids in the order of the jobs. */
  async add(queue: string, jobs: readonly NewJob[], signal?: AbortSignal): Promise<readonly string[]> {
    return listOf(await this.#call("POST", [queue, "jobs"], { jobs }, signal), "ids") as readonly string[];
  }

  async take(queue: string, options: TakeOptions, signal?: AbortSignal): Promise<readonly TakenJob[]> {
    const answer = await this.#call("POST", [queue, "take"], options, signal, options.waitMs ?? 0);
    return listOf(answer, "jobs") as readonly TakenJob[];
  }

  /** `until` is by the queue's clock; the lease ends `leaseMs` after the call arrived. */
  async extend(
    queue: string,
    id: string,
    options: { readonly lease: string; readonly leaseMs: number; readonly stamp?: WriterStamp },
    signal?: AbortSignal,
  ): Promise<{ readonly until: Instant }> {
    return (await this.#call("POST", [queue, "jobs", id, "extend"], options, signal)) as { until: Instant };
  }

  /** May be repeated with the same lease and outcome: it counts once. */
  async complete(queue: string, id: string, options: CompleteOptions, signal?: AbortSignal): Promise<void> {
    await this.#call("POST", [queue, "jobs", id, "complete"], options, signal);
  }

  /** Gives a job back without an outcome; `dead`: it will not be tried again. */
  async return(queue: string, id: string, options: ReturnOptions, signal?: AbortSignal): Promise<{ readonly state: "waiting" | "dead" }> {
    return (await this.#call("POST", [queue, "jobs", id, "return"], options, signal)) as { state: "waiting" | "dead" };
  }

  async counts(queue: string, signal?: AbortSignal): Promise<QueueCounts> {
    return countsOf(await this.#call("GET", [queue], undefined, signal));
  }

  async dead(queue: string, limit = 100, signal?: AbortSignal): Promise<readonly DeadJob[]> {
    return listOf(await this.#call("GET", [queue, "dead", { limit }], undefined, signal), "jobs") as readonly DeadJob[];
  }

  /** With all that is in it. */
  async delete(queue: string, signal?: AbortSignal): Promise<void> {
    await this.#call("DELETE", [queue], undefined, signal);
  }

  /** `prefix`: what the ids begin with, at least 8 characters. */
  async tagged(queue: string, prefix: string, signal?: AbortSignal): Promise<TaggedCounts> {
    return countsOf(await this.#call("GET", [queue, "tagged", { prefix }], undefined, signal));
  }

  /** Those that wait or are dead go; taken ones are left to their worker. Returns how many went. */
  async removeTagged(queue: string, prefix: string, signal?: AbortSignal): Promise<number> {
    for (let total = 0; ; ) {
      const answer = await this.#call("DELETE", [queue, "tagged", { prefix }], undefined, signal);
      const { removed } = answer as { readonly removed?: unknown };
      if (typeof removed !== "number") throw invalid("it has no number removed", answer);
      if (removed === 0) return total;
      total += removed;
    }
  }

  /** The counts now and whenever they change, until the signal ends it. Throws when the line is lost, or silent for too long. */
  async *changes(queue: string, signal: AbortSignal): AsyncGenerator<QueueCounts, void> {
    const bound = new Bound(this.#clock, SILENCE_MS, signal);
    try {
      const response = await this.#send("GET", [queue, "changes"], undefined, bound.signal);
      let text = "";
      const decoder = new TextDecoder();
      for await (const chunk of response.body ?? []) {
        bound.renew();
        text += decoder.decode(chunk as Uint8Array, { stream: true });
        const lines = text.split("\n");
        text = lines.pop() ?? "";
        for (const line of lines) yield countsOf(parse(line));
        if (text.length > MAX_LINE_BYTES) throw invalid("a line of the stream is too long");
      }
    } catch (error) {
      throw this.#asReported(error, bound, signal);
    } finally {
      bound.end();
    }
    signal.throwIfAborted();
    throw unreachable("the stream of changes ended");
  }

  async #call(method: string, path: Path, body: unknown, signal: AbortSignal | undefined, waitMs = 0): Promise<unknown> {
    const bound = new Bound(this.#clock, this.#timeoutMs + waitMs, signal);
    try {
      return parse(await textOf(await this.#send(method, path, body, bound.signal)));
    } catch (error) {
      throw this.#asReported(error, bound, signal);
    } finally {
      bound.end();
    }
  }

  /** What refuses a header or an address names all of it: neither token nor password may get into a sentence. */
  #asReported(error: unknown, bound: Bound, signal: AbortSignal | undefined): unknown {
    if (error instanceof RelevoError) return error;
    if (signal?.aborted) return signal.reason;
    if (bound.isOver) return unreachable("it did not answer in time", error);
    const reason = reasonOf(error);
    const shown = reason.replaceAll(this.#token, "…").replaceAll(/\/\/[^/@\s]*@/g, "//…@");
    return shown === reason ? unreachable(reason, error) : unreachable(shown);
  }

  async #send(method: string, path: Path, body: unknown, signal: AbortSignal): Promise<Response> {
    const url = `${this.#base}/${path.map(partOf).join("/").replace("/?", "?")}`;
    const response = await this.#fetch(url, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      // The token is for this address alone.
      redirect: "error",
      signal,
    });
    if (!response.ok) throw errorOf(response.status, await textOf(response));
    return response;
  }
}

/** Parts of a path, and the query at its end. */
type Path = readonly (string | Readonly<Record<string, string | number>>)[];

function partOf(part: Path[number]): string {
  if (typeof part === "string") return encodeURIComponent(part);
  const pairs = Object.entries(part).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `?${pairs.join("&")}`;
}

/** Ends a call when it lasts too long, or when its caller says so. */
class Bound {
  readonly #controller = new AbortController();
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #caller: AbortSignal | undefined;
  readonly #onAbort = (): void => this.#controller.abort(this.#caller?.reason);
  #timer;
  isOver = false;

  constructor(clock: Clock, limitMs: number, caller: AbortSignal | undefined) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#caller = caller;
    if (caller?.aborted) this.#onAbort();
    caller?.addEventListener("abort", this.#onAbort, { once: true });
    this.#timer = this.#arm();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  renew(): void {
    this.#timer.cancel();
    this.#timer = this.#arm();
  }

  end(): void {
    this.#timer.cancel();
    this.#caller?.removeEventListener("abort", this.#onAbort);
    // A stream that its reader left must not stay open.
    this.#controller.abort();
  }

  #arm(): ReturnType<Clock["after"]> {
    return this.#clock.after(this.#limitMs, () => {
      this.isOver = true;
      this.#controller.abort();
    });
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error
    ? error.cause.message || ((error.cause as NodeJS.ErrnoException).code ?? error.message)
    : error.message;
}

async function textOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += (chunk as Uint8Array).length;
    if (bytes > MAX_ANSWER_BYTES) throw invalid(`it is larger than ${MAX_ANSWER_BYTES} bytes`);
    chunks.push(chunk as Uint8Array);
  }
  return Buffer.concat(chunks, bytes).toString("utf8");
}

function errorOf(status: number, text: string): RelevoError {
  let error: { code?: unknown; message?: unknown; found?: unknown; allowed?: unknown } | undefined;
  try {
    error = (JSON.parse(text) as { error?: typeof error } | null)?.error;
  } catch {
    error = undefined; // a proxy's page: the status says what is to be known
  }
  const { code, message, found, allowed } = error ?? {};
  return new RelevoError(
    typeof code === "string" ? code : "queue_unreachable",
    typeof message === "string" ? message : `the queue answered ${status}`,
    {
      class: CLASS_OF[status] ?? (status >= 500 ? "retryable" : "terminal"),
      found: found ?? status,
      ...(typeof allowed === "string" ? { allowed } : {}),
    },
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid("it is no JSON", text);
  }
}

function listOf(answer: unknown, field: "ids" | "jobs"): readonly unknown[] {
  const list = (answer as Record<string, unknown> | null)?.[field];
  if (!Array.isArray(list)) throw invalid(`it has no list ${field}`, answer);
  return list;
}

/** Numbers are handed on as they are: who judges them says what is wrong. */
function countsOf(answer: unknown): QueueCounts {
  if (typeof answer !== "object" || answer === null || !("waiting" in answer)) throw invalid("it has no numbers of a queue", answer);
  return answer as QueueCounts;
}

function invalid(why: string, found?: unknown): RelevoError {
  return new RelevoError("queue_answer_invalid", `the queue's answer cannot be read: ${why}`, { found });
}

function unreachable(why: string, cause?: unknown): RelevoError {
  return new RelevoError("queue_unreachable", `the queue does not answer: ${why}`, { class: "retryable", cause });
}
