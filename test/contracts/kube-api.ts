/** What every KubeApi must do, whatever stands behind it: the semantics of the Kubernetes API that the product relies on. */
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  isConflict,
  type KubeApi,
  KubeApiError,
  type KubeObject,
  type KubeObjectDraft,
  type ObjectRef,
  type ResourceType,
  type WatchEvent,
} from "../../src/kube/api.ts";
import { CONFIG_MAPS, LEASES, NODES, POD_DISRUPTION_BUDGETS, PODS, POOLS } from "../../src/kube/resources.ts";

export interface KubeApiUnderTest {
  /** Over an empty cluster with the namespace `default`. */
  readonly api: KubeApi;
  /** Lets time pass for the server. */
  advance(ms: number): Promise<void>;
  /** The server forgets its past, as by a restart: old watches and pages are too old. */
  forgetHistory(): void;
  close(): Promise<void>;
}

const mapNamed = (name: string, labels: Record<string, string> = {}, data: Record<string, string> = {}): KubeObjectDraft => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: "default", labels },
  data,
});
const podNamed = (name: string, spec: Record<string, unknown> = {}): KubeObjectDraft => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "default", labels: { app: "web" } },
  spec: { containers: [{ name: "main", image: "none" }], ...spec },
});
const budgetNamed = (name: string): KubeObjectDraft => ({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name, namespace: "default" },
  spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
});
const pool: KubeObjectDraft = {
  apiVersion: "relevo.dev/v1alpha1",
  kind: "Pool",
  metadata: { name: "orders", namespace: "default" },
  spec: { size: 1 },
};
const ref = (type: ResourceType, name: string): ObjectRef => (type.namespaced ? { type, namespace: "default", name } : { type, name });
const version = (object: KubeObject): number => Number(object.metadata.resourceVersion);

/** The error's code, reason and causes, which is what callers decide by. */
async function refusal(call: Promise<unknown>): Promise<unknown> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof KubeApiError)) return error ?? "accepted";
  const { code, reason, details } = error.status;
  return [code, reason, ...(details?.causes ?? []).map((cause) => [cause.reason, cause.field])];
}

