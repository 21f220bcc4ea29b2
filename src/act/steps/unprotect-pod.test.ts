import { expect, test } from "vitest";
import { DEPLOYMENTS, PODS, REPLICA_SETS } from "../../kube/resources.ts";
import { aRunningInstance, aWorld, create, INSTANCE } from "../testing/world.ts";
import { protectPod } from "./protect-pod.ts";
import { unprotectPod } from "./unprotect-pod.ts";

const POD = { type: PODS, namespace: "default", name: `${INSTANCE}-pod` };
const REPLICA_SET = { type: REPLICA_SETS, namespace: "default", name: `${INSTANCE}-rs` };
const BOTH = ["karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict"];

/** A pod of ours that bears our marks. */
async function aProtectedPod(userMarks: Readonly<Record<string, string>> = {}) {
  const world = await aWorld();
  const { objects, pod } = await aRunningInstance(world, "a");
  const payload = { pod: { namespace: "default", name: pod.metadata.name, uid: pod.metadata.uid }, objects };
  const ports = { kube: world.kube, driver: world.instances, step: { id: `protect/${pod.metadata.uid}` } };
  await world.kube.patch(POD, { metadata: { annotations: { theirs: "stays", ...userMarks } } });
  await protectPod.act(payload, ports);
  world.effects.length = 0;
  return { world, payload, ports, annotations: async () => (await world.kube.get(POD)).metadata.annotations };
}

test("a pod that its owner let go loses our marks in one patch, and nothing else (D2)", async () => {
  const { world, payload, ports, annotations } = await aProtectedPod();
  await world.kube.patch(POD, { metadata: { ownerReferences: null } });
  world.effects.length = 0;

  expect(await unprotectPod.probe(payload, ports)).toEqual({ answer: "not" });
  expect(await unprotectPod.act(payload, ports)).toEqual({ state: "done", code: "unprotected", result: { removed: BOTH } });
  expect(await annotations()).toEqual({ theirs: "stays" });
  expect(await unprotectPod.probe(payload, ports)).toEqual({ answer: "happened", code: "unprotected" });
  expect(await unprotectPod.act(payload, ports)).toEqual({ state: "superseded", code: "not_our_mark" });
  expect(world.effects).toEqual([`patch pods/${POD.name}`]);
});

test("a mark that the user set before us, or changed since, stays (D2)", async () => {
  const { world, payload, ports, annotations } = await aProtectedPod({ "karpenter.sh/do-not-disrupt": "true" });
  await world.kube.patch(POD, { metadata: { ownerReferences: null, annotations: { [BOTH[1] ?? ""]: "true" } } });

  expect(await unprotectPod.act(payload, ports)).toEqual({ state: "done", code: "unprotected", result: { removed: [] } });
  expect(await annotations()).toEqual({ theirs: "stays", "karpenter.sh/do-not-disrupt": "true", [BOTH[1] ?? ""]: "true" });
});

test("a pod whose ReplicaSet another Deployment took over is not ours any more; one whose owners are ours, or go, keeps its marks (D2)", async () => {
  const { world, payload, ports, annotations } = await aProtectedPod();
  const before = await annotations();
  expect(await unprotectPod.act(payload, ports)).toEqual({ state: "superseded", code: "owner_ours" });
  expect(await annotations()).toEqual(before);

  const labels = { app: "other" };
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "x" }] } };
  const other = await create(world.kube, DEPLOYMENTS, {
    metadata: { name: "other" },
    spec: { selector: { matchLabels: labels }, template },
  });
  const ownerReferences = [{ apiVersion: "apps/v1", kind: "Deployment", name: "other", uid: other.metadata.uid, controller: true }];
  await world.kube.patch(REPLICA_SET, { metadata: { ownerReferences } });
  expect((await unprotectPod.act(payload, ports)).code).toBe("unprotected");

  const going = await aProtectedPod();
  await going.world.kube.delete(REPLICA_SET);
  expect(await unprotectPod.act(going.payload, going.ports)).toEqual({ state: "superseded", code: "owner_ours" });
});

test("a pod that is gone, replaced or going is left alone", async () => {
  const { world, payload, ports } = await aProtectedPod();
  const named = (name: string, uid: string) => ({ ...payload, pod: { namespace: "default", name, uid } });

  expect(await unprotectPod.act(named("other", "x"), ports)).toEqual({ state: "superseded", code: "pod_gone" });
  expect(await unprotectPod.act(named(POD.name, "x"), ports)).toEqual({ state: "superseded", code: "pod_replaced" });
  await world.kube.delete(POD);
  expect((await unprotectPod.act(payload, ports)).code).toMatch(/^pod_(deleting|gone)$/);
});
