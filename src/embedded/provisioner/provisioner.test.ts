import { expect, test } from "vitest";
import type { KubeObject, ResourceType } from "../../kube/api.ts";
import { NODE_CLAIMS, NODE_POOLS, NODES, POD_DISRUPTION_BUDGETS, PODS } from "../../kube/resources.ts";
import type { NodeClaimView, NodeView, PodView } from "../controllers/views.ts";
import { testCluster, type TestCluster } from "../testing/cluster.ts";

const QUICK = { disruptionIntervalMs: 1_000, consolidateAfterMs: 600_000, vanishAfterMs: 8_000 };
const PROTECTED = { annotations: { "karpenter.sh/do-not-disrupt": "true" } };

/** What a watcher sees of a claim and its node, one line for each event. */
async function record(cluster: TestCluster, signal: AbortSignal): Promise<string[]> {
  const lines: string[] = [];
  const follow = async (type: ResourceType, describe: (object: KubeObject) => string): Promise<void> => {
    for await (const event of cluster.api.watch(type, { resourceVersion: cluster.store.list(type).resourceVersion }, signal)) {
      if (event.type === "BOOKMARK" || event.type === "ERROR") continue;
      const line = `${type.kind} ${event.type}${describe(event.object)}`;
      if (lines.at(-1) !== line) lines.push(line);
    }
  };
  void follow(NODE_CLAIMS, (object) => {
    const claim = object as NodeClaimView;
    const last = claim.status?.conditions ?? [];
    return `${claim.metadata.deletionTimestamp === undefined ? "" : " deleting"} ${last.map(({ type, status }) => `${type}=${status}`).join(" ")}`;
  });
  void follow(NODES, (object) => {
    const node = object as NodeView;
    const taints = (node.spec.taints ?? []).map(({ key, effect }) => ` ${key}:${effect}`).join("");
    return `${node.metadata.deletionTimestamp === undefined ? "" : " deleting"}${taints}`;
  });
  await cluster.clock.settle();
  return lines;
}

const nodeNames = (cluster: TestCluster): readonly string[] => cluster.provisioner.nodes().map((node) => node.name);
const claimOf = (cluster: TestCluster, nodeName: string): NodeClaimView => {
  const claim = cluster.store.list(NODE_CLAIMS).items.find((item) => (item as NodeClaimView).status?.nodeName === nodeName);
  if (claim === undefined) throw new Error(`no claim of ${nodeName}`);
  return claim as NodeClaimView;
};

test("the first nodes are spread over the zones and carry what Karpenter writes", async () => {
  const cluster = await testCluster({ nodes: 4 });

  expect(nodeNames(cluster)).toEqual(["node-a1", "node-a2", "node-b1", "node-b2"]);
  const node = cluster.find(NODES, "node-b1") as NodeView;
  const claim = claimOf(cluster, "node-b1");
  expect(node.spec.providerID).toMatch(/^aws:\/\/\/zone-b\/i-[0-9a-f]{17}$/);
  expect(node.metadata.labels).toMatchObject({
    "karpenter.sh/capacity-type": "spot",
    "karpenter.sh/initialized": "true",
    "karpenter.sh/nodepool": "spot",
    "karpenter.sh/registered": "true",
    "kubernetes.io/hostname": "node-b1",
    "topology.kubernetes.io/zone": "zone-b",
  });
  expect(node.metadata.finalizers).toEqual(["karpenter.sh/termination"]);
  expect(node.metadata.ownerReferences).toEqual([
    { apiVersion: "karpenter.sh/v1", kind: "NodeClaim", name: claim.metadata.name, uid: claim.metadata.uid, blockOwnerDeletion: true },
  ]);
  expect(claim.metadata.finalizers).toEqual(["karpenter.sh/termination"]);
  expect(claim.metadata.name).not.toBe("node-b1");
  expect(claim.status).toMatchObject({ nodeName: "node-b1", providerID: node.spec.providerID });
  await cluster.close();
});

