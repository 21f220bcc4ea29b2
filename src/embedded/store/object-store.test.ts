import * as fc from "fast-check";
import { expect, test } from "vitest";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { KubeApiError, type KubeObject, type KubeObjectDraft, type WatchEvent } from "../../kube/api.ts";
import {
  CONFIG_MAPS,
  CUSTOM_RESOURCE_DEFINITIONS,
  DEPLOYMENTS,
  EVENTS,
  NAMESPACES,
  NODES,
  PODS,
  POOLS,
  PRIORITY_CLASSES,
} from "../../kube/resources.ts";
import { mergePatch } from "./merge-patch.ts";
import type { JsonObject } from "./json.ts";
import type { ObjectStore } from "./object-store.ts";
import { bindPod } from "./pod-subresources.ts";
import { aPod, storeForTest } from "./store-for-test.ts";

const mapNamed = (name: string, namespace = "default"): KubeObjectDraft => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace },
});
const podRef = (name: string) => ({ type: PODS, namespace: "default", name });

function statusOf(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    if (error instanceof KubeApiError) return [error.status.code, error.status.reason];
    throw error;
  }
  return "accepted";
}

function listen(
  store: ObjectStore,
  type = PODS,
  options: { fieldSelector?: string; labelSelector?: string; resourceVersion?: string } = {},
) {
  const events: WatchEvent[] = [];
  const watch = store.watch(type, { resourceVersion: String(store.revision), ...options }, (event) => events.push(event));
  return {
    events,
    watch,
    told: () => events.map((event) => ("object" in event ? `${event.type} ${event.object.metadata.name}` : event.type)),
  };
}

test("one resourceVersion rises over all kinds, by one for every change", () => {
  const store = storeForTest();
  const versions = [
    store.create(CONFIG_MAPS, mapNamed("a")),
    store.create(PODS, aPod("p")),
    store.modify(podRef("p"), (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: { a: "b" } } })),
    store.delete(podRef("p")).object,
  ].map((object) => Number(object.metadata.resourceVersion));
  const [first = 0] = versions;

  expect(versions).toEqual([first, first + 1, first + 2, first + 3]);
  expect(store.revision).toBe(first + 3);
});

test("a dry run answers what would be, and keeps nothing", () => {
  const store = storeForTest();
  const { told } = listen(store);
  const before = store.revision;
  const created = store.create(PODS, aPod("p"), { dryRun: true });

  expect(created).toMatchObject({ metadata: { name: "p", uid: expect.any(String) }, status: { phase: "Pending" } });
  expect([store.find(podRef("p")), store.revision, told()]).toEqual([undefined, before, []]);
  store.create(PODS, aPod("p"));
  store.modify(podRef("p"), (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: {} } }), { dryRun: true });
  store.delete(podRef("p"), { dryRun: true });
  expect([store.get(podRef("p")).metadata.labels, told()]).toEqual([{ app: "web" }, ["ADDED p"]]);
});

test("a pod gets the defaults that controllers rely on, and its priority", () => {
  const store = storeForTest();
  store.create(PRIORITY_CLASSES, { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name: "high" }, value: 7 });
  const pod = store.create(PODS, aPod("p", { spec: { priorityClassName: "high", terminationGracePeriodSeconds: 5 } }));

  expect(pod).toMatchObject({
    spec: {
      restartPolicy: "Always",
      terminationGracePeriodSeconds: 5,
      priority: 7,
      tolerations: [{ tolerationSeconds: 300 }, { tolerationSeconds: 300 }],
    },
    status: { phase: "Pending" },
  });
  expect(statusOf(() => store.create(PODS, aPod("q", { spec: { priorityClassName: "none" } })))).toEqual([403, "Forbidden"]);
});

test("a pod's spec is fixed but for what may change; its node is set once", () => {
  const store = storeForTest();
  store.create(NODES, { apiVersion: "v1", kind: "Node", metadata: { name: "n1", labels: { "topology.kubernetes.io/zone": "a" } } });
  store.create(PODS, aPod("p"));
  const bound = bindPod(store, podRef("p"), "n1");

  expect(bound).toMatchObject({
    metadata: { labels: { app: "web", "topology.kubernetes.io/zone": "a" } },
    spec: { nodeName: "n1" },
    status: { phase: "Pending", conditions: [{ type: "PodScheduled", status: "True" }] },
  });
  expect(statusOf(() => bindPod(store, podRef("p"), "n2"))).toEqual([409, "Conflict"]);
  const patch = (body: object) => () => store.modify(podRef("p"), (pod) => mergePatch(pod, { spec: body }) as JsonObject);
  expect(statusOf(patch({ nodeName: "n2" }))).toEqual([422, "Invalid"]);
  expect(statusOf(patch({ restartPolicy: "Never" }))).toEqual([422, "Invalid"]);
  expect(statusOf(patch({ containers: [{ name: "main", image: "newer" }] }))).toBe("accepted");
});

