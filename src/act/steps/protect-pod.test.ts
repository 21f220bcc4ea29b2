import { expect, test } from "vitest";
import { DEPLOYMENTS, PODS, REPLICA_SETS, STATEFUL_SETS } from "../../kube/resources.ts";
import { faulty } from "../testing/fuse.ts";
import { aRunningInstance, aWorld, create, INSTANCE } from "../testing/world.ts";
import { protectPod } from "./protect-pod.ts";

const POD = { type: PODS, namespace: "default", name: `${INSTANCE}-pod` };

async function aPod() {
  const world = await aWorld();
  const { objects, pod } = await aRunningInstance(world, "a");
  world.effects.length = 0;
  const step = { id: `protect/${pod.metadata.uid}` };
  const payload = { pod: { namespace: "default", name: pod.metadata.name, uid: pod.metadata.uid }, objects };
  const ports = { kube: world.kube, driver: world.instances, step };
  return { world, payload, ports, step, annotations: async () => (await world.kube.get(POD)).metadata.annotations };
}

const BOTH = ["karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict"];

test("a pod whose owners lead by UID to the recorded object is marked, and the marker says what was set (D2)", async () => {
  const { world, payload, ports, step, annotations } = await aPod();

  expect(await protectPod.probe(payload, ports)).toEqual({ answer: "not" });
  expect(await protectPod.act(payload, ports)).toEqual({ state: "done", code: "protected", result: { set: BOTH } });

  expect(await annotations()).toEqual({
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "relevo.dev/protected-by": JSON.stringify({ step: step.id, set: BOTH }),
  });
  expect(await protectPod.probe(payload, ports)).toEqual({ answer: "happened", code: "protected", result: { set: BOTH } });
  expect(await protectPod.act(payload, ports)).toEqual({ state: "done", code: "already_protected" });
  expect(world.effects).toEqual([`patch pods/${POD.name}`]);
});

test("a mark of the user keeps its value and is not claimed (D2)", async () => {
  const { world, payload, ports, step, annotations } = await aPod();
  await world.kube.patch(POD, { metadata: { annotations: { "karpenter.sh/do-not-disrupt": "false" } } });

  await protectPod.act(payload, ports);

  expect(await annotations()).toEqual({
    "karpenter.sh/do-not-disrupt": "false",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "relevo.dev/protected-by": JSON.stringify({ step: step.id, set: ["cluster-autoscaler.kubernetes.io/safe-to-evict"] }),
  });
});

test("a pod of a Deployment with the same name and another UID is not ours (D2)", async () => {
  const { world, payload, ports, annotations } = await aPod();
  const deployment = await world.kube.get({ type: DEPLOYMENTS, namespace: "default", name: INSTANCE });
  const foreign = payload.objects.map((object) => ({ ...object, uid: `${deployment.metadata.uid}-before` }));

  expect(await protectPod.act({ ...payload, objects: foreign }, ports)).toEqual({ state: "superseded", code: "owner_not_ours" });
  expect(await annotations()).toBeUndefined();
});

test("a pod whose ReplicaSet was made anew under the same name is not ours (D2)", async () => {
  const { world, payload, ports } = await aPod();
  const ref = { type: REPLICA_SETS, namespace: "default", name: `${INSTANCE}-rs` };
  const { metadata, ...replicaSet } = await world.kube.get(ref);
  const { uid: _uid, resourceVersion: _version, creationTimestamp: _time, ...rest } = metadata;
  await world.kube.delete(ref, { propagationPolicy: "Background" });
  await world.kube.create(REPLICA_SETS, { ...replicaSet, metadata: rest }, { namespace: "default" });

  expect(await protectPod.act(payload, ports)).toEqual({ state: "superseded", code: "owner_not_ours" });
});

test("a pod that is gone, replaced or going is left alone", async () => {
  const { world, payload, ports } = await aPod();
  const named = (name: string, uid: string) => ({ ...payload, pod: { namespace: "default", name, uid } });

  expect(await protectPod.act(named("other", "x"), ports)).toEqual({ state: "superseded", code: "pod_gone" });
  expect(await protectPod.act(named(POD.name, "x"), ports)).toEqual({ state: "superseded", code: "pod_replaced" });
  await world.kube.delete(POD);
  expect((await protectPod.act(payload, ports)).code).toMatch(/^pod_(deleting|gone)$/);
});

test("after a lost reply the probe finds the marker", async () => {
  const { payload, ports } = await aPod();
  const kube = faulty(ports.kube, ({ method }) => (method === "patch" ? { error: new Error("reply lost"), side: "after" } : undefined));

  await expect(protectPod.act(payload, { ...ports, kube })).rejects.toThrow("reply lost");
  expect(await protectPod.probe(payload, ports)).toEqual({ answer: "happened", code: "protected", result: { set: BOTH } });
});

test("a pod that borrows our labels under another Deployment is not ours, although ours exists (D2)", async () => {
  const { world, payload, ports } = await aPod();
  const labels = { app: "orders" };
  const spec = {
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: "main", image: "x" }] } },
  };
  const ours = await create(world.kube, DEPLOYMENTS, { metadata: { name: "ours" }, spec });
  const recorded = [{ apiVersion: "apps/v1", kind: "Deployment", namespace: "default", name: "ours", uid: ours.metadata.uid }];

  expect(await protectPod.act({ ...payload, objects: recorded }, ports)).toEqual({ state: "superseded", code: "owner_not_ours" });
});

test("a pod of the StatefulSet that was recorded is ours, one of another set of that name is not (D2)", async () => {
  const { world, ports } = await aPod();
  const labels = { app: "ledger" };
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "x" }] } };
  const set = await create(world.kube, STATEFUL_SETS, {
    metadata: { name: "ledger" },
    spec: { serviceName: "ledger", selector: { matchLabels: labels }, template },
  });
  const controlledBy = (uid: string) => [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "ledger", uid, controller: true }];
  const podOf = (name: string, uid: string) =>
    create(world.kube, PODS, { metadata: { name, labels, ownerReferences: controlledBy(uid) }, spec: template.spec });
  const objects = [{ apiVersion: "apps/v1", kind: "StatefulSet", namespace: "default", name: "ledger", uid: set.metadata.uid }];
  const protect = async (name: string, uid: string) => {
    const { metadata } = await podOf(name, uid);
    return protectPod.act({ pod: { namespace: "default", name, uid: metadata.uid }, objects }, ports);
  };

  expect(await protect("ledger-0", set.metadata.uid)).toEqual({ state: "done", code: "protected", result: { set: BOTH } });
  expect(await protect("ledger-1", "of-the-set-before")).toEqual({ state: "superseded", code: "owner_not_ours" });
});