export function kubeApiContract(name: string, open: () => Promise<KubeApiUnderTest>): void {
  let subject: KubeApiUnderTest;
  let api: KubeApi;
  let ending: AbortController;
  beforeEach(async () => {
    subject = await open();
    api = subject.api;
    ending = new AbortController();
  });
  afterEach(async () => {
    ending.abort();
    await subject.close();
  });

  /** Collects events as `TYPE name`, bookmarks without their version. */
  function watch(
    type: ResourceType,
    options: { resourceVersion: string; labelSelector?: string; fieldSelector?: string; timeoutSeconds?: number },
  ) {
    const events: WatchEvent[] = [];
    const done = (async () => {
      for await (const event of api.watch(type, { namespace: "default", ...options }, ending.signal)) events.push(event);
    })();
    const told = (): readonly string[] =>
      events.map((event) => ("object" in event ? `${event.type} ${event.object.metadata.name}` : event.type));
    return { events, told, done };
  }
  const eventually = (actual: () => unknown, expected: unknown): Promise<void> =>
    expect.poll(actual, { timeout: 5_000, interval: 5 }).toEqual(expected);
  const it = (sentence: string, body: () => Promise<void>): void => test(`${name}: ${sentence}`, body);

  it("a create fills in what only the server knows, and leaves out a status", async () => {
    const created = await api.create(POOLS, { ...pool, metadata: { ...pool.metadata, uid: "mine" }, status: { serving: 9 } });

    expect(created).toEqual({
      apiVersion: "relevo.dev/v1alpha1",
      kind: "Pool",
      metadata: {
        name: "orders",
        namespace: "default",
        uid: expect.not.stringMatching(/^mine$/),
        resourceVersion: expect.stringMatching(/^\d+$/),
        generation: 1,
        creationTimestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      },
      spec: { size: 1 },
    });
    expect(await api.get(ref(POOLS, "orders"))).toEqual(created);
  });

  it("a taken name is AlreadyExists, and generateName finds a free one", async () => {
    await api.create(CONFIG_MAPS, mapNamed("a"));

    expect(await refusal(api.create(CONFIG_MAPS, mapNamed("a")))).toEqual([409, "AlreadyExists"]);
    const { metadata } = await api.create(
      CONFIG_MAPS,
      { apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "b-" } },
      { namespace: "default" },
    );
    expect(metadata.name).toMatch(/^b-.{5}$/);
  });

  it("what is not there is NotFound, and an unknown kind is a 404 without a reason", async () => {
    const unknown: ResourceType = { group: "example.com", version: "v1", kind: "Thing", plural: "things", namespaced: true };

    expect(await refusal(api.get(ref(CONFIG_MAPS, "a")))).toEqual([404, "NotFound"]);
    expect(await refusal(api.replace(ref(CONFIG_MAPS, "a"), mapNamed("a")))).toEqual([404, "NotFound"]);
    expect(await refusal(api.create(CONFIG_MAPS, { ...mapNamed("a"), metadata: { name: "a", namespace: "nowhere" } }))).toEqual([
      404,
      "NotFound",
    ]);
    expect(await refusal(api.list(unknown))).toEqual([404, undefined]);
  });

  it("a bad name and a pod without containers are Invalid, with the field as cause", async () => {
    expect(await refusal(api.create(CONFIG_MAPS, mapNamed("Not_A_Name")))).toEqual([
      422,
      "Invalid",
      ["FieldValueInvalid", "metadata.name"],
    ]);
    expect(await refusal(api.create(PODS, podNamed("p", { containers: [] })))).toEqual([
      422,
      "Invalid",
      ["FieldValueRequired", "spec.containers"],
    ]);
  });

  it("a time with three digits where six are due is refused", async () => {
    const lease = (renewTime: string): KubeObjectDraft => ({
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "l", namespace: "default" },
      spec: { renewTime },
    });

    expect(await refusal(api.create(LEASES, lease("2030-01-01T00:00:00.123Z")))).toEqual([400, "BadRequest"]);
    await api.create(LEASES, lease("2030-01-01T00:00:00.123456Z"));
    expect(await refusal(api.patch(ref(LEASES, "l"), { spec: { renewTime: "2030-01-01T00:00:00.123Z" } }))).toEqual([
      422,
      "Invalid",
      ["FieldValueInvalid", "patch"],
    ]);
  });

  it("lists by label and by field, in the order of names", async () => {
    for (const [each, tier] of [
      ["c", "x"],
      ["a", "x"],
      ["b", "y"],
    ] as const)
      await api.create(CONFIG_MAPS, mapNamed(each, { tier }));
    const names = async (options: object): Promise<readonly string[]> =>
      (await api.list(CONFIG_MAPS, { namespace: "default", ...options })).items.map((item) => item.metadata.name);

    expect(await names({})).toEqual(["a", "b", "c"]);
    expect(await names({ labelSelector: "tier=x" })).toEqual(["a", "c"]);
    expect(await names({ labelSelector: "tier notin (x),tier" })).toEqual(["b"]);
    expect(await names({ fieldSelector: "metadata.name=b" })).toEqual(["b"]);
    expect(await refusal(api.list(CONFIG_MAPS, { fieldSelector: "data.x=1" }))).toEqual([400, "BadRequest"]);
    expect(await refusal(api.list(CONFIG_MAPS, { labelSelector: "a in b" }))).toEqual([400, "BadRequest"]);
    expect((await api.list(CONFIG_MAPS, { namespace: "default" })).items[0]).toMatchObject({ apiVersion: "v1", kind: "ConfigMap" });
  });

  it("all pages of a list show the state at the first one", async () => {
    for (const each of ["a", "b", "c", "d", "e"]) await api.create(CONFIG_MAPS, mapNamed(each));
    const first = await api.list(CONFIG_MAPS, { namespace: "default", limit: 2 });
    await api.delete(ref(CONFIG_MAPS, "d"));
    await api.create(CONFIG_MAPS, mapNamed("f"));
    const second = await api.list(CONFIG_MAPS, { namespace: "default", limit: 2, continue: first.continue });
    const third = await api.list(CONFIG_MAPS, { namespace: "default", limit: 2, continue: second.continue });

    expect([first, second, third].map((page) => page.items.map((item) => item.metadata.name))).toEqual([["a", "b"], ["c", "d"], ["e"]]);
    expect([second.resourceVersion, third.resourceVersion]).toEqual([first.resourceVersion, first.resourceVersion]);
    expect(third.continue).toBeUndefined();
    const { told } = watch(CONFIG_MAPS, { resourceVersion: third.resourceVersion });
    await eventually(told, ["DELETED d", "ADDED f"]);
  });

  it("an old continue token is Expired, and the answer holds one for the rest", async () => {
    for (const each of ["a", "b", "c"]) await api.create(CONFIG_MAPS, mapNamed(each));
    const { continue: token } = await api.list(CONFIG_MAPS, { namespace: "default", limit: 1 });
    subject.forgetHistory();

    const error = await api.list(CONFIG_MAPS, { namespace: "default", limit: 1, continue: token }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(KubeApiError);
    const { status } = error as KubeApiError;
    expect([status.code, status.reason]).toEqual([410, "Expired"]);
    const rest = await api.list(CONFIG_MAPS, { namespace: "default", limit: 5, continue: status.metadata?.continue });
    expect(rest.items.map((item) => item.metadata.name)).toEqual(["b", "c"]);
    expect(await refusal(api.list(CONFIG_MAPS, { continue: "nonsense" }))).toEqual([400, "BadRequest"]);
  });

  it("a replace from a stale version is a Conflict; without a version it overwrites", async () => {
    const first = await api.create(CONFIG_MAPS, mapNamed("a", {}, { k: "1" }));
    const second = await api.replace(ref(CONFIG_MAPS, "a"), { ...first, data: { k: "2" } });

    expect(version(second)).toBeGreaterThan(version(first));
    expect(await refusal(api.replace(ref(CONFIG_MAPS, "a"), { ...first, data: { k: "3" } }))).toEqual([409, "Conflict"]);
    expect(await api.replace(ref(CONFIG_MAPS, "a"), mapNamed("a", {}, { k: "4" }))).toMatchObject({
      data: { k: "4" },
      metadata: { uid: first.metadata.uid },
    });
  });

  it("a merge patch takes uid and version as preconditions, and null takes a field away", async () => {
    const { metadata } = await api.create(CONFIG_MAPS, mapNamed("a", { x: "1" }, { k: "1", l: "2" }));
    const { uid, resourceVersion } = metadata;

    const ofAnother = api.patch(ref(CONFIG_MAPS, "a"), { metadata: { uid: "another" }, data: { k: "2" } });
    expect(await refusal(ofAnother)).toEqual([422, "Invalid", ["FieldValueInvalid", "metadata.uid"]]);
    expect(await ofAnother.catch(isConflict)).toBe(true);
    expect(await refusal(api.patch(ref(CONFIG_MAPS, "a"), { metadata: { resourceVersion: "1" }, data: { k: "2" } }))).toEqual([
      409,
      "Conflict",
    ]);
    const patched = await api.patch(ref(CONFIG_MAPS, "a"), { metadata: { uid, resourceVersion }, data: { k: null, m: "3" } });
    expect([patched["data"], patched.metadata.labels]).toEqual([{ l: "2", m: "3" }, { x: "1" }]);
  });

  it("a write that changes nothing keeps the version and is no event", async () => {
    const created = await api.create(CONFIG_MAPS, mapNamed("a", {}, { k: "1" }));
    const { told } = watch(CONFIG_MAPS, { resourceVersion: created.metadata.resourceVersion });

    expect(await api.patch(ref(CONFIG_MAPS, "a"), { data: { k: "1" } })).toEqual(created);
    expect(await api.replace(ref(CONFIG_MAPS, "a"), created)).toEqual(created);
    await api.patch(ref(CONFIG_MAPS, "a"), { data: { k: "2" } });
    await eventually(told, ["MODIFIED a"]);
  });

  it("status and the rest are written apart, and only the rest raises the generation", async () => {
    await api.create(POOLS, pool);
    const status = await api.patchStatus(ref(POOLS, "orders"), {
      spec: { size: 9 },
      metadata: { labels: { a: "b" } },
      status: { serving: 1 },
    });
    const spec = await api.patch(ref(POOLS, "orders"), { spec: { size: 2 }, status: { serving: 9 } });

    expect(status).toMatchObject({ spec: { size: 1 }, status: { serving: 1 }, metadata: { generation: 1 } });
    expect(status.metadata.labels).toBeUndefined();
    expect(spec).toMatchObject({ spec: { size: 2 }, status: { serving: 1 }, metadata: { generation: 2 } });
    const labelled = await api.patch(ref(POOLS, "orders"), { metadata: { labels: { a: "b" } } });
    expect(labelled.metadata.generation).toBe(2);
  });

  it("a node's status takes labels too, and not its spec", async () => {
    await api.create(NODES, { apiVersion: "v1", kind: "Node", metadata: { name: "n" }, status: { phase: "kept" } });
    const node = await api.patchStatus(ref(NODES, "n"), {
      metadata: { labels: { a: "b" } },
      spec: { unschedulable: true },
      status: { x: 1 },
    });

    expect([node.metadata.labels, node["spec"], node["status"]]).toEqual([{ a: "b" }, undefined, { phase: "kept", x: 1 }]);
  });

  it("a watch tells what happened after a version; a deletion has a version of its own", async () => {
    const first = await api.create(CONFIG_MAPS, mapNamed("a"));
    await api.patch(ref(CONFIG_MAPS, "a"), { data: { k: "1" } });
    await api.create(CONFIG_MAPS, mapNamed("b"));
    await api.delete(ref(CONFIG_MAPS, "a"));
    const { told, events } = watch(CONFIG_MAPS, { resourceVersion: first.metadata.resourceVersion });
    await eventually(told, ["MODIFIED a", "ADDED b", "DELETED a"]);
    await api.create(CONFIG_MAPS, mapNamed("c"));
    await eventually(told, ["MODIFIED a", "ADDED b", "DELETED a", "ADDED c"]);

    const versions = events.map((event) => ("object" in event ? version(event.object) : 0));
    expect(versions).toEqual(versions.toSorted((a, b) => a - b));
    expect(new Set(versions).size).toBe(4);
    expect(events[2]).toMatchObject({ object: { data: { k: "1" } } });
  });

  it("an object that leaves the selection is DELETED with its old labels, and ADDED when it is back", async () => {
    const { metadata } = await api.create(CONFIG_MAPS, mapNamed("a", { tier: "x" }));
    const { told, events } = watch(CONFIG_MAPS, { resourceVersion: metadata.resourceVersion, labelSelector: "tier=x" });
    const left = await api.patch(ref(CONFIG_MAPS, "a"), { metadata: { labels: { tier: "y" } } });
    await api.patch(ref(CONFIG_MAPS, "a"), { data: { unseen: "1" } });
    await api.patch(ref(CONFIG_MAPS, "a"), { metadata: { labels: { tier: "x" } } });
    await api.patch(ref(CONFIG_MAPS, "a"), { data: { seen: "1" } });

    await eventually(told, ["DELETED a", "ADDED a", "MODIFIED a"]);
    expect(events[0]).toMatchObject({ object: { metadata: { labels: { tier: "x" }, resourceVersion: left.metadata.resourceVersion } } });
  });

  it("watches by name, by field and by namespace hear only of theirs", async () => {
    const byName = watch(PODS, { resourceVersion: "0", fieldSelector: "metadata.name=p2" });
    const byNode = watch(PODS, { resourceVersion: "0", fieldSelector: "spec.nodeName=n1" });
    const pods = ["p1", "p2", "p3"];
    for (const each of pods) await api.create(PODS, podNamed(each, each === "p3" ? {} : { nodeName: each === "p1" ? "n1" : "n2" }));

    await eventually(byName.told, ["ADDED p2"]);
    await eventually(byNode.told, ["ADDED p1"]);
  });

  it("a watch from a forgotten version gets one ERROR with 410 and ends", async () => {
    const created = await api.create(CONFIG_MAPS, mapNamed("a"));
    await api.create(CONFIG_MAPS, mapNamed("b"));
    subject.forgetHistory();
    const { events, done } = watch(CONFIG_MAPS, { resourceVersion: created.metadata.resourceVersion });
    await done;

    expect(events).toEqual([{ type: "ERROR", status: expect.objectContaining({ code: 410, reason: "Expired" }) }]);
  });

  it("a watch ends when its time is up, with a bookmark just before, and when its signal aborts", async () => {
    const list = await api.list(CONFIG_MAPS);
    const timed = watch(CONFIG_MAPS, { resourceVersion: list.resourceVersion, timeoutSeconds: 30 });
    const endless = watch(CONFIG_MAPS, { resourceVersion: list.resourceVersion });
    await api.create(CONFIG_MAPS, mapNamed("a"));
    await eventually(() => [timed.told(), endless.told()], [["ADDED a"], ["ADDED a"]]);
    await subject.advance(30_000);
    await timed.done;
    expect(timed.told()).toEqual(["ADDED a", "BOOKMARK"]);

    await subject.advance(30_000);
    await eventually(endless.told, ["ADDED a", "BOOKMARK"]);
    ending.abort();
    await endless.done;
  });

  it("finalizers hold an object until the last is off", async () => {
    await api.create(CONFIG_MAPS, { ...mapNamed("a"), metadata: { name: "a", namespace: "default", finalizers: ["relevo.dev/hold"] } });
    await api.delete(ref(CONFIG_MAPS, "a"));
    const held = await api.get(ref(CONFIG_MAPS, "a"));
    const { told } = watch(CONFIG_MAPS, { resourceVersion: held.metadata.resourceVersion });
    await api.delete(ref(CONFIG_MAPS, "a"));

    expect(held.metadata.deletionTimestamp).toBeDefined();
    expect(await refusal(api.patch(ref(CONFIG_MAPS, "a"), { metadata: { finalizers: ["relevo.dev/hold", "relevo.dev/more"] } }))).toEqual([
      422,
      "Invalid",
      ["FieldValueForbidden", "metadata.finalizers"],
    ]);
    await api.patch(ref(CONFIG_MAPS, "a"), { metadata: { finalizers: null } });
    expect(await refusal(api.get(ref(CONFIG_MAPS, "a")))).toEqual([404, "NotFound"]);
    await eventually(told, ["DELETED a"]);
  });

  it("a pod without a node goes at once; on a node it stays until it is deleted with grace 0", async () => {
    await api.create(PODS, podNamed("free"));
    await api.create(PODS, podNamed("bound", { nodeName: "n1" }));
    await api.delete(ref(PODS, "free"));
    await api.delete(ref(PODS, "bound"));
    const graces = [await api.get(ref(PODS, "bound"))];
    await api.delete(ref(PODS, "bound"), { gracePeriodSeconds: 5 });
    graces.push(await api.get(ref(PODS, "bound")));
    await api.delete(ref(PODS, "bound"), { gracePeriodSeconds: 60 });
    graces.push(await api.get(ref(PODS, "bound")));

    expect(await refusal(api.get(ref(PODS, "free")))).toEqual([404, "NotFound"]);
    expect(graces.map((pod) => pod.metadata.deletionGracePeriodSeconds)).toEqual([30, 5, 5]);
    const [first, second] = graces.map((pod) => Date.parse(pod.metadata.deletionTimestamp ?? ""));
    expect((first ?? 0) - (second ?? 0)).toBe(25_000);
    await api.delete(ref(PODS, "bound"), { gracePeriodSeconds: 0 });
    expect(await refusal(api.get(ref(PODS, "bound")))).toEqual([404, "NotFound"]);
  });

  it("preconditions of a delete are checked", async () => {
    const { metadata } = await api.create(CONFIG_MAPS, mapNamed("a"));
    const { uid, resourceVersion } = metadata;

    expect(await refusal(api.delete(ref(CONFIG_MAPS, "a"), { preconditions: { uid: "another" } }))).toEqual([409, "Conflict"]);
    expect(await refusal(api.delete(ref(CONFIG_MAPS, "a"), { preconditions: { resourceVersion: "1" } }))).toEqual([409, "Conflict"]);
    await api.delete(ref(CONFIG_MAPS, "a"), { preconditions: { uid, resourceVersion } });
    expect(await refusal(api.delete(ref(CONFIG_MAPS, "a")))).toEqual([404, "NotFound"]);
  });

  it("an eviction without a budget deletes; the pod says why", async () => {
    await api.create(PODS, podNamed("p", { nodeName: "n1" }));
    await api.patchStatus(ref(PODS, "p"), { status: { phase: "Running" } });
    await api.evict(ref(PODS, "p"), { gracePeriodSeconds: 7 });

    const pod = await api.get(ref(PODS, "p"));
    expect(pod.metadata.deletionGracePeriodSeconds).toBe(7);
    expect(pod).toMatchObject({ status: { conditions: [{ type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI" }] } });
    expect(await refusal(api.evict(ref(PODS, "gone")))).toEqual([404, "NotFound"]);
  });

  it("an eviction takes from the budget, and is refused when nothing is left or the budget is behind", async () => {
    for (const each of ["p1", "p2"]) {
      await api.create(PODS, podNamed(each, { nodeName: "n1" }));
      await api.patchStatus(ref(PODS, each), { status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } });
    }
    await api.create(POD_DISRUPTION_BUDGETS, budgetNamed("web"));
    const behind = await api.evict(ref(PODS, "p1")).catch((reason: unknown) => reason);
    expect((behind as KubeApiError).status).toMatchObject({
      code: 429,
      reason: "TooManyRequests",
      details: { retryAfterSeconds: 10, causes: [{ reason: "DisruptionBudget" }] },
    });

    await api.patchStatus(ref(POD_DISRUPTION_BUDGETS, "web"), {
      status: { observedGeneration: 1, disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1 },
    });
    await api.evict(ref(PODS, "p1"));
    expect(await api.get(ref(POD_DISRUPTION_BUDGETS, "web"))).toMatchObject({
      status: { disruptionsAllowed: 0, disruptedPods: { p1: expect.any(String) } },
    });
    expect(await refusal(api.evict(ref(PODS, "p2")))).toEqual([429, "TooManyRequests", ["DisruptionBudget", undefined]]);
    expect(await refusal(api.evict(ref(PODS, "p2"), { preconditions: { uid: "another" } }))).toEqual([409, "Conflict"]);

    await api.create(POD_DISRUPTION_BUDGETS, budgetNamed("web2"));
    expect(await refusal(api.evict(ref(PODS, "p2")))).toEqual([500, undefined]);
  });

  it("owner references are kept and nothing is done about them at a delete", async () => {
    const owner = await api.create(CONFIG_MAPS, mapNamed("owner"));
    const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: owner.metadata.uid }];
    await api.create(CONFIG_MAPS, { ...mapNamed("owned"), metadata: { name: "owned", namespace: "default", ownerReferences } });
    await api.patch(ref(CONFIG_MAPS, "owned"), { data: { k: "1" } });

    expect((await api.get(ref(CONFIG_MAPS, "owned"))).metadata.ownerReferences).toEqual(ownerReferences);
  });

  it("what a caller does to its own object afterwards changes nothing", async () => {
    const draft = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "default" }, data: { k: "1" } };
    await api.create(CONFIG_MAPS, draft);
    draft.data.k = "2";

    expect(await api.get(ref(CONFIG_MAPS, "a"))).toMatchObject({ data: { k: "1" } });
  });
}
