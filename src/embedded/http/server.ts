/** The embedded cluster's API server: the object store, spoken to as to a Kubernetes API server. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { timingSafeEqual } from "node:crypto";
import type { Clock } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { isLoopback, isLoopbackHostHeader } from "../../kernel/loopback.ts";
import { KubeApiError, type ObjectRef } from "../../kube/api.ts";
import type { KindSpec } from "../kinds.ts";
import { methodNotAllowed, noSuchResource } from "../store/api-errors.ts";
import type { Validator } from "../store/object-rules.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { sendError, sendJson, sendText } from "./answer.ts";
import { parseObject, readBody } from "./body.ts";
import { type ApiContext, type Exchange, ObjectTexts, isTrue } from "./context.ts";
import { AGGREGATED_TYPE, aggregatedDiscovery, coreVersions, groupList, groupOf, resourceList } from "./discovery.ts";
import { openApiDocument, openApiIndex } from "./openapi.ts";
import { OPENAPI_V2_ACCEPT, OPENAPI_V2_TYPE, openApiV2 } from "./openapi-v2.ts";
import type { PodLogs } from "./pod-logs.ts";
import { sendList, sendObject } from "./reads.ts";
import { routeTo } from "./route.ts";
import { serveSubresource } from "./subresources.ts";
import { streamWatch } from "./watch-stream.ts";
import { createObject, deleteCollection, deleteObject, patchObject, replaceObject } from "./writes.ts";

export interface EmbeddedApiOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  /** 127.0.0.1 by default; any other than a loopback address demands a token. */
  readonly host?: string | undefined;
  /** 0 (the default) takes any free one. */
  readonly port?: number | undefined;
  readonly podLogs: PodLogs;
  /** By `kindKey`, `relevo.dev/v1alpha1/pools`: what is wrong with an object; it is refused with 422 and these as causes. */
  readonly validators?: Readonly<Record<string, Validator>> | undefined;
  readonly token?: string | undefined;
}

export interface EmbeddedApi {
  /** `http://127.0.0.1:PORT`, for a kubeconfig's `server`. */
  readonly url: string;
  /** Ends the watches in order, then the connections. */
  close(): Promise<void>;
}

const KEEP_ALIVE_MS = 60_000;
const CONNECTIONS_MAX = 4_096;
/** How long a client has, after the server closes, to take what was sent. */
const CLOSE_GRACE_MS = 1_000;

/** Errors: `RelevoError` when the address cannot be bound or would be open to everybody. */
export async function startEmbeddedApi(options: EmbeddedApiOptions): Promise<EmbeddedApi> {
  const { host = "127.0.0.1", port = 0, token } = options;
  if (!isLoopback(host) && token === undefined) {
    throw new RelevoError("embedded_api_open", "the embedded API on an address that is not loopback demands a token", {
      found: host,
      allowed: "127.0.0.1, ::1, localhost",
    });
  }
  for (const [key, validator] of Object.entries(options.validators ?? {})) options.store.validateWith(key, validator);
  const closing = new AbortController();
  const context: ApiContext = {
    store: options.store,
    clock: options.clock,
    podLogs: options.podLogs,
    texts: new ObjectTexts(),
    closing: closing.signal,
  };
  const guard = guardFor(token, isLoopback(host));
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    serve(context, guard, request, response).catch((error: unknown) => sendError(response, error));
  });
  server.maxConnections = CONNECTIONS_MAX;
  await listen(server, host, port);
  const { address, port: bound, family } = server.address() as AddressInfo;
  return {
    url: `http://${family === "IPv6" ? `[${address}]` : address}:${bound}`,
    async close() {
      closing.abort();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      options.clock.after(CLOSE_GRACE_MS, () => server.closeAllConnections());
      await closed;
    },
  };
}

function listen(server: ReturnType<typeof createServer>, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause) =>
      reject(
        new RelevoError("embedded_api_bind", `the embedded API cannot listen on ${host}:${port}`, {
          found: cause.message,
          todo: "choose another port",
          cause,
        }),
      ),
    );
    server.listen(port, host, () => resolve());
  });
}

type Guard = (request: IncomingMessage) => void;

/** Who may ask: nobody from a web page, and on loopback only who calls it by a loopback name (or a page could, by its own DNS). */
function guardFor(token: string | undefined, onLoopback: boolean): Guard {
  const expected = token === undefined ? undefined : Buffer.from(`Bearer ${token}`);
  return (request) => {
    if (request.headers.origin !== undefined || (onLoopback && !isLoopbackHostHeader(request.headers.host))) {
      throw new KubeApiError({ code: 403, reason: "Forbidden", message: "the embedded API does not serve web pages" }, "refused");
    }
    if (expected === undefined) return;
    const given = Buffer.from(request.headers.authorization ?? "");
    if (given.length !== expected.length || !timingSafeEqual(given, expected))
      throw new KubeApiError({ code: 401, reason: "Unauthorized", message: "Unauthorized" }, "refused");
  };
}

