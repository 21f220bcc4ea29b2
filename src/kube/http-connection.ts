/** One request to an API server: at our own pace, with who we are now, over connections that are made anew when certificates rotate. */
import { isDeepStrictEqual } from "node:util";
import { Agent, type Dispatcher, ProxyAgent, request } from "undici";
import type { Clock } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import { systemClock } from "../kernel/system.ts";
import { KubeApiError, type KubeStatus } from "./api.ts";
import type { KubeCredentials, KubeIdentity, KubeTls } from "./credentials.ts";
import { boundedText } from "./bounded-text.ts";
import type { CallPriority, RateLimiter } from "./limiter.ts";

export interface HttpConnectionOptions {
  /** `https://10.0.0.1:6443`, `http://127.0.0.1:8001`; a path is kept. */
  readonly baseUrl: string;
  readonly token?: string | undefined;
  /** Without: only the token, and the server's certificate must be one that the system trusts. */
  readonly credentials?: KubeCredentials | undefined;
  readonly insecureSkipTlsVerify?: boolean | undefined;
  readonly tlsServerName?: string | undefined;
  readonly proxyUrl?: string | undefined;
  /** Without: as fast as it is called, and a 429 is the caller's. */
  readonly limiter?: RateLimiter | undefined;
  /** For the first byte of an answer, and from each of its bytes to the next; of a watch, for the first. */
  readonly requestTimeoutMs?: number | undefined;
  /** For the whole answer, however it comes; of a watch, until it is accepted or refused. Each time that it is sent counts anew; waiting for our own turn does not. */
  readonly callTimeoutMs?: number | undefined;
  /** Absent: the system's. */
  readonly clock?: Clock | undefined;
  /** A watch that is silent for longer is broken: servers send a bookmark about every minute. */
  readonly watchSilenceMs?: number | undefined;
}

export interface Call {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly priority: CallPriority;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly contentType?: string;
  /** On whose behalf. The groups of a service account are added by the server. */
  readonly as?: string | undefined;
}

const REQUEST_TIMEOUT_MS = 30_000;
/** A server gives itself as long (`--request-timeout`). */
const CALL_TIMEOUT_MS = 60_000;
const WATCH_SILENCE_MS = 150_000;
const CONNECT_TIMEOUT_MS = 10_000;
const ERROR_BYTES_MAX = 2 ** 20;
/** So often a call is made when the server asks to wait; a wait that is longer is the caller's. */
const TRIES_MAX = 4;
const RETRY_AFTER_MAX_MS = 15_000;

export class HttpConnection {
  readonly #options: HttpConnectionOptions;
  readonly #base: string;
  #connected: { readonly tls: KubeTls; readonly dispatcher: Dispatcher } | undefined;

  constructor(options: HttpConnectionOptions) {
    this.#options = options;
    this.#base = options.baseUrl.replace(/\/+$/, "");
  }

  async close(): Promise<void> {
    await this.#connected?.dispatcher.destroy();
  }

  /**
   * What `read` makes of the answer, whose body is unread and must be read within the call's time. Throws `KubeApiError` for a refusal, `kube_timeout`. A 401 is tried
   * once more with new credentials, a 429 after the time that the server names: both say that nothing was done. An eviction's 429 is a budget's answer, not the
   * server's load.
   */
  send<T>(call: Call, read: (response: Dispatcher.ResponseData) => Promise<T>): Promise<T> {
    return this.#inTurns(call, undefined, read);
  }

  /** A watch that was accepted: how long it lasts is up to the signal, the server and `watchSilenceMs`. Throws as `send`. */
  open(call: Call, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    return this.#inTurns(call, signal, async (response) => response);
  }

