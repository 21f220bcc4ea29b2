/** How a pool ends, by each deletion policy, and what a document that is not valid does: nothing. Level: simulated. */
import { afterEach, expect, test } from "vitest";
import { isNotFound } from "../../src/kube/api.ts";
import { KubeApiError } from "../../src/kube/api.ts";
import { CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, NAMESPACES, PODS, POOLS } from "../../src/kube/resources.ts";
import { Harness, ordersPool } from "./harness.ts";

const REF = { type: POOLS, namespace: "default", name: "orders" };

let harness: Harness;
afterEach(() => harness.close());

async function isGone(): Promise<boolean> {
  try {
    await harness.cluster.api.get(REF);
    return false;
  } catch (error) {
    if (isNotFound(error)) return true;
    throw error;
  }
}

async function deletePool(deletion: "refuse" | "drain" | "orphan"): Promise<void> {
  await harness.cluster.api.patch(REF, { spec: { deletion } });
  await harness.pass(100);
  await harness.cluster.api.delete(REF);
}

async function deployments(): Promise<number> {
  return (await harness.cluster.api.list(DEPLOYMENTS, { namespace: "default" })).items.length;
}

test("refuse keeps all that serves and says why, until the policy is another one", async () => {
  harness = await Harness.start();
  await harness.serve();
  await deletePool("refuse");
  await harness.pass(20_000);
  expect([(await harness.serving()).length, await harness.reasons()]).toEqual([2, expect.arrayContaining(["deletion_refused"])]);

  await harness.cluster.api.patch(REF, { spec: { deletion: "drain" } });
  await harness.until("the pool is gone", isGone);
  expect(await deployments()).toBe(0);
});

test("orphan lets go at once and touches nothing: what runs goes on, and so does its traffic", async () => {
  harness = await Harness.start();
  const served = (await harness.serve()).map(({ id }) => id).toSorted();
  harness.kube.calls.length = 0;
  await deletePool("orphan");
  await harness.until("the pool is gone", isGone);
  await harness.pass(20_000);
  expect(await deployments()).toBe(2);
  expect(
    harness.kube
      .writes()
      .filter(({ kind }) => kind !== "Event")
      .map(({ kind }) => kind),
  ).toEqual(
    harness.kube
      .writes()
      .filter(({ kind }) => kind === "Pool")
      .map(() => "Pool"),
  );
  expect(harness.runtime.containers().length).toBe(served.length);
});

test("a Pool that goes with its namespace is orphaned: Relevo drains and deletes nothing, though its policy is drain", async () => {
  harness = await Harness.start();
  const namespace = { type: NAMESPACES, name: "shop" };
  await harness.cluster.api.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } });
  await harness.serve(ordersPool({ namespace: "shop" }));
  await harness.cluster.api.patch({ ...REF, namespace: "shop" }, { spec: { deletion: "drain" } });
  await harness.pass(100);
  const steps = (await harness.steps("shop/orders")).length;
  await harness.cluster.api.delete(namespace);
  await harness.until("the namespace is gone", () =>
    harness.cluster.api.get(namespace).then(
      () => false,
      (error: unknown) => isNotFound(error),
    ),
  );
  expect(harness.kube.writes().filter(({ verb }) => verb === "delete")).toEqual([]);
  expect((await harness.steps("shop/orders")).length).toBe(steps);
});

test.each(["refuse", "drain"] as const)("a Pool that goes with its CRD is orphaned, though its policy is %s", async (deletion) => {
  harness = await Harness.start();
  await harness.serve();
  const name = "pools.relevo.dev";
  await harness.cluster.api.create(CUSTOM_RESOURCE_DEFINITIONS, {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name, finalizers: ["example.com/cleanup"] },
    spec: {},
  });
  await harness.cluster.api.delete({ type: CUSTOM_RESOURCE_DEFINITIONS, name });
  await deletePool(deletion);
  await harness.until("the pool is gone", isGone);
  await harness.pass(20_000);
  expect(await deployments()).toBe(2);
  expect(harness.gateways[0]?.routed().length).toBe(2);
});

test("while nobody can tell whether its CRD goes, a Pool is not drained and says why; then it is", async () => {
  harness = await Harness.start();
  await harness.serve();
  let isForbidden = true;
  harness.kube.failing = ({ verb, kind }) =>
    isForbidden && verb === "get" && kind === "CustomResourceDefinition"
      ? new KubeApiError({ code: 403, reason: "Forbidden", message: "may not get" }, "test")
      : undefined;
  await deletePool("drain");
  await harness.pass(30_000);
  const told = (await harness.store.readPool("default/orders"))?.reasons ?? [];
  expect([
    (await harness.serving()).length,
    told.filter(({ subject }) => subject === "").map(({ reason: { code, params } }) => [code, params]),
  ]).toEqual([2, [["deletion_cause_unknown", { found: expect.stringContaining("test: may not get") as string }]]]);
  isForbidden = false;
  await harness.until("the pool is gone", isGone);
  expect(await deployments()).toBe(0);
});

