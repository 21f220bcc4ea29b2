/** One request to an API server: at our own pace, with who we are now, over connections that are made anew when certificates rotate. */
import { isDeepStrictEqual } from "node:util";
import { Agent, type Dispatcher, ProxyAgent, request } from "undici";
import { KubeApiError, type KubeStatus } from "./api.ts";
import type { KubeCredentials, KubeTls } from "./credentials.ts";
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
  /** For a request other than a watch, and for a watch's first byte. */
  readonly requestTimeoutMs?: number | undefined;
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
   * The answer, its body unread. Throws `KubeApiError` for a refusal. A 401 is tried once more with new credentials, a 429 after the time that the server
   * names: both say that nothing was done. An eviction's 429 is a budget's answer, not the server's load.
   */
  async send(call: Call, signal?: AbortSignal): Promise<Dispatcher.ResponseData> {
    const { limiter, credentials } = this.#options;
    for (let tries = 1; ; tries++) {
      await limiter?.take(call.priority, signal);
      const response = await this.#request(call, signal);
      if (response.statusCode < 300) return response;
      const error = await refusal(response, call);
      if (tries >= TRIES_MAX) throw error;
      if (error.httpCode === 401 && credentials?.refused()) continue;
      const wait = (error.status.details?.retryAfterSeconds ?? Number.NaN) * 1_000;
      const isOverload = error.httpCode === 429 && !call.path.endsWith("/eviction") && wait <= RETRY_AFTER_MAX_MS;
      if (limiter === undefined || !isOverload) throw error;
      limiter.hold(call.priority, wait);
    }
  }

  async #request(call: Call, signal: AbortSignal | undefined): Promise<Dispatcher.ResponseData> {
    const { token, credentials, requestTimeoutMs = REQUEST_TIMEOUT_MS, watchSilenceMs = WATCH_SILENCE_MS } = this.#options;
    const identity = await credentials?.current();
    return request(`${this.#base}${call.path}${queryText(call.query)}`, {
      method: call.method,
      dispatcher: this.#dispatcher(identity?.tls ?? {}),
      headersTimeout: requestTimeoutMs,
      bodyTimeout: signal === undefined ? requestTimeoutMs : watchSilenceMs,
      headers: {
        accept: "application/json",
        ...(call.body === undefined ? {} : { "content-type": call.contentType ?? "application/json" }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...identity?.headers,
        ...(call.as === undefined ? {} : { "impersonate-user": call.as }),
      },
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      ...(signal === undefined ? {} : { signal }),
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
