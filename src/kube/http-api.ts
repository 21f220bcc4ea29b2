/** The KubeApi port over HTTP, against any API server. */
import { RelevoError } from "../kernel/errors.ts";
import {
  type DeleteOptions,
  type KubeApi,
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
import { boundedText } from "./bounded-text.ts";
import { type Call, HttpConnection, type HttpConnectionOptions } from "./http-connection.ts";
import { JsonLines } from "./json-lines.ts";
import type { CallPriority } from "./limiter.ts";
import { apiVersionOf, EVENTS } from "./resources.ts";

export interface HttpKubeApiOptions extends HttpConnectionOptions {
  readonly responseBytesMax?: number | undefined;
}

/** Who wrote a field, in the object's managedFields. */
const FIELD_MANAGER = "relevo";
const RESPONSE_BYTES_MAX = 256 * 2 ** 20;
const EVENT_BYTES_MAX = 16 * 2 ** 20;

/** Errors: `KubeApiError` when the server answered with one; a retryable `RelevoError` when it cannot be reached or the connection breaks. */
export function httpKubeApi(options: HttpKubeApiOptions): KubeApi & { close(): Promise<void> } {
  return new HttpKubeApi(options);
}

/** On the bookmark that ends the initial events. */
const INITIAL_END = "k8s.io/initial-events-end";

class HttpKubeApi implements KubeApi {
  readonly hasInitialEvents = true;
  readonly #responseBytesMax: number;
  readonly #connection: HttpConnection;
  readonly #user: string | undefined;
  /** Of each call, whatever else it would have. */
  readonly #priority: CallPriority | undefined;

  constructor(
    options: HttpKubeApiOptions,
    connection: HttpConnection = new HttpConnection(options),
    caller: { readonly user?: string | undefined; readonly priority?: CallPriority | undefined } = {},
  ) {
    this.#responseBytesMax = options.responseBytesMax ?? RESPONSE_BYTES_MAX;
    this.#connection = connection;
    this.#user = caller.user;
    this.#priority = caller.priority;
  }

  first(): KubeApi {
    return this.#with({ user: this.#user, priority: "first" });
  }

  /** Over the same connections. */
  as(user: string): KubeApi {
    return this.#with({ user, priority: this.#priority });
  }

  #with(caller: { readonly user: string | undefined; readonly priority: CallPriority | undefined }): KubeApi {
    return new HttpKubeApi({ baseUrl: "", responseBytesMax: this.#responseBytesMax }, this.#connection, caller);
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  get(ref: ObjectRef): Promise<KubeObject> {
    return this.#json<KubeObject>({ method: "GET", priority: "normal", path: objectPath(ref) });
  }

  async list(type: ResourceType, options: ListOptions = {}): Promise<KubeList> {
    const { namespace, ...query } = options;
    const list = await this.#json<ListBody>({ method: "GET", priority: "background", path: collectionPath(type, namespace), query });
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
      priority: "background",
      path: collectionPath(type, namespace),
      query: {
        ...query,
        watch: true,
        allowWatchBookmarks: true,
        ...(query.sendInitialEvents ? { resourceVersionMatch: "NotOlderThan" } : {}),
      },
      as: this.#user,
    };
    if (signal.aborted) return;
    try {
      const response = await this.#connection.open(call, signal);
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
      priority: type === EVENTS ? "background" : "urgent",
      path: collectionPath(type, namespace),
      query: { fieldManager: FIELD_MANAGER },
      body: object,
    });
  }

  replace(ref: ObjectRef, object: KubeObjectDraft): Promise<KubeObject> {
    return this.#json<KubeObject>({
      method: "PUT",
      priority: "urgent",
      path: objectPath(ref),
      query: { fieldManager: FIELD_MANAGER },
      body: object,
    });
  }

  rehearse(verb: "create" | "replace", ref: ObjectRef, object: KubeObjectDraft): Promise<KubeObject> {
    const isNew = verb === "create";
    return this.#json<KubeObject>({
      method: isNew ? "POST" : "PUT",
      priority: "normal",
      path: isNew ? collectionPath(ref.type, ref.namespace) : objectPath(ref),
      query: { fieldManager: FIELD_MANAGER, dryRun: "All" },
      body: object,
    });
  }

  patch(ref: ObjectRef, body: Readonly<Record<string, unknown>>): Promise<KubeObject> {
    return this.#patch(objectPath(ref), "urgent", body);
  }

  patchStatus(ref: ObjectRef, body: Readonly<Record<string, unknown>>): Promise<KubeObject> {
    return this.#patch(`${objectPath(ref)}/status`, "normal", body);
  }

  patchScale(ref: ObjectRef, body: Readonly<Record<string, unknown>>): Promise<KubeObject> {
    return this.#patch(`${objectPath(ref)}/scale`, "urgent", body);
  }

  #patch(path: string, priority: CallPriority, body: unknown): Promise<KubeObject> {
    return this.#json<KubeObject>({
      method: "PATCH",
      priority,
      path,
      query: { fieldManager: FIELD_MANAGER },
      body,
      contentType: "application/merge-patch+json",
    });
  }

  async delete(ref: ObjectRef, options: DeleteOptions = {}): Promise<void> {
    await this.#json({
      method: "DELETE",
      priority: "urgent",
      path: objectPath(ref),
      body: { apiVersion: "v1", kind: "DeleteOptions", ...options },
    });
  }

  async evict(ref: ObjectRef, options: DeleteOptions = {}): Promise<void> {
    const metadata = { name: ref.name, namespace: ref.namespace };
    const body = { apiVersion: "policy/v1", kind: "Eviction", metadata, deleteOptions: options };
    await this.#json({ method: "POST", priority: "urgent", path: `${objectPath(ref)}/eviction`, body });
  }

  async #json<T>(call: Call): Promise<T> {
    try {
      const text = await this.#connection.send({ ...call, priority: this.#priority ?? call.priority, as: this.#user }, ({ body }) =>
        boundedText(body, this.#responseBytesMax, `${call.method} ${call.path}`),
      );
      return parseJson<T>(text, call);
    } catch (error) {
      throw brokenConnection(error, call);
    }
  }
}

interface ListBody {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  /** Null when there are none, from some servers. */
  readonly items?: readonly KubeObject[] | null;
}

function collectionPath(type: ResourceType, namespace: string | undefined): string {
  const root = type.group === "" ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  const scope = type.namespaced && namespace !== undefined && namespace !== "" ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${root}${scope}/${type.plural}`;
}

function objectPath(ref: ObjectRef): string {
  return `${collectionPath(ref.type, ref.namespace)}/${encodeURIComponent(ref.name)}`;
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

function watchEvent(line: unknown): WatchEvent {
  const { type, object } = line as { readonly type: string; readonly object: KubeObject };
  switch (type) {
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      return { type, object };
    case "BOOKMARK":
      return {
        type,
        resourceVersion: object.metadata.resourceVersion,
        ...(object.metadata.annotations?.[INITIAL_END] === "true" ? { endsInitialEvents: true } : {}),
      };
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
