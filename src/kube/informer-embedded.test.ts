/** The informer over the object store of the embedded cluster, under a virtual clock: as the simulator and the controller run it. */
import { expect, test } from "vitest";
import { RelevoError } from "../kernel/errors.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { directKubeApi, type EmbeddedKubeApi } from "../embedded/store/direct-api.ts";
import { ObjectStore } from "../embedded/store/object-store.ts";
import { createInformer, type Informer, type InformerOptions } from "./informer.ts";
import type { KubeApi, WatchEvent } from "./api.ts";
import { NAMESPACES, PODS } from "./resources.ts";
import { type KubePod, parsePod, POD_INDEXES } from "./types.ts";

interface Cluster {
  readonly clock: VirtualClock;
  readonly api: EmbeddedKubeApi;
  readonly pods: Informer<KubePod>;
}

async function cluster(options: Partial<InformerOptions<KubePod>> = {}): Promise<Cluster> {
  const clock = new VirtualClock();
  let ids = 0;
  const store = new ObjectStore({ clock, ids: { next: (prefix) => `${prefix}-${String(++ids).padStart(10, "0")}` }, windowSize: 20 });
  const api = directKubeApi(store);
  for (const name of ["east", "west"]) await api.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  const pods = createInformer<KubePod>({
    api,
    type: PODS,
    clock,
    random: { next: () => 0.5 },
    log: () => undefined,
    parse: parsePod,
    indexes: POD_INDEXES,
    reflector: { pageSize: 4 },
    ...options,
  });
  return { clock, api, pods };
}

const pod = (
  name: string,
  instance: string,
): { readonly apiVersion: string; readonly kind: string; readonly metadata: object; readonly spec: object } => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, labels: { "relevo.dev/instance": instance } },
  spec: { containers: [{ name: "main", image: "any", command: ["true"] }] },
});

test("two pods with the same name in two namespaces are two", async () => {
  const { clock, api, pods } = await cluster();
  pods.start();
  await clock.advance(1_000);
  await api.create(PODS, pod("same", "orders-1"), { namespace: "east" });
  await api.create(PODS, pod("same", "orders-2"), { namespace: "west" });
  await clock.advance(1_000);

  const [east, west] = [pods.get("east", "same"), pods.get("west", "same")];
  expect(east?.metadata.uid).not.toBe(west?.metadata.uid);
  expect(pods.byIndex("instance", "orders-1")).toEqual([east]);
  expect(pods.byIndex("instance", "orders-2")).toEqual([west]);
  await api.delete({ type: PODS, namespace: "east", name: "same" }, { gracePeriodSeconds: 0 });
  await clock.advance(1_000);
  expect([pods.get("east", "same"), pods.get("west", "same")]).toEqual([undefined, west]);
  pods.stop();
  await clock.settle();
});

test("it lists in pages, follows bindings into the index, and stays in step for hours without listing again", async () => {
  let lists = 0;
  const { clock, api, pods } = await cluster();
  const counted = createInformer<KubePod>({
    api: { ...api, list: (type, options) => (lists++, api.list(type, options)) },
    type: PODS,
    namespace: "east",
    clock,
    random: { next: () => 0.5 },
    log: () => undefined,
    parse: parsePod,
    indexes: POD_INDEXES,
    reflector: { pageSize: 4 },
  });
  for (let index = 0; index < 10; index++) await api.create(PODS, pod(`p${index}`, "orders-1"), { namespace: "east" });
  counted.start();
  await clock.advance(1_000);
  expect([counted.synced(), counted.list().length, lists]).toEqual([true, 10, 3]);

  await api.bind({ namespace: "east", name: "p3" }, "node-1");
  await clock.advance(3 * 3_600_000);
  expect(counted.byIndex("node", "node-1").map(({ metadata }) => metadata.name)).toEqual(["p3"]);
  expect([lists, counted.state().failing]).toEqual([3, undefined]);
  counted.stop();
  await clock.settle();
  expect([clock.pendingTimers, pods.synced()]).toEqual([0, false]);
});

test("a connection that is away while the window moves on lists anew, and what went meanwhile is told as gone", async () => {
  const { clock, api } = await cluster();
  let isCut = false;
  let hangUp = new AbortController();
  async function* watch(...[type, options, signal]: Parameters<KubeApi["watch"]>): AsyncGenerator<WatchEvent> {
    const broken = new RelevoError("connection_broken", "cut", { class: "retryable" });
    if (isCut) throw broken;
    hangUp = new AbortController();
    yield* api.watch(type, options, AbortSignal.any([signal, hangUp.signal]));
    if (isCut) throw broken;
  }
  const { pods } = await cluster({ api: { ...api, watch }, clock });
  await api.create(PODS, pod("old", "orders-1"), { namespace: "east" });
  pods.start();
  await clock.advance(2_000);
  const gone: string[] = [];
  pods.onChange((change) => (change.gone ? gone.push(change.name) : 0));

  isCut = true;
  hangUp.abort();
  await api.delete({ type: PODS, namespace: "east", name: "old" }, { gracePeriodSeconds: 0 });
  for (let index = 0; index < 50; index++) await api.create(PODS, pod(`p${index}`, "orders-1"), { namespace: "west" });
  await clock.advance(10_000);
  expect([pods.state().failing, pods.get("east", "old")?.metadata.name]).toEqual(["connection_broken", "old"]);

  isCut = false;
  await clock.advance(31_000);
  expect([pods.list().length, gone, pods.state().failing]).toEqual([50, ["old"], undefined]);
  pods.stop();
  await clock.settle();
});
