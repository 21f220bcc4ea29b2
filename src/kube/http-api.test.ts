import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { kubeApiContract } from "../../test/contracts/kube-api.ts";
import { startEmbeddedApi } from "../embedded/http/server.ts";
import { storeForTest } from "../embedded/store/store-for-test.ts";
import { RelevoError } from "../kernel/errors.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { asServiceAccount, beforeOthers, KubeApiError, type WatchEvent } from "./api.ts";
import { type HttpKubeApiOptions, httpKubeApi } from "./http-api.ts";
import { RateLimiter } from "./limiter.ts";
import { CONFIG_MAPS, PODS } from "./resources.ts";

kubeApiContract("HTTP", async () => {
  const clock = new VirtualClock();
  const store = storeForTest({ clock });
  const server = await startEmbeddedApi({
    store,
    clock,
    podLogs: {
      read() {
        throw new RelevoError("no_logs", "no pods run here");
      },
    },
  });
  const api = httpKubeApi({ baseUrl: server.url });
  return {
    api,
    advance: (ms) => clock.advance(ms),
    forgetHistory: () => store.forgetHistory(),
    async close() {
      await api.close();
      await server.close();
      expect(store.watcherCount).toBe(0);
    },
  };
});

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** A client of a server that answers everything with the listener. */
async function against(listener: RequestListener, options: Partial<HttpKubeApiOptions> = {}) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const api = httpKubeApi({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, ...options });
  closers.push(async () => {
    await api.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return api;
}

const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => "accepted",
    (error: unknown) => (error instanceof RelevoError ? [error.code, error.class] : error),
  );

const line = (type: string, name: string): string =>
  `${JSON.stringify({ type, object: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `${name}ü`, resourceVersion: "7" } } })}\n`;

test("a watch is framed by newlines: lines split anywhere, even inside a character, and several lines in a chunk", async () => {
  const bytes = Buffer.from(line("ADDED", "a") + line("MODIFIED", "b") + line("BOOKMARK", "c"));
  const api = await against(async (_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    for (let at = 0; at < bytes.length; at += 7) {
      response.write(bytes.subarray(at, at + 7));
      await new Promise((resolve) => setImmediate(resolve));
    }
    response.end(line("DELETED", "d") + line("ADDED", "e"));
  });
  const events: WatchEvent[] = [];
  for await (const event of api.watch(CONFIG_MAPS, { resourceVersion: "1" }, new AbortController().signal)) events.push(event);

  expect(events.map((event) => ("object" in event ? `${event.type} ${event.object.metadata.name}` : event))).toEqual([
    "ADDED aü",
    "MODIFIED bü",
    { type: "BOOKMARK", resourceVersion: "7" },
    "DELETED dü",
    "ADDED eü",
  ]);
});

test("a connection that breaks in a watch, a line that is no JSON and an unknown event are retryable errors", async () => {
  const bodies = ["half a li", "no json\n", `${JSON.stringify({ type: "SURPRISE", object: {} })}\n`];
  let count = 0;
  const api = await against((_request, response) => {
    response.writeHead(200);
    response.write(bodies[count++] ?? "");
    setImmediate(() => response.destroy());
  });
  const watchOnce = async (): Promise<void> => {
    for await (const _event of api.watch(CONFIG_MAPS, { resourceVersion: "1" }, new AbortController().signal));
  };

  expect(await failureOf(watchOnce())).toEqual(["kube_unreachable", "retryable"]);
  expect(await failureOf(watchOnce())).toEqual(["line_no_json", "retryable"]);
  expect(await failureOf(watchOnce())).toEqual(["kube_bad_answer", "retryable"]);
});

test("a server that takes the request and never answers is a retryable timeout, a closed port a retryable error", async () => {
  const silent = await against(() => undefined, { requestTimeoutMs: 50 });
  const closed = httpKubeApi({ baseUrl: "http://127.0.0.1:1" });

  expect(await failureOf(silent.list(CONFIG_MAPS))).toEqual(["kube_timeout", "retryable"]);
  expect(await failureOf(closed.list(CONFIG_MAPS))).toEqual(["kube_unreachable", "retryable"]);
  await closed.close();
});

test("an answer that is too large is refused instead of read", async () => {
  const api = await against((_request, response) => response.end(JSON.stringify({ items: ["x".repeat(2_000)] })), {
    responseBytesMax: 1_000,
  });

  expect(await failureOf(api.list(CONFIG_MAPS))).toEqual(["kube_response_too_large", "terminal"]);
});

