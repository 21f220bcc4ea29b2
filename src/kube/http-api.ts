/** The KubeApi port over HTTP, against any API server. */
import { Agent, type Dispatcher, ProxyAgent, request } from "undici";
import { RelevoError } from "../kernel/errors.ts";
import {
  type DeleteOptions,
  type KubeApi,
  KubeApiError,
  type KubeList,
  type KubeObject,
  type KubeObjectDraft,
  type KubeStatus,
  type ListOptions,
  type ObjectRef,
  type ResourceType,
  type WatchEvent,
  type WatchOptions,
} from "./api.ts";
import { JsonLines } from "./json-lines.ts";
import { apiVersionOf } from "./resources.ts";

export interface HttpKubeApiOptions {
  /** `https://10.0.0.1:6443`, `http://127.0.0.1:8001`; a path is kept. */
  readonly baseUrl: string;
  readonly token?: string | undefined;
  /** Headers that change while the process lives (rotated tokens, exec plugins); asked before each request. */
  readonly authorize?: (() => Promise<Readonly<Record<string, string>>>) | undefined;
  readonly ca?: string | Buffer | undefined;
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
  readonly insecureSkipTlsVerify?: boolean | undefined;
  readonly tlsServerName?: string | undefined;
  readonly proxyUrl?: string | undefined;
  /** For a request other than a watch, and for a watch's first byte. */
  readonly requestTimeoutMs?: number | undefined;
  /** A watch that is silent for longer is broken: servers send a bookmark about every minute. */
  readonly watchSilenceMs?: number | undefined;
  readonly responseBytesMax?: number | undefined;
}

/** Who wrote a field, in the object's managedFields. */
const FIELD_MANAGER = "relevo";
const REQUEST_TIMEOUT_MS = 30_000;
const WATCH_SILENCE_MS = 150_000;
const RESPONSE_BYTES_MAX = 256 * 2 ** 20;
const ERROR_BYTES_MAX = 2 ** 20;
const EVENT_BYTES_MAX = 16 * 2 ** 20;
const CONNECT_TIMEOUT_MS = 10_000;

/** Errors: `KubeApiError` when the server answered with one; a retryable `RelevoError` when it cannot be reached or the connection breaks. */
export function httpKubeApi(options: HttpKubeApiOptions): KubeApi & { close(): Promise<void> } {
  return new HttpKubeApi(options);
}

interface Call {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly contentType?: string;
}

class HttpKubeApi implements KubeApi {
  readonly #options: HttpKubeApiOptions;
  readonly #base: string;
  readonly #dispatcher: Dispatcher;
  readonly #user: string | undefined;

  constructor(options: HttpKubeApiOptions, dispatcher: Dispatcher = dispatcherFor(options), user?: string) {
    this.#options = options;
    this.#base = options.baseUrl.replace(/\/+$/, "");
    this.#dispatcher = dispatcher;
    this.#user = user;
  }