test("a NodeClaim goes through Karpenter's conditions in its order", async () => {
  const cluster = await testCluster({ nodes: 1, provisioner: { minNodes: 1 } });
  const stop = new AbortController();
  const lines = await record(cluster, stop.signal);
  await cluster.deploy("big", 2, { pod: { containers: [{ name: "main", command: ["run"], resources: { requests: { cpu: "3" } } }] } });
  await cluster.until("a second node runs the second pod", () => cluster.readyPods().length === 2);
  await cluster.clock.settle();
  stop.abort();

  expect(lines).toEqual([
    "NodeClaim ADDED ",
    "NodeClaim MODIFIED Launched=Unknown Registered=Unknown Initialized=Unknown Ready=Unknown",
    "NodeClaim MODIFIED Launched=True Registered=Unknown Initialized=Unknown Ready=Unknown",
    "Node ADDED karpenter.sh/unregistered:NoExecute node.kubernetes.io/not-ready:NoSchedule",
    "Node MODIFIED node.kubernetes.io/not-ready:NoSchedule",
    "NodeClaim MODIFIED Launched=True Registered=Unknown Initialized=Unknown Ready=Unknown",
    "Node MODIFIED node.kubernetes.io/not-ready:NoSchedule",
    "NodeClaim MODIFIED Launched=True Registered=True Initialized=Unknown Ready=Unknown",
    "Node MODIFIED",
    "NodeClaim MODIFIED Launched=True Registered=True Initialized=Unknown Ready=Unknown ConsistentStateFound=True",
    "NodeClaim MODIFIED Launched=True Registered=True Initialized=True Ready=Unknown ConsistentStateFound=True",
    "NodeClaim MODIFIED Launched=True Registered=True Initialized=True Ready=True ConsistentStateFound=True",
  ]);
  await cluster.close();
});

test("Karpenter replaces a drifted node by itself: replacement ready, then drained, then gone", async () => {
  const cluster = await testCluster({ provisioner: QUICK });
  await cluster.deploy("web", 3);
  await cluster.until("three are ready", () => cluster.readyPods().length === 3);
  const stop = new AbortController();
  const lines = await record(cluster, stop.signal);
  await cluster.provisioner.drift("node-a1");
  await cluster.until("it is gone", () => !nodeNames(cluster).includes("node-a1"));
  await cluster.until("three are ready again", () => cluster.readyPods().length === 3);
  stop.abort();

  const old = lines
    .filter((line) => /Drifted|disrupted|DELETED/.test(line))
    .map((line) => line.replace("Launched=True Registered=True Initialized=True Ready=True ConsistentStateFound=True ", ""));
  expect(old).toEqual([
    "NodeClaim MODIFIED Drifted=True",
    "Node MODIFIED karpenter.sh/disrupted:NoSchedule",
    "NodeClaim MODIFIED Drifted=True DisruptionReason=True",
    "NodeClaim MODIFIED deleting Drifted=True DisruptionReason=True",
    "Node MODIFIED deleting karpenter.sh/disrupted:NoSchedule",
    "NodeClaim MODIFIED deleting Drifted=True DisruptionReason=True Drained=Unknown",
    "NodeClaim MODIFIED deleting Drifted=True DisruptionReason=True Drained=True",
    "NodeClaim MODIFIED deleting Drifted=True DisruptionReason=True Drained=True VolumesDetached=True",
    "NodeClaim MODIFIED deleting Drifted=True DisruptionReason=True Drained=True VolumesDetached=True InstanceTerminating=True",
    "Node DELETED deleting karpenter.sh/disrupted:NoSchedule",
    "NodeClaim DELETED deleting Drifted=True DisruptionReason=True Drained=True VolumesDetached=True InstanceTerminating=True",
  ]);
  const replacementReady = lines.indexOf(
    "NodeClaim MODIFIED Launched=True Registered=True Initialized=True Ready=True ConsistentStateFound=True",
  );
  expect(replacementReady).toBeLessThan(lines.findIndex((line) => line.startsWith("NodeClaim MODIFIED deleting")));
  expect(nodeNames(cluster)).toEqual(["node-a2", "node-a3", "node-b1"]);
  await cluster.close();
});