test("drain does not wait for a candidate that never gets a place", async () => {
  harness = await Harness.start();
  await harness.apply(ordersPool({ desired: 2, pod: { nodeSelector: { "kubernetes.io/hostname": "nowhere" } } }));
  await harness.pass(2_000);
  await deletePool("drain");
  await harness.until("the pool is gone", isGone);
  expect(await deployments()).toBe(0);
});

test("drain does not wait for a gateway that nobody started", async () => {
  harness = await Harness.start({ gateways: 0 });
  await harness.apply(ordersPool());
  await harness.until("all are admitted", async () => (await harness.records()).every(({ phase }) => phase === "admitted"));
  await deletePool("drain");
  await harness.until("the pool is gone", isGone);
  expect(await deployments()).toBe(0);
});

test("drain ends also when the finalizer cannot be taken off at the first try", async () => {
  harness = await Harness.start();
  await harness.serve();
  let failures = 3;
  harness.kube.failing = ({ verb, kind, body }) =>
    verb === "patch" && kind === "Pool" && JSON.stringify(body).includes('"finalizers":[]') && failures-- > 0
      ? new KubeApiError({ code: 409, reason: "Conflict" }, "the object has been modified")
      : undefined;
  await deletePool("drain");
  await harness.until("the pool is gone", isGone);
  expect(failures).toBeLessThanOrEqual(0);
});

test("with mode Off a condemned instance does not keep the pool from getting smaller", async () => {
  harness = await Harness.start();
  const [first] = await harness.serve(ordersPool({ desired: 2, mode: "Observe" }));
  await harness.drift(first?.incarnation.nodeName ?? "");
  await harness.until("evidence is there", async () => (await harness.evidence()).length > 0);
  await harness.shrink(1);
  await harness.until("one serves", async () => (await harness.serving()).length === 1);
  expect((await harness.serving()).map(({ id }) => id)).not.toContain(first?.id);
});

test("a document that is not valid changes nothing: the last valid one holds, and the reason is told", async () => {
  harness = await Harness.start();
  const [first] = await harness.serve();
  await harness.cluster.api.patch(REF, { spec: { size: { floor: 9 } } });
  await harness.pass(6_000);
  expect(await harness.reasons()).toContain("spec_invalid");
  expect(harness.gateways[0]?.routed().length).toBe(2);

  await harness.drift(first?.incarnation.nodeName ?? "");
  await harness.until("it is replaced", async () => (await harness.phase(first?.id ?? "")) === "deleted");
  expect((await harness.serving()).length).toBe(2);
});

test("a delete that was forbidden for a while is tried again, and the instance is not left half gone (D14)", async () => {
  harness = await Harness.start();
  const [first] = await harness.serve();
  let isForbidden = true;
  harness.kube.failing = ({ verb, kind }) =>
    isForbidden && verb === "delete" && kind === "Deployment"
      ? new KubeApiError({ code: 403, reason: "Forbidden" }, "may not delete")
      : undefined;
  await harness.drift(first?.incarnation.nodeName ?? "");
  await harness.until("it is retiring", async () => (await harness.phase(first?.id ?? "")) === "retiring");
  await harness.pass(5_000);
  isForbidden = false;
  await harness.until("it is gone", async () => (await harness.phase(first?.id ?? "")) === "deleted");
});

test("another health path in the document is not asked of instances that do not have it", async () => {
  harness = await Harness.start();
  const served = (await harness.serve()).map(({ id }) => id).toSorted();
  const health = harness.instances.health.bind(harness.instances);
  harness.instances.health = async (target) =>
    target.healthPath === "/relevo/v1/health" ? health(target) : { ok: false, bootId: null, reason: "status_404" };
  await harness.cluster.api.patch(REF, { spec: { service: { healthPath: "/healthz" } } });
  await harness.pass(30_000);
  expect((await harness.serving()).map(({ id }) => id).toSorted()).toEqual(served);
  expect(await harness.evidence()).toEqual([]);
  expect(await harness.reasons()).toContain("service_fixed");
});