test("a workload whose selector misses its own template, and a change of a selector, are refused", () => {
  const store = storeForTest();
  const template = { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "main" }] } };
  const deployment = (app: string): KubeObjectDraft => ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "default" },
    spec: { selector: { matchLabels: { app } }, template },
  });

  expect(statusOf(() => store.create(DEPLOYMENTS, deployment("other")))).toEqual([422, "Invalid"]);
  expect(store.create(DEPLOYMENTS, deployment("web"))).toMatchObject({
    spec: { replicas: 1, template: { spec: { restartPolicy: "Always" } } },
  });
  const selector = { matchExpressions: [{ key: "app", operator: "Exists" }] };
  expect(
    statusOf(() =>
      store.modify({ type: DEPLOYMENTS, namespace: "default", name: "web" }, (before) => ({
        ...before,
        spec: { ...(before["spec"] as JsonObject), selector },
      })),
    ),
  ).toEqual([422, "Invalid"]);
});

test("a namespace refuses new objects once it is being deleted, and goes with the last object in it", () => {
  const store = storeForTest();
  store.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: "team" } });
  store.create(CONFIG_MAPS, mapNamed("a", "team"));
  store.create(CONFIG_MAPS, { ...mapNamed("held", "team"), metadata: { name: "held", namespace: "team", finalizers: ["x/y"] } });
  store.delete({ type: NAMESPACES, name: "team" });

  expect(store.get({ type: NAMESPACES, name: "team" })).toMatchObject({ status: { phase: "Terminating" } });
  expect(store.list(CONFIG_MAPS, { namespace: "team" }).items.map((each) => each.metadata.name)).toEqual(["held"]);
  expect(statusOf(() => store.create(CONFIG_MAPS, mapNamed("b", "team")))).toEqual([403, "Forbidden"]);
  store.modify({ type: CONFIG_MAPS, namespace: "team", name: "held" }, (before) => ({
    ...before,
    metadata: { ...before.metadata, finalizers: [] },
  }));
  expect(store.find({ type: NAMESPACES, name: "team" })).toBeUndefined();
  expect(statusOf(() => store.delete({ type: NAMESPACES, name: "default" }))).toEqual([403, "Forbidden"]);
});

test("a namespace whose content could not be deleted goes when it is deleted again", () => {
  const store = storeForTest();
  store.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: "team" } });
  store.create(CONFIG_MAPS, mapNamed("a", "team"));
  let isFull = true;
  store.journalWith((kind) => {
    if (isFull && kind.kind === "ConfigMap") throw new Error("disk full");
  });
  expect(() => store.delete({ type: NAMESPACES, name: "team" })).toThrow("disk full");
  isFull = false;

  expect(store.delete({ type: NAMESPACES, name: "team" }).gone).toBe(true);
  expect([store.list(CONFIG_MAPS).items, store.find({ type: NAMESPACES, name: "team" })]).toEqual([[], undefined]);
});

test("Foreground and Orphan leave a finalizer for the garbage collector", () => {
  const store = storeForTest();
  const finalizers = (["Foreground", "Orphan", "Background"] as const).map((propagationPolicy) => {
    store.create(CONFIG_MAPS, mapNamed(propagationPolicy.toLowerCase()));
    return store.delete({ type: CONFIG_MAPS, namespace: "default", name: propagationPolicy.toLowerCase() }, { propagationPolicy }).object
      .metadata.finalizers;
  });

  expect(finalizers).toEqual([["foregroundDeletion"], ["orphan"], undefined]);
});

test("a watch from before the window is expired, one from inside it misses nothing", () => {
  const store = storeForTest({ windowSize: 10 });
  const start = store.revision;
  for (let index = 0; index < 40; index += 1) store.create(CONFIG_MAPS, mapNamed(`m${index}`));
  const inside = listen(store, CONFIG_MAPS, { resourceVersion: String(store.revision - 10) });
  const before = listen(store, CONFIG_MAPS, { resourceVersion: String(start) });

  expect(inside.told()).toEqual(Array.from({ length: 10 }, (_, index) => `ADDED m${30 + index}`));
  expect(before.events).toEqual([{ type: "ERROR", status: expect.objectContaining({ code: 410, reason: "Expired" }) }]);
  expect(store.watcherCount).toBe(1);
});