async function serve(context: ApiContext, guard: Guard, request: IncomingMessage, response: ServerResponse): Promise<void> {
  // A client that has left: whatever was being written is for nobody, and nobody else must suffer.
  response.on("error", () => response.destroy());
  guard(request);
  const [path = "/", search = ""] = (request.url ?? "/").split("?", 2);
  const exchange: Exchange = { method: request.method ?? "GET", path, query: new URLSearchParams(search), request, response };
  const route = routeTo(path, context.store.kinds);
  if (!route) return exchange.method === "POST" && path === ACCESS_REVIEWS ? reviewAccess(exchange) : serveDocument(context, exchange);
  checkAccept(request.headers.accept);
  if (route.to === "collection") return serveCollection(context, exchange, route.kind, route.namespace);
  const ref: ObjectRef = { type: route.kind, namespace: route.namespace, name: route.name };
  const { subresource } = route;
  if (subresource === undefined) return serveObject(context, exchange, route.kind, ref, undefined);
  if ((subresource === "status" || subresource === "finalize") && route.kind.subresources.includes(subresource)) {
    return serveObject(context, exchange, route.kind, ref, subresource);
  }
  return serveSubresource(context, exchange, route.kind, ref, subresource);
}

/** Who takes protobuf alone cannot be served; who prefers it and takes JSON too, can. */
function checkAccept(accept: string | undefined): void {
  if (accept === undefined || accept === "" || /json|\*\/\*|text\/|application\/\*/.test(accept)) return;
  throw new KubeApiError(
    { code: 406, reason: "NotAcceptable", message: "only the following media types are accepted: application/json" },
    "refused",
  );
}

async function serveCollection(context: ApiContext, exchange: Exchange, kind: KindSpec, namespace: string | undefined): Promise<void> {
  switch (exchange.method) {
    case "GET":
      return isTrue(exchange.query, "watch")
        ? streamWatch(context, exchange, kind, namespace)
        : sendList(context, exchange, kind, namespace);
    case "POST":
      return createObject(context, exchange, kind, namespace);
    case "DELETE":
      return deleteCollection(context, exchange, kind, namespace);
    default:
      throw methodNotAllowed("the server does not allow this method on the requested resource");
  }
}

async function serveObject(
  context: ApiContext,
  exchange: Exchange,
  kind: KindSpec,
  ref: ObjectRef,
  part: "status" | "finalize" | undefined,
): Promise<void> {
  switch (exchange.method) {
    case "GET":
      return sendObject(context, exchange, kind, context.store.get(ref));
    case "PUT":
      return replaceObject(context, exchange, kind, ref, part);
    case "PATCH":
      return patchObject(context, exchange, kind, ref, part);
    case "DELETE":
      if (part === undefined) return deleteObject(context, exchange, kind, ref);
      throw methodNotAllowed("the server does not allow this method on the requested resource");
    default:
      throw methodNotAllowed("the server does not allow this method on the requested resource");
  }
}

const VERSION = {
  major: "1",
  minor: "35",
  gitVersion: "v1.35.0+relevo",
  gitTreeState: "clean",
  goVersion: "none",
  compiler: "none",
  platform: "node",
};

const ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/** Whoever may ask at all may do everything: there are no roles here. */
async function reviewAccess({ request, response }: Exchange): Promise<void> {
  const { spec } = parseObject(await readBody(request));
  const status = { allowed: true, reason: "the embedded cluster has no roles" };
  sendJson(response, 201, { kind: "SelfSubjectAccessReview", apiVersion: "authorization.k8s.io/v1", metadata: {}, spec, status });
}

/** Below a version that is served an unknown resource is told in a Status, elsewhere in plain text. */
function unknownPath({ kinds }: ApiContext["store"], path: string): KubeApiError {
  const [root, first = "", second = "", ...rest] = path.split("/").filter((part) => part !== "");
  const isServed = root === "api" ? second !== "" : root === "apis" && rest.length > 0 && resourceList(kinds, first, second) !== undefined;
  return isServed ? noSuchResource() : new KubeApiError({ code: 404, message: "404 page not found" }, "unknown path");
}

/** Discovery, OpenAPI, version, health. */
function serveDocument(context: ApiContext, exchange: Exchange): void {
  const { response, path } = exchange;
  if (exchange.method !== "GET") return sendError(response, unknownPath(context.store, path));
  if (["/healthz", "/readyz", "/livez"].includes(path)) return sendText(response, 200, "ok");
  const { kinds } = context.store;
  const isAggregated = exchange.request.headers.accept?.includes("as=APIGroupDiscoveryList") ?? false;
  if (isAggregated && (path === "/api" || path === "/apis")) {
    return sendJson(response, 200, aggregatedDiscovery(kinds, path === "/api"), { "content-type": AGGREGATED_TYPE });
  }
  if (path === "/openapi/v2" && exchange.request.headers.accept?.includes(OPENAPI_V2_ACCEPT)) {
    return void response.writeHead(200, { "content-type": OPENAPI_V2_TYPE }).end(openApiV2(kinds));
  }
  const document = documentAt(context, path.replace(/\/$/, ""));
  if (document === undefined) return sendError(response, unknownPath(context.store, path));
  sendJson(response, 200, document);
}

function documentAt({ store: { kinds } }: ApiContext, path: string): unknown {
  if (path === "/version") return VERSION;
  if (path === "/api") return coreVersions();
  if (path === "/apis") return groupList(kinds);
  if (path === "/openapi/v3") return openApiIndex(kinds);
  if (path.startsWith("/openapi/v3/")) return openApiDocument(kinds, path.slice("/openapi/v3/".length));
  const [root, first = "", second, ...more] = path.split("/").filter((part) => part !== "");
  if (more.length > 0) return undefined;
  if (root === "api" && second === undefined) return resourceList(kinds, "", first);
  if (root !== "apis") return undefined;
  return second === undefined ? groupOf(kinds, first) : resourceList(kinds, first, second);
}