  async #inTurns<T>(call: Call, watchSignal: AbortSignal | undefined, read: (response: Dispatcher.ResponseData) => Promise<T>): Promise<T> {
    const { limiter, credentials } = this.#options;
    for (let tries = 1; ; tries++) {
      await limiter?.take(call.priority, watchSignal);
      const answer = await this.#inTime(call, watchSignal, read);
      if ("value" in answer) return answer.value;
      const { error } = answer;
      if (tries >= TRIES_MAX) throw error;
      if (error.httpCode === 401 && credentials?.refused()) continue;
      const wait = (error.status.details?.retryAfterSeconds ?? Number.NaN) * 1_000;
      const isOverload = error.httpCode === 429 && !call.path.endsWith("/eviction") && wait <= RETRY_AFTER_MAX_MS;
      if (limiter === undefined || !isOverload) throw error;
      limiter.hold(call.priority, wait);
    }
  }

  /** A server that sends a byte now and then would keep its caller for ever: the pauses alone bound nothing. */
  async #inTime<T>(
    call: Call,
    watchSignal: AbortSignal | undefined,
    read: (response: Dispatcher.ResponseData) => Promise<T>,
  ): Promise<{ readonly value: T } | { readonly error: KubeApiError }> {
    const { credentials, callTimeoutMs = CALL_TIMEOUT_MS, clock = systemClock } = this.#options;
    const identity = await credentials?.current();
    const limit = new AbortController();
    const timer = clock.after(callTimeoutMs, () => limit.abort(overdue(call, callTimeoutMs)));
    const signal = watchSignal === undefined ? limit.signal : AbortSignal.any([watchSignal, limit.signal]);
    try {
      const response = await this.#request(call, { identity, signal, isWatch: watchSignal !== undefined });
      return response.statusCode < 300 ? { value: await read(response) } : { error: await refusal(response, call) };
    } finally {
      timer.cancel();
    }
  }

  #request(
    call: Call,
    { identity, signal, isWatch }: { readonly identity: KubeIdentity | undefined; readonly signal: AbortSignal; readonly isWatch: boolean },
  ): Promise<Dispatcher.ResponseData> {
    const { token, requestTimeoutMs = REQUEST_TIMEOUT_MS, watchSilenceMs = WATCH_SILENCE_MS } = this.#options;
    return request(`${this.#base}${call.path}${queryText(call.query)}`, {
      method: call.method,
      dispatcher: this.#dispatcher(identity?.tls ?? {}),
      headersTimeout: requestTimeoutMs,
      bodyTimeout: isWatch ? watchSilenceMs : requestTimeoutMs,
      headers: {
        accept: "application/json",
        ...(call.body === undefined ? {} : { "content-type": call.contentType ?? "application/json" }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...identity?.headers,
        ...(call.as === undefined ? {} : { "impersonate-user": call.as }),
      },
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      signal,
    });
  }

  /** What runs over the former connections, ends there. */
  #dispatcher(tls: KubeTls): Dispatcher {
    if (this.#connected && isDeepStrictEqual(this.#connected.tls, tls)) return this.#connected.dispatcher;
    void this.#connected?.dispatcher.close().catch(() => undefined); // it is not used any more, whatever becomes of it
    this.#connected = { tls, dispatcher: dispatcherFor(this.#options, tls) };
    return this.#connected.dispatcher;
  }
}

function dispatcherFor({ insecureSkipTlsVerify, tlsServerName, proxyUrl }: HttpConnectionOptions, { ca, cert, key }: KubeTls): Dispatcher {
  const tls = {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(insecureSkipTlsVerify ? { rejectUnauthorized: false } : {}),
    ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
  };
  // HTTP/1.1: a connection for each watch, so that one that dies takes no other with it.
  if (proxyUrl !== undefined) return new ProxyAgent({ uri: proxyUrl, requestTls: tls, allowH2: false });
  return new Agent({ connect: { ...tls, timeout: CONNECT_TIMEOUT_MS }, pipelining: 1, allowH2: false });
}

function overdue({ method, path }: Call, afterMs: number): RelevoError {
  return new RelevoError("kube_timeout", `the API server did not end its answer to ${method} ${path} in time`, {
    class: "retryable",
    allowed: `${afterMs} ms`,
  });
}

function queryText(query: Call["query"]): string {
  const given = Object.entries(query ?? {}).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)] as const]));
  return given.length === 0 ? "" : `?${new URLSearchParams(Object.fromEntries(given)).toString()}`;
}

/** The error that the server answered with; an unknown path gives plain text and no Status. */
async function refusal(response: Dispatcher.ResponseData, { method, path }: Call): Promise<KubeApiError> {
  const what = `${method} ${path}`;
  const text = await boundedText(response.body, ERROR_BYTES_MAX, what);
  const after = Number(response.headers["retry-after"]);
  const given = statusOf(text) ?? { code: response.statusCode, message: text.trim().slice(0, 300) };
  const status =
    Number.isFinite(after) && given.details?.retryAfterSeconds === undefined
      ? { ...given, details: { ...given.details, retryAfterSeconds: after } }
      : given;
  return new KubeApiError({ ...status, code: status.code ?? response.statusCode }, what);
}

function statusOf(text: string): KubeStatus | undefined {
  try {
    const body = JSON.parse(text) as KubeStatus & { readonly kind?: string };
    return body.kind === "Status" ? body : undefined;
  } catch {
    return undefined; // Not every refusal is a Status: the caller keeps the text.
  }
}