test("a restarted cluster with a higher first version makes old watches expire", () => {
  const store = storeForTest({ firstResourceVersion: 1_000 });

  expect(listen(store, PODS, { resourceVersion: "900" }).told()).toEqual(["ERROR"]);
  expect(listen(store, PODS, { resourceVersion: "1000" }).told()).toEqual([]);
});

test("a list at a version of the future is a Timeout, at an exact one of the past Expired", () => {
  const store = storeForTest();
  const past = String(store.revision);
  store.create(PODS, aPod("p"));

  expect(statusOf(() => store.list(PODS, { resourceVersion: String(store.revision + 1) }))).toEqual([504, "Timeout"]);
  expect(statusOf(() => store.list(PODS, { resourceVersion: past, resourceVersionMatch: "Exact" }))).toEqual([410, "Expired"]);
  expect(store.list(PODS, { resourceVersion: past }).items.length).toBe(1);
  expect(statusOf(() => store.list(PODS, { resourceVersion: "x" }))).toEqual([400, "BadRequest"]);
});

test("pages expire with time, and only so many lists are kept", async () => {
  const clock = new VirtualClock();
  const store = storeForTest({ clock });
  for (const name of ["a", "b", "c"]) store.create(CONFIG_MAPS, mapNamed(name));
  const { continue: token } = store.list(CONFIG_MAPS, { limit: 1 });
  expect(store.list(CONFIG_MAPS, { limit: 1, continue: token })).toMatchObject({ remaining: 1 });
  expect(statusOf(() => store.list(PODS, { limit: 1, continue: token }))).toEqual([400, "BadRequest"]);
  for (let index = 0; index < 64; index += 1) store.list(CONFIG_MAPS, { limit: 1 });
  expect(statusOf(() => store.list(CONFIG_MAPS, { limit: 1, continue: token }))).toEqual([410, "Expired"]);

  const { continue: later } = store.list(CONFIG_MAPS, { limit: 1 });
  await clock.advance(300_001);
  expect(statusOf(() => store.list(CONFIG_MAPS, { limit: 1, continue: later }))).toEqual([410, "Expired"]);
});

test("objects, watches and events are bounded", () => {
  const store = storeForTest({ objectsMax: 8, watchersMax: 1 });
  store.create(CONFIG_MAPS, mapNamed("a"));
  store.create(CONFIG_MAPS, mapNamed("b"));
  listen(store);

  expect(statusOf(() => store.create(CONFIG_MAPS, mapNamed("c")))).toEqual([507, "InsufficientStorage"]);
  expect(statusOf(() => listen(store))).toEqual([429, "TooManyRequests"]);
  const other = storeForTest();
  for (let index = 0; index < 5_010; index += 1)
    other.create(EVENTS, { apiVersion: "v1", kind: "Event", metadata: { name: `e${index}`, namespace: "default" } });
  expect(other.list(EVENTS).items.length).toBe(5_000);
  expect(other.find({ type: EVENTS, namespace: "default", name: "e0" })).toBeUndefined();
});

test("what is no JSON is refused: dates, cycles, a prototype", () => {
  const store = storeForTest();
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  const values = [new Date(0), cycle, Number.NaN, () => undefined, JSON.parse('{"__proto__": {"polluted": true}}')];

  for (const value of values)
    expect(
      statusOf(() =>
        store.create(POOLS, {
          apiVersion: "relevo.dev/v1alpha1",
          kind: "Pool",
          metadata: { name: "p", namespace: "default" },
          spec: { value },
        }),
      ),
    ).toEqual([400, "BadRequest"]);
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
});

test("a validator's problems refuse an object with the field; a status or a finalizer may still change", () => {
  const store = storeForTest({
    validators: {
      "relevo.dev/v1alpha1/pools": (pool) =>
        (pool["spec"] as { bad?: boolean }).bad ? [{ field: "spec.bad", message: "must not be" }] : [],
    },
  });
  const ref = { type: POOLS, namespace: "default", name: "p" };
  const pool = (spec: object): KubeObjectDraft => ({
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name: "p", namespace: "default", finalizers: ["a/b"] },
    spec,
  });
  expect(statusOf(() => store.create(POOLS, pool({ bad: true })))).toEqual([422, "Invalid"]);
  store.create(POOLS, pool({}));
  expect(statusOf(() => store.replace(ref, pool({ bad: true })))).toEqual([422, "Invalid"]);

  store.validateWith("relevo.dev/v1alpha1/pools", () => [{ field: "spec", message: "nothing is good enough" }]);
  expect(statusOf(() => store.modify(ref, (before) => ({ ...before, status: { a: 1 } }), { part: "status" }))).toBe("accepted");
  store.delete(ref);
  expect(statusOf(() => store.modify(ref, (before) => ({ ...before, metadata: { ...before.metadata, finalizers: [] } })))).toBe("accepted");
  expect(store.find(ref)).toBeUndefined();
});