test("a pod that says do-not-disrupt keeps its drifted node, without a termination grace period (D2)", async () => {
  const cluster = await testCluster({ provisioner: QUICK });
  await cluster.deploy("web", 3, PROTECTED);
  await cluster.until("three are ready", () => cluster.readyPods().length === 3);
  await cluster.provisioner.drift("node-a1");
  await cluster.clock.advance(60_000);

  expect(nodeNames(cluster)).toEqual(["node-a1", "node-a2", "node-b1"]);
  expect((cluster.find(NODES, "node-a1") as NodeView).spec.taints).toBeUndefined();
  expect(claimOf(cluster, "node-a1").status?.conditions?.find(({ type }) => type === "Drifted")).toMatchObject({
    status: "True",
    reason: "AMIDrift",
  });

  await cluster.provisioner.drift("node-a1", { clear: true });
  await cluster.clock.settle();
  expect(claimOf(cluster, "node-a1").status?.conditions?.find(({ type }) => type === "Drifted")).toBeUndefined();
  await cluster.close();
});

test("a changed NodePool drifts every node, and its budget says how many go at a time", async () => {
  const cluster = await testCluster({ nodes: 4, provisioner: QUICK });
  await cluster.deploy("web", 4);
  await cluster.until("four are ready", () => cluster.readyPods().length === 4);
  await cluster.api.patch(
    { type: NODE_POOLS, name: "spot" },
    { spec: { disruption: { budgets: [{ nodes: "1" }] }, template: { metadata: { labels: { team: "b" } } } } },
  );
  let most = 0;
  await cluster.until(
    "all are of the new template",
    () => {
      most = Math.max(most, nodeNames(cluster).length);
      const nodes = cluster.store.list(NODES).items;
      return nodes.length === 4 && nodes.every((node) => node.metadata.labels?.["team"] === "b");
    },
    300_000,
  );
  expect(most).toBe(5);
  await cluster.close();
});

test("a termination grace period overrules do-not-disrupt and budgets, with the grace that is left (D18)", async () => {
  const cluster = await testCluster({ provisioner: QUICK, model: () => ({ termMs: undefined }) });
  await cluster.api.patch(
    { type: NODE_POOLS, name: "spot" },
    { spec: { disruption: { budgets: [{ nodes: "0" }] }, template: { spec: { terminationGracePeriod: "20s" } } } },
  );
  for (const { metadata } of cluster.store.list(NODE_CLAIMS).items)
    await cluster.api.patch({ type: NODE_CLAIMS, name: metadata.name }, { spec: { terminationGracePeriod: "20s" } });
  await cluster.deploy("web", 3, { ...PROTECTED, pod: { terminationGracePeriodSeconds: 5 } });
  await cluster.until("three are ready", () => cluster.readyPods().length === 3);
  const victim = cluster.pods().find((pod) => pod.spec.nodeName === "node-a1");
  const begun = cluster.clock.now();
  await cluster.api.delete({ type: NODE_CLAIMS, name: claimOf(cluster, "node-a1").metadata.name });
  await cluster.clock.advance(100);
  expect(claimOf(cluster, "node-a1").metadata.annotations?.["karpenter.sh/nodeclaim-termination-timestamp"]).toBeDefined();

  await cluster.until(
    "its pod is being deleted",
    () => cluster.find(PODS, victim?.metadata.name ?? "")?.metadata.deletionTimestamp !== undefined,
  );
  expect(Math.round((cluster.clock.now() - begun) / 1000)).toBeCloseTo(15, -0.5);
  await cluster.until("the node is gone", () => !nodeNames(cluster).includes("node-a1"));
  expect(Math.round((cluster.clock.now() - begun) / 1000)).toBeLessThanOrEqual(21);
  await cluster.close();
});

test("deleting the Node deletes its claim, and a budget without room holds the drain", async () => {
  const cluster = await testCluster({ provisioner: QUICK });
  await cluster.deploy("web", 3);
  await cluster.api.create(
    POD_DISRUPTION_BUDGETS,
    {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: "web" },
      spec: { minAvailable: 3, selector: { matchLabels: { app: "web" } } },
    },
    { namespace: "default" },
  );
  await cluster.until("three are ready", () => cluster.readyPods().length === 3);
  await cluster.api.delete({ type: NODES, name: "node-a1" });
  await cluster.clock.advance(20_000);
  expect(claimOf(cluster, "node-a1").metadata.deletionTimestamp).toBeDefined();
  expect(cluster.readyPods()).toHaveLength(3);

  await cluster.api.delete({ type: POD_DISRUPTION_BUDGETS, namespace: "default", name: "web" });
  await cluster.until("it is gone", () => !nodeNames(cluster).includes("node-a1"));
  await cluster.until("the minimum is kept", () => cluster.provisioner.nodes().filter((node) => node.isReady).length === 3);
  await cluster.close();
});