test("an operator hears when a drain is not acted upon, because other evidence came first and the mode is not Act (D11)", async () => {
  harness = await Harness.start();
  const [first, second] = await harness.serve(ordersPool({ desired: 2, mode: "Observe" }));
  await harness.drift(first?.incarnation.nodeName ?? "");
  await harness.until("evidence is there", async () => (await harness.evidence()).length > 0);
  const command = { by: "test", why: "test" };
  await expect(harness.controlPlane.drain({ ...command, instance: first?.id ?? "" })).rejects.toMatchObject({
    code: "drain_not_acted_upon",
  });
  await harness.controlPlane.drain({ ...command, instance: second?.id ?? "" });
  await harness.until("the other one is replaced", async () => (await harness.phase(second?.id ?? "")) === "deleted");
});

test("what outlived its instance, because a leader that had been overtaken made it too late, is found and deleted by UID; a copy of it is not, nor what the store knows nothing of (I8)", async () => {
  harness = await Harness.start();
  const [first] = await harness.serve();
  const lead = await harness.cluster.api.get({ type: DEPLOYMENTS, namespace: "default", name: first?.id ?? "" });
  await harness.controlPlane.drain({ instance: first?.id ?? "", by: "an operator", why: "a test" });
  await harness.until("it is deleted", async () => (await harness.phase(first?.id ?? "")) === "deleted", 120_000);

  const late = (name: string, step: string) => {
    const { uid: _, resourceVersion: __, creationTimestamp: ___, ...metadata } = lead.metadata;
    return { ...lead, metadata: { ...metadata, name, annotations: { "relevo.dev/step": step } } };
  };
  await harness.cluster.api.create(DEPLOYMENTS, late(first?.id ?? "", `create/${first?.id}`), { namespace: "default" });
  await harness.cluster.api.create(DEPLOYMENTS, late("copied", `create/${first?.id}`), { namespace: "default" });
  const unknown = late("orders-unknown", "create/orders-unknown");
  const lost = {
    ...unknown,
    metadata: { ...unknown.metadata, labels: { ...unknown.metadata.labels, "relevo.dev/instance": "orders-unknown" } },
  };
  await harness.cluster.api.create(DEPLOYMENTS, lost, { namespace: "default" });
  await harness.pass(60_000);

  const names = (await harness.cluster.api.list(DEPLOYMENTS, { namespace: "default" })).items.map(({ metadata }) => metadata.name);
  expect([first?.id ?? "", "copied", "orders-unknown"].map((name) => names.includes(name))).toEqual([false, true, true]);
  expect(await harness.reasons(), "what the store knows nothing of is told and left alone").toContain("orders-unknown stranger");
});

test("a pod that bears an instance's label and is nobody's keeps that instance from nothing, and is left alone (D2, I8, I15)", async () => {
  harness = await Harness.start();
  const [first] = await harness.serve();
  const metadata = { name: "stranger", labels: { "relevo.dev/instance": first?.id ?? "", "relevo.dev/pool": "orders" } };
  const spec = { containers: [{ name: "main", image: "example", command: ["run"] }] };
  await harness.cluster.api.create(PODS, { apiVersion: "v1", kind: "Pod", metadata, spec }, { namespace: "default" });

  await harness.controlPlane.drain({ instance: first?.id ?? "", by: "an operator", why: "a test" });
  await harness.until("it is deleted", async () => (await harness.phase(first?.id ?? "")) === "deleted", 120_000);
  const left = await harness.cluster.api.get({ type: PODS, namespace: "default", name: "stranger" });
  expect([left.metadata.deletionTimestamp, left.metadata.annotations ?? {}]).toEqual([undefined, {}]);
});

test("a pod of ours that is taken out of its Deployment by its labels loses our marks, and its successor has them (D2)", async () => {
  harness = await Harness.start();
  const [first] = await harness.serve(ordersPool({ desired: 1 }));
  const pod = { type: PODS, namespace: "default", name: first?.incarnation.podName ?? "" };
  const marks = async () => (await harness.cluster.api.get(pod)).metadata.annotations ?? {};
  await harness.until("it is marked", async () => (await marks())["karpenter.sh/do-not-disrupt"] === "true");

  await harness.cluster.api.patch(pod, { metadata: { labels: { app: "taken" }, ownerReferences: null } });
  await harness.until("its marks are off", async () => (await marks())["relevo.dev/protected-by"] === undefined);
  expect(Object.keys(await marks()).filter((mark) => mark.startsWith("karpenter.sh/") || mark.startsWith("cluster-autoscaler"))).toEqual(
    [],
  );
  await harness.until("another pod serves and is marked", async () => {
    const { items } = await harness.cluster.api.list(PODS, { namespace: "default" });
    return items.some(({ metadata }) => metadata.name !== pod.name && metadata.annotations?.["karpenter.sh/do-not-disrupt"] === "true");
  });
});
