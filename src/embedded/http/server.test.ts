import { connect, type Socket } from "node:net";
import { once } from "node:events";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { request } from "undici";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { httpKubeApi } from "../../kube/http-api.ts";
import { CONFIG_MAPS, PODS } from "../../kube/resources.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { aPod, storeForTest } from "../store/store-for-test.ts";
import { type EmbeddedApi, type EmbeddedApiOptions, startEmbeddedApi } from "./server.ts";

let store: ObjectStore;
let clock: VirtualClock;
let server: EmbeddedApi;
const open = (more: Partial<EmbeddedApiOptions> = {}): Promise<EmbeddedApi> =>
  startEmbeddedApi({ store, clock, podLogs: { read: logOf }, ...more });

async function* logOf(namespace: string, pod: string, container: string, options: object): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`${namespace}/${pod}/${container} ${JSON.stringify(options)}\n`);
  yield Buffer.from("second line\n");
}

beforeEach(async () => {
  clock = new VirtualClock();
  store = storeForTest({ clock });
  server = await open();
});
afterEach(() => server.close());

interface Answer {
  readonly code: number;
  readonly type: string | undefined;
  readonly body: Record<string, unknown>;
  readonly text: string;
  readonly headers: Record<string, unknown>;
}

interface Sent {
  readonly body?: unknown;
  readonly type?: string;
  readonly headers?: Record<string, string>;
}

async function call(
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
  path: string,
  { body, type = "application/json", headers = {} }: Sent = {},
): Promise<Answer> {
  const response = await request(`${server.url}${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { "content-type": type }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.body.text();
  const isJson = String(response.headers["content-type"]).startsWith("application/json");
  return {
    code: response.statusCode,
    type: response.headers["content-type"] as string | undefined,
    body: isJson ? (JSON.parse(text) as Record<string, unknown>) : {},
    text,
    headers: response.headers,
  };
}

const MAPS = "/api/v1/namespaces/default/configmaps";
const map = (name: string): object => ({ metadata: { name }, data: { a: "1" } });

test("a body needs no kind and apiVersion; a list's items of built-in kinds have none", async () => {
  const created = await call("POST", MAPS, { body: map("a") });
  const list = await call("GET", MAPS);

  expect([created.code, created.body]).toEqual([201, expect.objectContaining({ kind: "ConfigMap", apiVersion: "v1" })]);
  expect(list.body).toEqual({
    kind: "ConfigMapList",
    apiVersion: "v1",
    metadata: { resourceVersion: String(store.revision) },
    items: [{ metadata: expect.objectContaining({ name: "a" }), data: { a: "1" } }],
  });
  store.create(CONFIG_MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "b", namespace: "default" } });
  expect((await call("GET", `${MAPS}?limit=1`)).body["metadata"]).toEqual({
    resourceVersion: String(store.revision),
    continue: expect.any(String),
    remainingItemCount: 1,
  });
});

test("errors are a Status; an unknown path is plain text", async () => {
  const missing = await call("GET", `${MAPS}/nobody`);
  const unknown = await call("GET", "/apis/example.com/v1/things");

  expect(missing.body).toEqual({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: 'configmaps "nobody" not found',
    reason: "NotFound",
    details: { name: "nobody", kind: "configmaps" },
    code: 404,
  });
  expect([unknown.code, unknown.type, unknown.text]).toEqual([404, "text/plain; charset=utf-8", "404 page not found\n"]);
});

test("what is malformed gets a 4xx and changes nothing", async () => {
  const before = store.revision;
  const answers = [
    await call("POST", MAPS, { body: "{" }),
    await call("POST", MAPS, { body: "[]" }),
    await call("POST", MAPS, { body: "a: b", type: "text/plain" }),
    await call("POST", MAPS, { body: "k8s\0", type: "application/vnd.kubernetes.protobuf" }),
    await call("POST", MAPS, { body: { metadata: { name: "a", namespace: "other" } } }),
    await call("POST", MAPS, { body: { kind: "Secret", metadata: { name: "a" } } }),
    await call("POST", MAPS, { body: { metadata: "a" } }),
    await call("POST", `${MAPS}?dryRun=Some`, { body: map("a") }),
    await call("POST", "/api/v1/configmaps", { body: map("a") }),
    await call("PUT", MAPS, { body: map("a") }),
    await call("GET", `${MAPS}?limit=-1`),
    await call("GET", `${MAPS}?labelSelector=a%20in%20b`),
    await call("GET", `${MAPS}?watch=true&resourceVersion=x`),
    await call("GET", "/api/v1/namespaces/default/configmaps/%E0%A4%A"),
    await call("PATCH", `${MAPS}/a`, { body: {}, type: "application/apply-patch+yaml" }),
    await call("PATCH", `${MAPS}/a`, { body: {}, type: "application/json" }),
  ];

  expect(answers.map((answer) => answer.code)).toEqual([400, 400, 415, 415, 400, 400, 422, 422, 405, 405, 400, 400, 400, 404, 422, 415]);
  expect(store.revision).toBe(before);
});

test("a body over 3 MiB is refused with 413, declared or not, and the server goes on", async () => {
  const large = JSON.stringify({ metadata: { name: "a" }, data: { a: "x".repeat(3 * 2 ** 20) } });
  const chunked = await request(`${server.url}${MAPS}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: Readable.from(
      (async function* () {
        for (let at = 0; at < large.length; at += 65_536) yield Buffer.from(large.slice(at, at + 65_536));
      })(),
    ),
  }).catch((error: unknown) => error as Error);

  expect((await call("POST", MAPS, { body: large })).code).toBe(413);
  // The server may end the connection while the client is still sending.
  if (!(chunked instanceof Error)) expect(chunked.statusCode).toBe(413);
  expect((await call("POST", MAPS, { body: map("b") })).code).toBe(201);
});