test("an interrupted machine is taken at its deadline, whoever was told; then its objects vanish without a drain", async () => {
  const cluster = await testCluster({ provisioner: QUICK });
  await cluster.deploy("web", 3, PROTECTED);
  await cluster.until("three are ready", () => cluster.readyPods().length === 3);
  const claim = claimOf(cluster, "node-a1").metadata.name;
  const notice = cluster.provisioner.interrupt("node-a1", { deadlineMs: 20_000 });
  expect(notice).toMatchObject({
    nodeName: "node-a1",
    zone: "zone-a",
    region: "local-1",
    account: "000000000000",
    deadline: cluster.clock.now() + 20_000,
  });
  expect((cluster.find(NODES, "node-a1") as NodeView).spec.providerID).toBe(`aws:///zone-a/${notice.instanceId}`);

  await cluster.clock.advance(19_900);
  expect(cluster.runtime.containers()).toHaveLength(3);
  const stop = new AbortController();
  const lines = await record(cluster, stop.signal);
  await cluster.clock.advance(200);
  expect(cluster.runtime.containers()).toHaveLength(2);
  await cluster.until(
    "node and claim are gone",
    () => cluster.find(NODES, "node-a1") === undefined && cluster.find(NODE_CLAIMS, claim) === undefined,
  );
  stop.abort();
  expect(lines.filter((line) => line.includes("Drained"))).toEqual([]);
  await cluster.until("three are ready again", () => cluster.readyPods().length === 3);
  await cluster.close();
});

test("a killed node stays as an object, goes not ready when its lease runs out, and vanishes later", async () => {
  const cluster = await testCluster({ provisioner: QUICK });
  await cluster.deploy("web", 3);
  await cluster.until("three are ready", () => cluster.readyPods().length === 3);
  const killedAt = cluster.clock.now();
  await cluster.provisioner.kill("node-a1");
  await cluster.clock.advance(1_000);
  expect(cluster.provisioner.nodes().find(({ name }) => name === "node-a1")).toMatchObject({ isReady: true });
  expect(cluster.readyPods()).toHaveLength(3); // the API knows no better yet

  await cluster.until("it is not ready", () => cluster.provisioner.nodes().find(({ name }) => name === "node-a1")?.isReady === false);
  expect(cluster.clock.now() - killedAt).toBeLessThanOrEqual(5_000);
  await cluster.until("it vanishes", () => !nodeNames(cluster).includes("node-a1"));
  await cluster.until("three are ready again", () => cluster.readyPods().length === 3);
  expect(cluster.pods()).toHaveLength(3);
  await cluster.close();
});

async function killOneAndReturn(
  sameUid: boolean,
): Promise<{ readonly cluster: TestCluster; readonly nodeUid: string | undefined; readonly pod: PodView | undefined }> {
  const cluster = await testCluster({ provisioner: QUICK });
  await cluster.deploy("web", 3);
  await cluster.until("three are ready", () => cluster.readyPods().length === 3);
  const nodeUid = cluster.find(NODES, "node-a1")?.metadata.uid;
  const pod = cluster.pods().find(({ spec }) => spec.nodeName === "node-a1");
  await cluster.provisioner.kill("node-a1");
  await cluster.until("it is not ready", () => cluster.readyPods().length === 2);
  await cluster.provisioner.returnNode("node-a1", { sameUid });
  await cluster.until("three are ready again", () => cluster.readyPods().length === 3);
  await cluster.clock.advance(20_000);
  return { cluster, nodeUid, pod };
}

test("a killed node comes back as the same Node, with new containers for its old pods", async () => {
  const { cluster, nodeUid, pod } = await killOneAndReturn(true);

  expect(cluster.find(NODES, "node-a1")?.metadata.uid).toBe(nodeUid);
  expect(cluster.provisioner.nodes().find(({ name }) => name === "node-a1")).toMatchObject({ isReady: true, pods: 1 });
  const [status] = (cluster.find(PODS, pod?.metadata.name ?? "") as PodView).status?.containerStatuses ?? [];
  expect(status).toMatchObject({ restartCount: 1, ready: true });
  expect(status?.containerID).not.toBe(pod?.status?.containerStatuses?.[0]?.containerID);
  await cluster.close();
});

