import { expect, test } from "vitest";
import { instance } from "../../test/builders/pool.ts";
import { aNode, aRunningInstance, aWorld, INSTANCE, type World } from "../act/testing/world.ts";
import type { KubeApi } from "../kube/api.ts";
import { DEPLOYMENTS, NODES, PODS, REPLICA_SETS } from "../kube/resources.ts";
import type { InstanceRecord } from "../model/instance.ts";
import { type Absence, NamedReads } from "./named-reads.ts";

const DEPLOYMENT = { type: DEPLOYMENTS, namespace: "default", name: INSTANCE };
const REPLICA_SET = { type: REPLICA_SETS, namespace: "default", name: `${INSTANCE}-rs` };
const POD = { type: PODS, namespace: "default", name: `${INSTANCE}-pod` };
const NODE = { type: NODES, name: "a" };

async function aReader(wrap: (kube: KubeApi) => Pick<KubeApi, "get" | "list"> = (kube) => kube) {
  const world = await aWorld();
  const node = await aNode(world.kube, "a");
  const { objects, pod } = await aRunningInstance(world, "a");
  const { record } = instance("serving", { record: { id: INSTANCE, objects } });
  const incarnation = {
    ...record.incarnation,
    podName: pod.metadata.name,
    podUid: pod.metadata.uid,
    containerId: "test://1",
    nodeName: "a",
    nodeUid: node.metadata.uid,
  };
  const woken: string[] = [];
  const reads = new NamedReads({ kube: wrap(world.kube), clock: world.clock, onChange: (pool) => woken.push(pool), log: () => {} });
  return { world, reads, woken, record: { ...record, incarnation } };
}

/** The first word is never a verdict; what the server said is there at the next look. */
async function verdict(reads: NamedReads, world: World, record: InstanceRecord, absence: Absence): Promise<boolean> {
  expect(reads.confirm(record, absence)).toBe(false);
  await world.clock.advance(10);
  return reads.confirm(record, absence);
}

test("an answer holds for the row, whichever object the store gives for it; when the row is another one it is asked for again", async () => {
  const { world, reads, record, woken } = await aReader();
  await world.kube.delete(POD, { gracePeriodSeconds: 0 });
  const again = (): InstanceRecord => structuredClone(record);
  expect(reads.confirm(again(), "pod")).toBe(false);
  await world.clock.advance(10);
  expect([reads.confirm(again(), "pod"), reads.confirm(again(), "pod"), woken.length]).toEqual([true, true, 1]);
  expect(reads.confirm({ ...again(), trust: "suspect" }, "pod")).toBe(false);
});

test.each<[Absence, string, (kube: KubeApi) => Promise<unknown>, boolean]>([
  ["objects", "all of it is there", async () => {}, false],
  ["objects", "its ReplicaSet outlives its Deployment", (kube) => kube.delete(DEPLOYMENT), false],
  [
    "objects",
    "a pod outlives both",
    async (kube) => {
      await kube.delete(DEPLOYMENT);
      await kube.delete(REPLICA_SET);
    },
    false,
  ],
  [
    "objects",
    "nothing of it is left",
    async (kube) => {
      await kube.delete(DEPLOYMENT);
      await kube.delete(REPLICA_SET);
      await kube.delete(POD, { gracePeriodSeconds: 0 });
    },
    true,
  ],
  [
    "objects",
    "a pod that is left bears the label and nobody made it",
    async (kube) => {
      await kube.delete(DEPLOYMENT);
      await kube.delete(REPLICA_SET);
      await kube.patch(POD, { metadata: { ownerReferences: null } });
    },
    true,
  ],
  [
    "objects",
    "the pod's ReplicaSet was let go by its Deployment",
    async (kube) => {
      await kube.delete(DEPLOYMENT);
      await kube.patch(REPLICA_SET, { metadata: { ownerReferences: null } });
    },
    true,
  ],
  ["process", "it runs", async () => {}, false],
  ["process", "its pod is gone", (kube) => kube.delete(POD, { gracePeriodSeconds: 0 }), true],
  ["process", "another container runs in its pod", (kube) => kube.patchStatus(POD, withContainer("test://2", { running: {} })), true],
  ["process", "its container ended", (kube) => kube.patchStatus(POD, withContainer("test://1", { terminated: { exitCode: 1 } })), true],
  ["pod", "it is there", async () => {}, false],
  ["pod", "it is gone", (kube) => kube.delete(POD, { gracePeriodSeconds: 0 }), true],
  ["pod", "its label was taken away", (kube) => kube.patch(POD, { metadata: { labels: { "relevo.dev/instance": null } } }), true],
  ["pod", "its owner is gone", (kube) => kube.delete(REPLICA_SET), true],
  ["node", "it is there and ready", async () => {}, false],
  ["node", "it is gone", (kube) => kube.delete(NODE), true],
  ["node", "it is not ready", (kube) => kube.patchStatus(NODE, { status: { conditions: [{ type: "Ready", status: "Unknown" }] } }), true],
  [
    "node",
    "another machine has its name",
    async (kube) => {
      await kube.delete(NODE);
      await aNode(kube, "a").catch(() => undefined);
    },
    true,
  ],
])("that its %s is absent is said by the server alone: %s (D8)", async (absence, _, change, isAbsent) => {
  const { world, reads, record } = await aReader();
  await change(world.kube);

  expect(await verdict(reads, world, record, absence)).toBe(isAbsent);
});

function withContainer(containerID: string, state: object) {
  return { status: { containerStatuses: [{ name: "main", image: "", imageID: "", ready: true, restartCount: 0, containerID, state }] } };
}

test("what the server sees is asked for once more after a second", async () => {
  const { world, reads, record, woken } = await aReader();
  expect(await verdict(reads, world, record, "pod")).toBe(false);
  await world.kube.delete(POD, { gracePeriodSeconds: 0 });

  expect(await verdict(reads, world, record, "pod")).toBe(false);
  await world.clock.advance(1_000);
  expect(woken).toEqual(["default/orders"]);
  expect(await verdict(reads, world, record, "pod")).toBe(true);
});

test("a server that does not answer says nothing, and is asked again (D12)", async () => {
  let failures = 1;
  const { world, reads, record } = await aReader((kube) => ({
    list: (type, options) => kube.list(type, options),
    get: (ref) => (failures-- > 0 ? Promise.reject(new Error("connection refused")) : kube.get(ref)),
  }));
  await world.kube.delete(POD, { gracePeriodSeconds: 0 });

  expect(await verdict(reads, world, record, "pod")).toBe(false);
  await world.clock.advance(1_000);
  expect(await verdict(reads, world, record, "pod")).toBe(true);
});

test("no more than eight are asked at once, and none is forgotten", async () => {
  let asking = 0;
  let most = 0;
  const { world, reads, record } = await aReader((kube) => ({
    list: (type, options) => kube.list(type, options),
    get: async (ref) => {
      most = Math.max(most, ++asking);
      await world.clock.sleep(5);
      asking -= 1;
      return kube.get(ref);
    },
  }));
  await world.kube.delete(POD, { gracePeriodSeconds: 0 });
  const records = Array.from({ length: 30 }, (_, number) => ({ ...record, id: `orders-${number}` }));

  for (const each of records) reads.confirm(each, "pod");
  await world.clock.advance(100);
  expect(most).toBe(8);
  expect(records.every((each) => reads.confirm(each, "pod"))).toBe(true);
});