test("fieldValidation: Strict refuses an unknown field, Warn warns, Ignore takes it", async () => {
  const body = { metadata: { name: "p", lables: {} }, spec: { containers: [{ name: "main", imagePullPolcy: "x" }] } };
  const pods = "/api/v1/namespaces/default/pods?dryRun=All&fieldValidation=";
  const strict = await call("POST", `${pods}Strict`, { body });
  const warned = await call("POST", `${pods}Warn`, { body });

  expect([strict.code, strict.body["message"]]).toEqual([
    400,
    'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "metadata.lables", unknown field "spec.containers[0].imagePullPolcy"',
  ]);
  expect([warned.code, warned.headers["warning"]]).toEqual([
    201,
    '299 - "unknown field \\"metadata.lables\\"", 299 - "unknown field \\"spec.containers[0].imagePullPolcy\\""',
  ]);
  expect((await call("POST", `${pods}Ignore`, { body })).headers["warning"]).toBeUndefined();
});

test("DELETE answers the pod, a Status with the uid, or the object that is held", async () => {
  store.create(PODS, aPod("p", { spec: { nodeName: "n1" } }));
  store.create(CONFIG_MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "default" } });
  store.create(CONFIG_MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "held", namespace: "default", finalizers: ["a/b"] } });
  const answers = [
    await call("DELETE", "/api/v1/namespaces/default/pods/p", { body: { gracePeriodSeconds: 3 } }),
    await call("DELETE", `${MAPS}/a`),
    await call("DELETE", `${MAPS}/held?propagationPolicy=Background`),
  ];

  expect(answers.map((answer) => answer.body)).toEqual([
    expect.objectContaining({ kind: "Pod", metadata: expect.objectContaining({ deletionGracePeriodSeconds: 3 }) }),
    expect.objectContaining({ kind: "Status", status: "Success", details: { name: "a", kind: "configmaps", uid: expect.any(String) } }),
    expect.objectContaining({ kind: "ConfigMap", metadata: expect.objectContaining({ finalizers: ["a/b"] }) }),
  ]);
});

test("a collection is deleted by selection", async () => {
  for (const [name, tier] of [
    ["a", "x"],
    ["b", "y"],
  ] as const)
    store.create(CONFIG_MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "default", labels: { tier } } });
  await call("DELETE", `${MAPS}?labelSelector=tier%3Dx`);

  expect(store.list(CONFIG_MAPS).items.map((item) => item.metadata.name)).toEqual(["b"]);
});