test("a killed node comes back as another Node of the same name: its old pods are evicted by the taint that it registers with", async () => {
  const { cluster, nodeUid, pod } = await killOneAndReturn(false);

  expect(cluster.find(NODES, "node-a1")?.metadata.uid).not.toBe(nodeUid);
  expect(cluster.provisioner.nodes().find(({ name }) => name === "node-a1")).toMatchObject({ isReady: true, isDeleting: false });
  expect(cluster.find(PODS, pod?.metadata.name ?? "")).toBeUndefined();
  expect(claimOf(cluster, "node-a1").metadata.deletionTimestamp).toBeUndefined();
  await cluster.close();
});

test("a node that does not exist, or is not lost, gets a sentence", async () => {
  const cluster = await testCluster();
  await expect(cluster.provisioner.kill("node-z9")).rejects.toMatchObject({ code: "node_unknown", allowed: "node-a1, node-a2, node-b1" });
  await expect(cluster.provisioner.returnNode("node-a1", { sameUid: true })).rejects.toMatchObject({ code: "node_not_lost" });
  await cluster.close();
});

test("pods that fit nowhere get nodes, at most as many as allowed, and empty ones go again down to the minimum", async () => {
  const cluster = await testCluster({ nodes: 2, provisioner: { ...QUICK, maxNodes: 4, consolidateAfterMs: 5_000 } });
  await cluster.deploy("big", 6, { pod: { containers: [{ name: "main", command: ["run"], resources: { requests: { cpu: "3" } } }] } });
  await cluster.until("four of six run", () => cluster.readyPods().length === 4);
  await cluster.clock.advance(10_000);
  expect(nodeNames(cluster)).toEqual(["node-a1", "node-a2", "node-b1", "node-b2"]);

  await cluster.api.patch(
    {
      type: { group: "apps", version: "v1", kind: "Deployment", plural: "deployments", namespaced: true },
      namespace: "default",
      name: "big",
    },
    { spec: { replicas: 0 } },
  );
  await cluster.until("two are left", () => nodeNames(cluster).length === 2);
  await cluster.clock.advance(30_000);
  expect(nodeNames(cluster)).toHaveLength(2);
  await cluster.close();
});

test("a cordoned node that was emptied is consolidated away, and replaced to keep the minimum", async () => {
  const cluster = await testCluster({ provisioner: { ...QUICK, consolidateAfterMs: 5_000 } });
  await cluster.deploy("web", 2);
  await cluster.until("two are ready", () => cluster.readyPods().length === 2);
  const empty = cluster.provisioner.nodes().find((node) => node.pods === 0)?.name ?? "";
  await cluster.api.patch({ type: NODES, name: empty }, { spec: { unschedulable: true } });
  await cluster.until("it is gone", () => !nodeNames(cluster).includes(empty), 30_000);
  await cluster.until("three nodes are ready", () => cluster.provisioner.nodes().filter((node) => node.isReady).length === 3);
  await cluster.close();
});

test("a machine that never becomes a node is given up, and another takes its place", async () => {
  const cluster = await testCluster({
    bootMs: (machine) => (machine.name === "node-a2" ? 3_600_000 : 10),
    provisioner: { registerWithinMs: 5_000, bootDelayMs: 1_000 },
  });

  expect(nodeNames(cluster)).toEqual(["node-a1", "node-a3", "node-b1"]);
  expect(cluster.store.list(NODE_CLAIMS).items).toHaveLength(3);
  await cluster.clock.advance(3_600_000);
  expect(nodeNames(cluster)).toEqual(["node-a1", "node-a3", "node-b1"]);
  await cluster.close();
});

test("the same seed gives the same run", async () => {
  const run = async (): Promise<string> => {
    const cluster = await testCluster({ provisioner: QUICK, seed: 7 });
    await cluster.deploy("web", 3);
    await cluster.clock.advance(3_000);
    await cluster.provisioner.kill("node-a1");
    await cluster.clock.advance(30_000);
    const state = JSON.stringify([NODES, NODE_CLAIMS, PODS].map((type) => cluster.store.list(type)));
    await cluster.close();
    return state;
  };
  expect(await run()).toBe(await run());
});