  /** Over the same connections. */
  as(user: string): KubeApi {
    return new HttpKubeApi(this.#options, this.#dispatcher, user);
  }

  close(): Promise<void> {
    return this.#dispatcher.destroy();
  }

  get(ref: ObjectRef): Promise<KubeObject> {
    return this.#json<KubeObject>({ method: "GET", path: objectPath(ref) });
  }

  async list(type: ResourceType, options: ListOptions = {}): Promise<KubeList> {
    const { namespace, ...query } = options;
    const list = await this.#json<ListBody>({ method: "GET", path: collectionPath(type, namespace), query });
    const apiVersion = apiVersionOf(type);
    // Items of built-in kinds come without their kind.
    const items = (list.items ?? []).map((item): KubeObject => ({ ...item, apiVersion, kind: type.kind }));
    const { resourceVersion = "", continue: next } = list.metadata ?? {};
    return next === undefined || next === "" ? { resourceVersion, items } : { resourceVersion, items, continue: next };
  }

  async *watch(type: ResourceType, options: WatchOptions, signal: AbortSignal): AsyncGenerator<WatchEvent, void, undefined> {
    const { namespace, ...query } = options;
    const call: Call = {
      method: "GET",
      path: collectionPath(type, namespace),
      query: { ...query, watch: true, allowWatchBookmarks: true },
    };
    if (signal.aborted) return;
    try {
      const response = await this.#send(call, signal);
      const lines = new JsonLines(EVENT_BYTES_MAX);
      for await (const chunk of response.body) for (const line of lines.push(chunk as Buffer)) yield watchEvent(line);
    } catch (error) {
      if (signal.aborted) return;
      throw brokenConnection(error, call);
    }
  }

  create(type: ResourceType, object: KubeObjectDraft, options: { readonly namespace?: string | undefined } = {}): Promise<KubeObject> {
    const namespace = type.namespaced ? (options.namespace ?? object.metadata.namespace) : undefined;
    return this.#json<KubeObject>({
      method: "POST",
      path: collectionPath(type, namespace),
      query: { fieldManager: FIELD_MANAGER },
      body: object,
    });
  }

  replace(ref: ObjectRef, object: KubeObjectDraft): Promise<KubeObject> {
    return this.#json<KubeObject>({ method: "PUT", path: objectPath(ref), query: { fieldManager: FIELD_MANAGER }, body: object });
  }

  patch(ref: ObjectRef, body: Readonly<Record<string, unknown>>): Promise<KubeObject> {
    return this.#patch(objectPath(ref), body);
  }

  patchStatus(ref: ObjectRef, body: Readonly<Record<string, unknown>>): Promise<KubeObject> {
    return this.#patch(`${objectPath(ref)}/status`, body);
  }

  #patch(path: string, body: unknown): Promise<KubeObject> {
    return this.#json<KubeObject>({
      method: "PATCH",
      path,
      query: { fieldManager: FIELD_MANAGER },
      body,
      contentType: "application/merge-patch+json",
    });
  }

  async delete(ref: ObjectRef, options: DeleteOptions = {}): Promise<void> {
    await this.#json({ method: "DELETE", path: objectPath(ref), body: { apiVersion: "v1", kind: "DeleteOptions", ...options } });
  }

  async evict(ref: ObjectRef, options: DeleteOptions = {}): Promise<void> {
    const metadata = { name: ref.name, namespace: ref.namespace };
    const body = { apiVersion: "policy/v1", kind: "Eviction", metadata, deleteOptions: options };
    await this.#json({ method: "POST", path: `${objectPath(ref)}/eviction`, body });
  }

  async #json<T>(call: Call): Promise<T> {
    try {
      const response = await this.#send(call);
      const text = await boundedText(response.body, this.#options.responseBytesMax ?? RESPONSE_BYTES_MAX, call);
      return parseJson<T>(text, call);
    } catch (error) {
      throw brokenConnection(error, call);
    }
  }

  async #send(call: Call, signal?: AbortSignal): Promise<Dispatcher.ResponseData> {
    const { token, authorize, requestTimeoutMs = REQUEST_TIMEOUT_MS, watchSilenceMs = WATCH_SILENCE_MS } = this.#options;
    const credentials = await authorize?.().catch((cause: unknown) => {
      const found = cause instanceof Error ? cause.message : String(cause);
      throw new RelevoError("kube_credentials", "the credentials for the API server could not be had", {
        class: "retryable",
        found,
        cause,
      });
    });
    const response = await request(`${this.#base}${call.path}${queryText(call.query)}`, {
      method: call.method,
      dispatcher: this.#dispatcher,
      headersTimeout: requestTimeoutMs,
      bodyTimeout: signal === undefined ? requestTimeoutMs : watchSilenceMs,
      headers: {
        accept: "application/json",
        ...(call.body === undefined ? {} : { "content-type": call.contentType ?? "application/json" }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...credentials,
        // The groups of a service account are added by the server.
        ...(this.#user === undefined ? {} : { "impersonate-user": this.#user }),
      },
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    if (response.statusCode >= 300) throw await refusal(response, call);
    return response;
  }
}

interface ListBody {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  /** Null when there are none, from some servers. */
  readonly items?: readonly KubeObject[] | null;
}

function dispatcherFor(options: HttpKubeApiOptions): Dispatcher {
  const { ca, cert, key, insecureSkipTlsVerify, tlsServerName, proxyUrl } = options;
  const tls = {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(insecureSkipTlsVerify ? { rejectUnauthorized: false } : {}),
    ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
  };
  if (proxyUrl !== undefined) return new ProxyAgent({ uri: proxyUrl, requestTls: tls });
  return new Agent({ connect: { ...tls, timeout: CONNECT_TIMEOUT_MS }, pipelining: 1 });
}

function collectionPath(type: ResourceType, namespace: string | undefined): string {
  const root = type.group === "" ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  const scope = type.namespaced && namespace !== undefined && namespace !== "" ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${root}${scope}/${type.plural}`;
}

function objectPath(ref: ObjectRef): string {
  return `${collectionPath(ref.type, ref.namespace)}/${encodeURIComponent(ref.name)}`;
}

function queryText(query: Call["query"]): string {
  const given = Object.entries(query ?? {}).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)] as const]));
  return given.length === 0 ? "" : `?${new URLSearchParams(Object.fromEntries(given)).toString()}`;
}

async function boundedText(body: AsyncIterable<Uint8Array>, bytesMax: number, call: Call): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > bytesMax) {
      throw new RelevoError(
        "kube_response_too_large",
        `the API server's answer to ${call.method} ${call.path} is larger than ${bytesMax} bytes`,
        { todo: "read it in pages" },
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes).toString("utf8");
}

function parseJson<T>(text: string, call: Call): T {
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new RelevoError("kube_bad_answer", `the API server's answer to ${call.method} ${call.path} is no JSON`, {
      class: "retryable",
      found: text.slice(0, 200),
      cause,
    });
  }
}

/** The error that the server answered with; an unknown path gives plain text and no Status. */
async function refusal(response: Dispatcher.ResponseData, call: Call): Promise<KubeApiError> {
  const text = await boundedText(response.body, ERROR_BYTES_MAX, call);
  const what = `${call.method} ${call.path}`;
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

function watchEvent(line: unknown): WatchEvent {
  const { type, object } = line as { readonly type: string; readonly object: KubeObject };
  switch (type) {
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      return { type, object };
    case "BOOKMARK":
      return { type, resourceVersion: object.metadata.resourceVersion };
    case "ERROR":
      return { type, status: object as unknown as KubeStatus };
    default:
      throw new RelevoError("kube_bad_answer", "the API server sent a watch event of an unknown type", {
        class: "retryable",
        found: type,
        allowed: "ADDED, MODIFIED, DELETED, BOOKMARK, ERROR",
      });
  }
}

const TIMEOUT_CODES: readonly unknown[] = ["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "UND_ERR_CONNECT_TIMEOUT"];

function brokenConnection(error: unknown, call: Call): RelevoError {
  if (error instanceof RelevoError) return error;
  const code = (error as { readonly code?: unknown } | undefined)?.code;
  const what = `${call.method} ${call.path}`;
  if (TIMEOUT_CODES.includes(code))
    return new RelevoError("kube_timeout", `the API server did not answer ${what} in time`, { class: "retryable", cause: error });
  return new RelevoError("kube_unreachable", `the connection to the API server broke at ${what}`, {
    class: "retryable",
    found: code ?? String(error),
    cause: error,
  });
}
