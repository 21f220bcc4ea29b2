/** Our client, reflector and election against a real API server that forgets, falls silent, stands still or is away. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { systemClock as clock, systemIds as ids, systemRandom as random } from "../../src/kernel/system.ts";
import { isGone, type KubeApi, type WatchEvent } from "../../src/kube/api.ts";
import { ControllerMembers } from "../../src/kube/election.ts";
import { loadKubeApi } from "../../src/kube/config.ts";
import { httpKubeApi } from "../../src/kube/http-api.ts";
import { RATE_DEFAULTS } from "../../src/kube/limiter.ts";
import { createInformer, type Informer } from "../../src/kube/informer.ts";
import type { ReflectorConfig } from "../../src/kube/reflector-types.ts";
import { CONFIG_MAPS, NODES } from "../../src/kube/resources.ts";
import { type RealCluster, startKubernetes } from "./cluster.ts";
import { compactEtcd } from "./etcd.ts";
import { MuteProxy } from "./mute-proxy.ts";

let cluster: RealCluster;
beforeAll(async () => {
  // Snapshots in its memory would outlive etcd's compaction for a while.
  const apiserver = ["--feature-gates", "ListFromCacheSnapshot=false"];
  cluster = await startKubernetes({ parts: [], flags: { apiserver } });
});
afterAll(() => cluster.stop());

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const PATIENCE = { timeout: 60_000, interval: 100 };

async function aNamespace(): Promise<string> {
  const name = ids.next("away");
  await cluster.kubectl("create", "namespace", name);
  return name;
}

const put = (namespace: string, name: string, api: KubeApi = cluster.api): Promise<unknown> =>
  api.create(CONFIG_MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata: { name } }, { namespace });
const remove = (namespace: string, name: string): Promise<void> => cluster.api.delete({ type: CONFIG_MAPS, namespace, name });

interface Followed {
  readonly maps: Informer<{ readonly name: string }>;
  readonly names: () => string;
  /** Names of what was told to be gone. */
  readonly gone: string[];
}

function follow(namespace: string, api: KubeApi = cluster.api, reflector: Partial<ReflectorConfig> = {}): Followed {
  const gone: string[] = [];
  const maps = createInformer({
    api,
    type: CONFIG_MAPS,
    namespace,
    clock,
    random,
    log: () => undefined,
    parse: ({ metadata }) => ({ ok: true, value: { name: metadata.name } }),
    reflector: { backoffFirstMs: 100, backoffMaxMs: 2_000, ...reflector },
  });
  maps.onChange((change) => change.gone && gone.push(change.name));
  maps.start();
  closing.push(() => maps.stop());
  const names = (): string =>
    maps
      .list()
      .map(({ name }) => name)
      .toSorted()
      .join(",");
  return { maps, names, gone };
}

/** Only the calls that a list needs: without initial events, in pages, and something happens before each further page. */
function paged(between: () => Promise<void>): KubeApi {
  const api = cluster.api;
  return {
    get: (...args) => api.get(...args),
    create: (...args) => api.create(...args),
    replace: (...args) => api.replace(...args),
    patch: (...args) => api.patch(...args),
    patchStatus: (...args) => api.patchStatus(...args),
    patchScale: (...args) => api.patchScale(...args),
    delete: (...args) => api.delete(...args),
    evict: (...args) => api.evict(...args),
    watch: (...args) => api.watch(...args),
    list: async (type, options) => {
      if (options?.continue !== undefined) await between();
      return api.list(type, options);
    },
  };
}

test("a continue token that etcd's compaction expired: 410 to who asks, and the reflector lists anew until it has one whole state", async () => {
  const namespace = await aNamespace();
  for (const name of ["a", "b", "c"]) await put(namespace, name);
  const page = await cluster.api.list(CONFIG_MAPS, { namespace, limit: 1 });
  await put(namespace, "d");
  await compactEtcd(cluster);
  expect(await cluster.api.list(CONFIG_MAPS, { namespace, limit: 1, continue: page.continue }).catch(isGone)).toBe(true);

  let compactions = 0;
  const { maps, names } = follow(
    namespace,
    paged(async () => {
      if (++compactions > 3) return;
      await put(namespace, `new-${compactions}`);
      await compactEtcd(cluster);
    }),
    { pageSize: 1 },
  );
  await maps.whenSynced();
  expect(names()).toBe(
    ["a", "b", "c", "d", ...Array.from({ length: Math.min(compactions, 3) }, (_none, index) => `new-${index + 1}`)].join(","),
  );
  expect(compactions).toBeGreaterThan(1);
});

test("a version from before a restart of the API server is 410 as an ERROR event, and the copy follows all that happened meanwhile", async () => {
  const namespace = await aNamespace();
  const { resourceVersion } = await cluster.api.list(CONFIG_MAPS, { namespace });
  for (const name of ["a", "b"]) await put(namespace, name);
  const { maps, names, gone } = follow(namespace);
  await expect.poll(names, PATIENCE).toBe("a,b");

  await cluster.pieces.kill("apiserver");
  await expect.poll(() => maps.state().failing, PATIENCE).toBeDefined();
  expect(names()).toBe("a,b"); // what cannot be read is not gone
  await cluster.pieces.restart("apiserver");
  await remove(namespace, "a");
  await put(namespace, "c");
  await compactEtcd(cluster);
  await expect.poll(names, PATIENCE).toBe("b,c");
  await expect.poll(() => maps.state().failing, PATIENCE).toBeUndefined();
  expect(gone).toEqual(["a"]);

  const events: WatchEvent[] = [];
  const ending = new AbortController();
  for await (const event of cluster.api.watch(CONFIG_MAPS, { namespace, resourceVersion }, ending.signal)) {
    events.push(event);
    ending.abort();
  }
  expect(events[0]).toMatchObject({ type: "ERROR", status: { code: 410, reason: "Expired" } });
});