test("what is not served is refused with a sentence", async () => {
  store.create(PODS, aPod("p"));
  const pod = "/api/v1/namespaces/default/pods/p";
  for (const subresource of ["exec", "attach", "portforward", "proxy", "ephemeralcontainers"]) {
    const { code, body } = await call("POST", `${pod}/${subresource}`, { body: {} });
    expect([code, body["reason"], body["message"]]).toEqual([
      501,
      "NotImplemented",
      expect.stringMatching(/^the embedded cluster does not serve .{10,}/),
    ]);
  }
  expect((await call("GET", `${pod}/nonsense`)).code).toBe(404);
});

test("logs are passed on in pieces, cut at limitBytes; an unknown container is a 400", async () => {
  store.create(PODS, aPod("p"));
  const log = "/api/v1/namespaces/default/pods/p/log";

  expect((await call("GET", `${log}?tailLines=7&follow=true`)).text).toBe(
    'default/p/main {"follow":true,"tailLines":7,"previous":false}\nsecond line\n',
  );
  expect((await call("GET", `${log}?limitBytes=9`)).text).toBe("default/p");
  expect((await call("GET", `${log}?container=other`)).code).toBe(400);
  expect((await call("GET", "/api/v1/namespaces/default/pods/nobody/log")).code).toBe(404);
});

test("the scale of a workload is read and written without the rest", async () => {
  const spec = {
    replicas: 2,
    selector: { matchLabels: { app: "web" } },
    template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "main" }] } },
  };
  await call("POST", "/apis/apps/v1/namespaces/default/deployments", { body: { metadata: { name: "web" }, spec } });
  const scale = "/apis/apps/v1/namespaces/default/deployments/web/scale";
  const read = await call("GET", scale);
  const written = await call("PATCH", scale, { body: { spec: { replicas: 5 } }, type: "application/merge-patch+json" });
  const stale = await call("PUT", scale, { body: read.body });

  expect(read.body).toMatchObject({
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    spec: { replicas: 2 },
    status: { replicas: 0, selector: "app=web" },
  });
  expect([written.body["spec"], stale.code]).toEqual([{ replicas: 5 }, 409]);
});

test("only loopback names and no web page may ask", async () => {
  const codes = [
    await call("GET", "/version", { headers: { origin: "https://evil.example" } }),
    await call("GET", "/version", { headers: { host: "evil.example:80" } }),
    await call("GET", "/version", { headers: { host: "127.evil.example:80" } }),
    await call("GET", "/version", { headers: { host: "localhost:1" } }),
  ].map((answer) => answer.code);

  expect(codes).toEqual([403, 403, 403, 200]);
});

test("JSON is served to who would rather have protobuf, and nothing to who takes only that", async () => {
  const accepts = ["application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf", "*/*"];
  const codes = [];
  for (const accept of accepts) codes.push((await call("GET", MAPS, { headers: { accept } })).code);

  expect(codes).toEqual([200, 406, 200]);
});

test("an address that is not loopback demands a token, and the token is checked", async () => {
  await expect(open({ host: "0.0.0.0" })).rejects.toMatchObject({ code: "embedded_api_open" });
  await server.close();
  server = await open({ token: "secret" });

  expect((await call("GET", "/version")).code).toBe(401);
  expect((await call("GET", "/version", { headers: { authorization: "Bearer wrong!" } })).code).toBe(401);
  expect((await call("GET", "/version", { headers: { authorization: "Bearer secret" } })).code).toBe(200);
});

test("a port that is taken is a clear error", async () => {
  await expect(open({ port: Number(new URL(server.url).port) })).rejects.toMatchObject({
    code: "embedded_api_bind",
    found: expect.stringContaining("EADDRINUSE"),
  });
});