test("an error is a KubeApiError with the server's status, with plain text or with nothing but Retry-After", async () => {
  const answers: RequestListener[] = [
    (_request, response) => response.writeHead(404, { "content-type": "text/plain" }).end("404 page not found\n"),
    (_request, response) => response.writeHead(429, { "retry-after": "3" }).end(),
    (_request, response) =>
      response.writeHead(409).end(JSON.stringify({ kind: "Status", code: 409, reason: "Conflict", message: "changed" })),
    (_request, response) => response.writeHead(503).end("<html>"),
  ];
  let count = 0;
  const api = await against((request, response) => answers[count++]?.(request, response));
  const statuses = [];
  for (const _answer of answers)
    statuses.push(
      await api.list(CONFIG_MAPS).catch((error: unknown) => (error instanceof KubeApiError ? [error.class, error.status] : error)),
    );

  expect(statuses).toEqual([
    ["terminal", { code: 404, message: "404 page not found" }],
    ["retryable", { code: 429, message: "", details: { retryAfterSeconds: 3 } }],
    ["conflict", { kind: "Status", code: 409, reason: "Conflict", message: "changed" }],
    ["retryable", { code: 503, message: "<html>" }],
  ]);
});

test("sends the token and the right content types", async () => {
  const seen: unknown[] = [];
  const api = await against(
    (request, response) => {
      seen.push([request.method, request.url, request.headers["content-type"], request.headers.authorization]);
      response.end(JSON.stringify({ metadata: {}, items: null }));
    },
    { token: "secret" },
  );
  const target = { type: CONFIG_MAPS, namespace: "a", name: "b" };
  expect(await api.list(CONFIG_MAPS, { namespace: "a", labelSelector: "x in (y)", limit: 5 })).toEqual({ resourceVersion: "", items: [] });
  await api.patch(target, {});
  await api.patchStatus(target, {});
  await api.delete(target);

  expect(seen).toEqual([
    ["GET", "/api/v1/namespaces/a/configmaps?labelSelector=x+in+%28y%29&limit=5", undefined, "Bearer secret"],
    ["PATCH", "/api/v1/namespaces/a/configmaps/b?fieldManager=relevo", "application/merge-patch+json", "Bearer secret"],
    ["PATCH", "/api/v1/namespaces/a/configmaps/b/status?fieldManager=relevo", "application/merge-patch+json", "Bearer secret"],
    ["DELETE", "/api/v1/namespaces/a/configmaps/b", "application/json", "Bearer secret"],
  ]);
});

test("a call as a ServiceAccount says so in its headers, and the caller's own identity stays with it", async () => {
  const seen: unknown[] = [];
  const api = await against(
    ({ headers }, response) => {
      seen.push([headers.authorization, headers["impersonate-user"]]);
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    },
    { token: "mine" },
  );
  const ref = { type: CONFIG_MAPS, namespace: "shop", name: "a" };
  await asServiceAccount(api, "shop", "relevo-instances").get(ref);
  await asServiceAccount(api, "shop", undefined).get(ref);
  expect(seen).toEqual([
    ["Bearer mine", "system:serviceaccount:shop:relevo-instances"],
    ["Bearer mine", undefined],
  ]);
});

test("a 401 is tried once with new credentials; nothing was done before", async () => {
  let token = "old";
  const seen: unknown[] = [];
  const credentials = {
    current: async () => ({ headers: { authorization: token }, tls: {} }),
    refused: () => {
      const isNew = token !== "new";
      token = "new";
      return isNew;
    },
  };
  const api = await against(
    ({ headers }, response) => {
      seen.push(headers.authorization);
      response.writeHead(headers.authorization === "old" || seen.length > 2 ? 401 : 200).end("{}");
    },
    { credentials },
  );

  expect(await api.get({ type: CONFIG_MAPS, namespace: "a", name: "b" })).toEqual({});
  expect(await failureOf(api.get({ type: CONFIG_MAPS, namespace: "a", name: "b" }))).toEqual(["kube_401", "terminal"]);
  expect(seen).toEqual(["old", "new", "new"]);
});

test("an overloaded server is asked again after the time that it names, a few times; a budget's 429 is the caller's", async () => {
  const clock = new VirtualClock();
  let count = 0;
  const api = await against((_request, response) => response.writeHead(++count % 3 === 0 ? 200 : 429, { "retry-after": "2" }).end("{}"), {
    limiter: new RateLimiter({ qps: 100, burst: 100 }, clock),
  });
  const target = { type: PODS, namespace: "a", name: "b" };
  const call = api.patch(target, {});
  await expect.poll(() => count).toBe(1);
  await clock.advance(1_900);
  expect(count).toBe(1);
  await clock.advance(100);
  await expect.poll(() => count).toBe(2);
  await clock.advance(2_000);
  expect(await call).toEqual({});

  expect(await failureOf(api.evict(target))).toEqual(["kube_429", "retryable"]);
  expect(count).toBe(4);
});