test("a watch that goes silent without closing is found by its own deadline, whether it came by a list or by initial events", async () => {
  const namespace = await aNamespace();
  await put(namespace, "a");
  const proxy = await MuteProxy.before(cluster.url);
  closing.push(() => proxy.close());
  const api = httpKubeApi({ baseUrl: proxy.url, token: "admin-token", insecureSkipTlsVerify: true });
  closing.push(() => api.close());
  const both = [true, false].map((initialEvents) => follow(namespace, api, { initialEvents, silentMs: 3_000, settleMs: 200 }));
  for (const { names } of both) await expect.poll(names, PATIENCE).toBe("a");
  await put(namespace, "b");
  for (const { names } of both) await expect.poll(names, PATIENCE).toBe("a,b");

  expect(proxy.mute()).toBeGreaterThanOrEqual(2);
  await remove(namespace, "a");
  await put(namespace, "c");
  for (const { names, gone } of both) {
    await expect.poll(names, PATIENCE).toBe("b,c");
    expect(gone).toEqual(["a"]);
  }
});

test("an API server that stands still for twenty seconds is nobody's loss: the copy stays, and goes on afterwards", async () => {
  const namespace = await aNamespace();
  await put(namespace, "a");
  const { names, gone } = follow(namespace, cluster.api, { silentMs: 3_000, listTimeoutMs: 3_000, settleMs: 200 });
  await expect.poll(names, PATIENCE).toBe("a");
  cluster.pieces.pause("apiserver");
  await clock.sleep(20_000);
  expect(names()).toBe("a");
  cluster.pieces.resume("apiserver");
  await put(namespace, "b");
  await expect.poll(names, PATIENCE).toBe("a,b");
  expect(gone).toEqual([]);
});

test("replicas elect on a real server: a clean stop at once, a lost one within five seconds, nobody while the server is away (S1)", async () => {
  const namespace = await aNamespace();
  const proxy = await MuteProxy.before(cluster.url);
  closing.push(() => proxy.close());
  const lost = httpKubeApi({ baseUrl: proxy.url, token: "admin-token", insecureSkipTlsVerify: true });
  closing.push(() => lost.close());
  const replica = (id: string, api: KubeApi) => {
    const members = new ControllerMembers({ api, namespace, id, apiUrl: `http://${id}`, clock, random, log: () => undefined });
    const told: string[] = [];
    members.onChange((live) => told.push(live.map((each) => each.id).join(",")));
    members.start();
    closing.push(() => members.stop());
    return {
      members,
      told,
      live: () =>
        members
          .live()
          .map((each) => each.id)
          .join(","),
    };
  };
  const [a, b, c] = [replica("a", cluster.api), replica("b", cluster.api), replica("c", lost)];
  for (const each of [a, b, c]) await expect.poll(each.live, PATIENCE).toBe("a,b,c");

  await b.members.stop();
  await expect.poll(a.live, { timeout: 1_000, interval: 20 }).toBe("a,c");

  const before = a.told.length;
  await cluster.pieces.kill("apiserver");
  await clock.sleep(15_000);
  await cluster.pieces.restart("apiserver");
  await expect.poll(() => [a.members.failing(), c.members.failing()], PATIENCE).toEqual([undefined, undefined]);
  await clock.sleep(6_000);
  expect([a.told.slice(before), a.live(), c.live()]).toEqual([[], "a,c", "a,c"]);

  await proxy.close(); // c is cut off and goes on believing
  const cutAt = clock.monotonic();
  await expect.poll(a.live, { timeout: 10_000, interval: 20 }).toBe("a");
  expect(clock.monotonic() - cutAt).toBeLessThan(5_000);
});

test("a server that knows no initial events refuses them, and lists are asked for at once", async () => {
  const older = await startKubernetes({ parts: [], flags: { apiserver: ["--feature-gates", "WatchList=false"] } });
  closing.push(() => older.stop());
  const { maps, names } = follow("default", older.api);
  await maps.whenSynced();
  expect(maps.state().failing).toBeUndefined();
  await put("default", "a", older.api);
  await expect.poll(names, PATIENCE).toBe("a");
});

test("fifty cordons through the client's own pace are done within two seconds, however many lists wait", async () => {
  const api = await loadKubeApi({ kubeconfig: cluster.kubeconfig, limits: RATE_DEFAULTS });
  closing.push(() => api.close());
  const nodes = Array.from({ length: 50 }, (_none, index) => `paced-${index}`);
  for (const name of nodes) await cluster.api.create(NODES, { apiVersion: "v1", kind: "Node", metadata: { name } });
  const lists = Array.from({ length: 300 }, () => api.list(NODES, { limit: 1 }));
  const begun = clock.monotonic();
  await Promise.all(nodes.map((name) => api.patch({ type: NODES, name }, { spec: { unschedulable: true } })));
  expect(clock.monotonic() - begun).toBeLessThan(2_000);
  await Promise.all(lists);
  expect(clock.monotonic() - begun).toBeGreaterThan(4_000); // 350 calls, 100 at once, 50 a second
});