/** A raw watch, so that the test decides when it reads. */
async function rawWatch(query: string): Promise<{ readonly socket: Socket; readonly text: () => string }> {
  const { port } = new URL(server.url);
  const socket = connect(Number(port), "127.0.0.1");
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(`GET ${MAPS}?watch=true&${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  return { socket, text: () => text };
}

test("a watcher that does not read is cut off, and its watch forgotten", async () => {
  const { socket, text } = await rawWatch("resourceVersion=");
  await expect.poll(text).toContain("200 OK");
  socket.pause();
  expect(store.watcherCount).toBe(1);
  const data = { a: "x".repeat(500_000) };
  for (let index = 0; index < 40; index += 1)
    store.create(CONFIG_MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `m${index}`, namespace: "default" }, data });

  expect(store.watcherCount).toBe(0);
  socket.destroy();
});

test("a client that leaves takes its watch along, even in the middle of events", async () => {
  const { socket, text } = await rawWatch("resourceVersion=");
  await expect.poll(text).toContain("200 OK");
  socket.resetAndDestroy();
  for (let index = 0; store.watcherCount > 0; index += 1) {
    store.create(CONFIG_MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `m${index}`, namespace: "default" } });
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect((await call("GET", MAPS)).code).toBe(200);
});

test("sendInitialEvents replaces the list: everything, then a marked bookmark", async () => {
  store.create(CONFIG_MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "default" } });
  const { socket, text } = await rawWatch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
  await expect.poll(text).toContain("initial-events-end");
  socket.destroy();

  expect(text()).toMatch(/"type":"ADDED"[\s\S]*"name":"a"[\s\S]*"type":"BOOKMARK"[\s\S]*"k8s.io\/initial-events-end":"true"/);
  expect((await call("GET", `${MAPS}?watch=true&sendInitialEvents=true`)).code).toBe(422);
});

test("what is there when a watch begins may be more than a client may leave unread: it goes out as it is read", async () => {
  const data = { text: "x".repeat(600_000) };
  for (let count = 0; count < 20; count++)
    store.create(CONFIG_MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `large-${count}`, namespace: "default" }, data });
  const api = httpKubeApi({ baseUrl: server.url });
  const ending = new AbortController();
  const told: string[] = [];
  for await (const event of api.watch(CONFIG_MAPS, { resourceVersion: "", sendInitialEvents: true }, ending.signal)) {
    if (told.length === 0)
      store.create(CONFIG_MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "later", namespace: "default" } });
    told.push("object" in event ? event.object.metadata.name : `marked ${event.type === "BOOKMARK" && event.endsInitialEvents === true}`);
    if (event.type === "BOOKMARK") ending.abort();
  }
  await api.close();

  expect(told.slice(-3)).toEqual(["large-9", "later", "marked true"]);
  expect(told).toHaveLength(22);
});

test("closing ends watches in order", async () => {
  const { socket, text } = await rawWatch("resourceVersion=");
  await expect.poll(text).toContain("200 OK");
  const ended = once(socket, "end");
  await server.close();
  await ended;

  expect(text().endsWith("0\r\n\r\n")).toBe(true);
  server = await open();
});

test("discovery is served aggregated and as before, with the eviction of pods in both", async () => {
  const aggregated = await call("GET", "/apis", {
    headers: { accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json" },
  });
  const core = await call("GET", "/api", { headers: { accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" } });
  const legacy = await call("GET", "/api/v1");

  expect(aggregated.type).toBe("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
  expect(JSON.stringify(core.body)).toContain(
    '"subresource":"eviction","responseKind":{"group":"policy","version":"v1","kind":"Eviction"}',
  );
  expect(legacy.body["resources"]).toEqual(
    expect.arrayContaining([expect.objectContaining({ name: "pods/eviction", group: "policy", version: "v1", kind: "Eviction" })]),
  );
  expect((await call("GET", "/apis")).body["kind"]).toBe("APIGroupList");
  expect((await call("GET", "/apis/apps")).body["preferredVersion"]).toEqual({ groupVersion: "apps/v1", version: "v1" });
  expect((await call("GET", "/apis/relevo.dev/v1alpha1")).body["kind"]).toBe("APIResourceList");
  expect((await call("GET", "/openapi/v3")).body["paths"]).toMatchObject({
    "api/v1": { serverRelativeURL: expect.stringMatching(/^\/openapi\/v3\/api\/v1\?hash=/) },
  });
});

test("a long list comes whole", async () => {
  const data = { a: "ü".repeat(1_000) };
  for (let index = 0; index < 1_000; index += 1)
    store.create(CONFIG_MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `m${index}`, namespace: "default" }, data });
  const { body } = await call("GET", MAPS);

  expect((body["items"] as { data: object }[]).map((item) => item.data)).toEqual(Array.from({ length: 1_000 }, () => data));
});