test("a journal that refuses leaves everything as it was", () => {
  const store = storeForTest();
  const { told } = listen(store, CONFIG_MAPS);
  const before = store.revision;
  store.journalWith((kind) => {
    if (kind.kind === "ConfigMap") throw new Error("disk full");
  });

  expect(() => store.create(CONFIG_MAPS, mapNamed("a"))).toThrow("disk full");
  expect([store.find({ type: CONFIG_MAPS, namespace: "default", name: "a" }), store.revision, told()]).toEqual([undefined, before, []]);
});

test("kinds of a CustomResourceDefinition come and go with it", () => {
  const store = storeForTest();
  const shops = { group: "example.com", version: "v1", kind: "Shop", plural: "shops", namespaced: true };
  store.create(CUSTOM_RESOURCE_DEFINITIONS, {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "shops.example.com" },
    spec: { group: "example.com", scope: "Namespaced", names: { kind: "Shop", plural: "shops" }, versions: [{ name: "v1", served: true }] },
  });
  store.create(shops, { apiVersion: "example.com/v1", kind: "Shop", metadata: { name: "one", namespace: "default" } });
  const { told } = listen(store, shops);
  store.delete({ type: CUSTOM_RESOURCE_DEFINITIONS, name: "shops.example.com" });

  expect(told()).toEqual(["DELETED one"]);
  expect(statusOf(() => store.list(shops))).toEqual([404, undefined]);
});

/** What a client does that follows a list by a watch. */
function follow(copy: Map<string, KubeObject>, event: WatchEvent): void {
  if (!("object" in event)) throw new Error(`unexpected ${event.type}`);
  const { name } = event.object.metadata;
  if (event.type === "DELETED") expect(copy.delete(name)).toBe(true);
  else {
    expect(copy.has(name)).toBe(event.type === "MODIFIED");
    copy.set(name, event.object);
  }
}

test("whatever is written, every watcher's copy ends equal to a fresh list of its selection", () => {
  const name = fc.constantFrom("a", "b", "c", "d");
  const write = fc.record({
    name,
    what: fc.constantFrom("create", "label", "bind", "delete", "kill", "status"),
    value: fc.constantFrom("x", "y"),
  });
  const selections = [
    {},
    { labelSelector: "tier=x" },
    { labelSelector: "tier!=x" },
    { fieldSelector: "metadata.name=b" },
    { fieldSelector: "spec.nodeName=x" },
    { fieldSelector: "status.phase=y" },
    { namespace: "default" },
  ];
  fc.assert(
    fc.property(fc.array(write, { maxLength: 40 }), fc.nat(40), (writes, joinAfter) => {
      const store = storeForTest();
      const joined: { copy: Map<string, KubeObject>; options: object }[] = [];
      const join = (): void => {
        for (const options of selections) {
          const list = store.list(PODS, options);
          const copy = new Map(list.items.map((item) => [item.metadata.name, item]));
          store.watch(PODS, { resourceVersion: list.resourceVersion, ...options }, (event) => follow(copy, event));
          joined.push({ copy, options });
        }
      };
      join();
      for (const [index, { name: pod, what, value }] of writes.entries()) {
        if (index === joinAfter) join();
        writeTo(store, pod, what, value);
      }
      for (const { copy, options } of joined)
        expect([...copy.values()].toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))).toEqual(
          store.list(PODS, options).items,
        );
    }),
    { numRuns: 300 },
  );
});

function writeTo(store: ObjectStore, name: string, what: string, value: string): void {
  const ref = podRef(name);
  const steps: Record<string, () => unknown> = {
    create: () => store.create(PODS, aPod(name, { labels: { tier: value } })),
    label: () => store.modify(ref, (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: { tier: value } } })),
    bind: () => bindPod(store, ref, value),
    status: () => store.modify(ref, (pod) => ({ ...pod, status: { phase: value } }), { part: "status" }),
    delete: () => store.delete(ref),
    kill: () => store.delete(ref, { gracePeriodSeconds: 0 }),
  };
  statusOf(() => steps[what]?.());
}