test("what goes before others does so with its reads too, also as another user", async () => {
  const clock = new VirtualClock();
  const seen: string[] = [];
  const api = await against(
    ({ method, url, headers }, response) => {
      seen.push(`${method} ${url?.split("/").at(-1)?.split("?")[0]} ${headers["impersonate-user"] ?? "-"}`);
      response.end("{}");
    },
    { limiter: new RateLimiter({ qps: 1, burst: 1 }, clock) },
  );
  const target = (name: string) => ({ type: PODS, namespace: "a", name });
  await api.get(target("earlier"));
  const calls = [
    api.patch(target("changed"), {}),
    beforeOthers(api).get(target("first")),
    beforeOthers(asServiceAccount(api, "a", "b")).get(target("second")),
  ];
  for (const count of [2, 3, 4]) {
    await clock.advance(1_000);
    await expect.poll(() => seen.length).toBe(count);
  }
  await Promise.all(calls);

  expect(seen).toEqual(["GET earlier -", "GET first -", "GET second system:serviceaccount:a:b", "PATCH changed -"]);
});

/** Answers with `head` and then a space after each turn, without an end; `spaces` counts them. */
function dripping(status: number, head: string) {
  const seen = { spaces: 0 };
  const listener: RequestListener = (_request, response) => {
    response.writeHead(status, { "content-type": "application/json" }).write(head);
    const drip = (): void => {
      if (response.destroyed || response.socket?.destroyed !== false) return;
      seen.spaces += 1;
      response.write(" ");
      setImmediate(drip);
    };
    drip();
  };
  return { seen, listener };
}

test.each([
  ["an answer", 200],
  ["a refusal", 500],
])("%s that drips without an end is a timeout when its time is over, however short the pauses are", async (_name, status) => {
  const clock = new VirtualClock();
  const { seen, listener } = dripping(status, "{");
  const api = await against(listener, { clock });
  const failure = failureOf(api.list(CONFIG_MAPS));
  let isOver = false;
  void failure.then(() => (isOver = true));
  await expect.poll(() => seen.spaces).toBeGreaterThan(10);
  await clock.advance(59_999);
  const before = seen.spaces;
  await expect.poll(() => seen.spaces).toBeGreaterThan(before + 10);
  expect(isOver).toBe(false);
  await clock.advance(1);

  expect(await failure).toEqual(["kube_timeout", "retryable"]);
  expect(clock.pendingTimers).toBe(0);
});

test("the time of a call begins when its turn comes, and an answer leaves no timer behind", async () => {
  const clock = new VirtualClock();
  const api = await against((_request, response) => response.end("{}"), {
    clock,
    limiter: new RateLimiter({ qps: 0.01, burst: 1 }, clock),
  });
  const ref = { type: CONFIG_MAPS, namespace: "a", name: "b" };
  expect(await api.get(ref)).toEqual({});
  const second = api.get(ref);
  await clock.advance(100_000);

  expect(await second).toEqual({});
  expect(clock.pendingTimers).toBe(0);
});

test("a watch lasts as long as it is fed; only its beginning has a time", async () => {
  const clock = new VirtualClock();
  let feed: (name: string) => void = () => undefined;
  const api = await against(
    (_request, response) => {
      response.writeHead(200);
      feed = (name) => void response.write(line("ADDED", name));
      feed("a");
    },
    { clock },
  );
  const stop = new AbortController();
  const seen: unknown[] = [];
  const watch = (async () => {
    for await (const event of api.watch(CONFIG_MAPS, { resourceVersion: "1" }, stop.signal)) seen.push(event.type);
  })();
  await expect.poll(() => seen.length).toBe(1);
  await clock.advance(600_000);
  feed("b");
  await expect.poll(() => seen.length).toBe(2);
  stop.abort();
  await watch;

  const { seen: dripped, listener } = dripping(403, "{");
  const refusing = await against(listener, { clock });
  const refused = failureOf(
    (async () => {
      for await (const _event of refusing.watch(CONFIG_MAPS, { resourceVersion: "1" }, new AbortController().signal));
    })(),
  );
  await expect.poll(() => dripped.spaces).toBeGreaterThan(10);
  await clock.advance(60_000);
  expect(await refused).toEqual(["kube_timeout", "retryable"]);
});
