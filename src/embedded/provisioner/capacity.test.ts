/** Machine types, spot and on demand, zones, and capacity that is not there. */
import { expect, test } from "vitest";
import type { KubeObject } from "../../kube/api.ts";
import { EVENTS, NODE_CLAIMS, NODE_POOLS, NODES, PRIORITY_CLASSES } from "../../kube/resources.ts";
import type { NodeView } from "../controllers/views.ts";
import { testCluster, type TestCluster } from "../testing/cluster.ts";

const BIG = { containers: [{ name: "main", command: ["run"], resources: { requests: { cpu: "3" } } }] };
const requiring = (...expressions: readonly unknown[]) => ({
  ...BIG,
  affinity: {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: expressions }] } },
  },
});

/** `zone/type/capacity-type` of each node, sorted. */
const machines = (cluster: TestCluster): readonly string[] =>
  cluster.store
    .list(NODES)
    .items.map((node) => (node as NodeView).metadata.labels ?? {})
    .map(
      (labels) =>
        `${labels["topology.kubernetes.io/zone"]}/${labels["node.kubernetes.io/instance-type"]}/${labels["karpenter.sh/capacity-type"]}`,
    )
    .toSorted();

const eventsOf = (cluster: TestCluster, reason: string): readonly string[] =>
  cluster.store
    .list(EVENTS)
    .items.map((event) => event as KubeObject & { readonly reason: string; readonly message: string })
    .filter((event) => event.reason === reason)
    .map(({ message }) => message.replace(/^NodeClaim \S+ event: /, ""));

test("a zone without capacity is told as Karpenter tells it, and the machine comes in another zone (S2)", async () => {
  const cluster = await testCluster({ nodes: 1, provisioner: { minNodes: 1, maxNodes: 6 } });
  cluster.provisioner.limit({ zone: "zone-b" }, 0);
  await cluster.deploy("big", 3, { pod: BIG });
  await cluster.until("all run", () => cluster.readyPods().length === 3);

  expect(machines(cluster)).toEqual(["zone-a/local.xlarge/spot", "zone-a/local.xlarge/spot", "zone-a/local.xlarge/spot"]);
  expect(new Set(eventsOf(cluster, "InsufficientCapacityError"))).toEqual(
    new Set(["insufficient capacity, no spot capacity for local.xlarge in zone-b"]),
  );
  expect(cluster.store.list(NODE_CLAIMS).items.length).toBe(3);
  await cluster.close();
});

test("without spot capacity machines come on demand, and only as many as the quota allows", async () => {
  const cluster = await testCluster({ nodes: 1, provisioner: { minNodes: 1, maxNodes: 6, maxOnDemand: 1 } });
  cluster.provisioner.limit({ capacityType: "spot", zone: "zone-a" }, 1);
  cluster.provisioner.limit({ capacityType: "spot", zone: "zone-b" }, 0);
  await cluster.deploy("big", 3, { pod: BIG });
  await cluster.until("two run", () => cluster.readyPods().length === 2);
  await cluster.clock.advance(30_000);

  expect(machines(cluster)).toEqual(["zone-a/local.xlarge/spot", expect.stringMatching(/^zone-.\/local.xlarge\/on-demand$/)]);
  expect(cluster.readyPods().length).toBe(2);
  cluster.provisioner.limit({ capacityType: "spot" }, null);
  await cluster.until("spot is there again", () => cluster.readyPods().length === 3);
  expect(cluster.store.list(NODE_POOLS).items.map((pool) => pool.metadata.name)).toEqual(["on-demand", "spot"]);
  await cluster.close();
});

test("a pod gets the zone, the type and the kind of capacity that its affinity asks for", async () => {
  const cluster = await testCluster({
    nodes: 2,
    provisioner: { minNodes: 2, maxNodes: 6, maxOnDemand: 6, moreTypes: { "local.2xlarge": { cpu: "8", memory: "16Gi", pods: "110" } } },
  });
  await cluster.deploy("elsewhere", 1, {
    pod: requiring(
      { key: "topology.kubernetes.io/zone", operator: "NotIn", values: ["zone-a"] },
      { key: "node.kubernetes.io/instance-type", operator: "NotIn", values: ["local.xlarge"] },
      { key: "karpenter.sh/capacity-type", operator: "In", values: ["on-demand"] },
    ),
  });
  await cluster.until("it runs", () => cluster.readyPods().length === 1);

  expect(machines(cluster)).toEqual(["zone-a/local.xlarge/spot", "zone-b/local.2xlarge/on-demand", "zone-b/local.xlarge/spot"]);
  const [pod] = cluster.readyPods();
  const node = cluster.find(NODES, pod?.spec.nodeName ?? "") as NodeView;
  expect(node.metadata.labels).toMatchObject({ "karpenter.sh/nodepool": "on-demand" });
  expect(node.status?.allocatable).toMatchObject({ cpu: "8" });
  await cluster.close();
});

test("a larger type is taken only where the first one does not do", async () => {
  const cluster = await testCluster({
    nodes: 1,
    provisioner: { minNodes: 1, maxNodes: 6, moreTypes: { "local.2xlarge": { cpu: "8", memory: "16Gi", pods: "110" } } },
  });
  const huge = { containers: [{ name: "main", command: ["run"], resources: { requests: { cpu: "6" } } }] };
  await cluster.deploy("huge", 1, { pod: huge });
  await cluster.until("it runs", () => cluster.readyPods().length === 1);
  expect(machines(cluster)).toEqual(["zone-a/local.2xlarge/spot", "zone-a/local.xlarge/spot"]);
  await cluster.close();
});

test("what is more important gets the machines first", async () => {
  const cluster = await testCluster({ nodes: 1, provisioner: { minNodes: 1, maxNodes: 2 } });
  for (const [name, value] of [
    ["high", 100],
    ["low", 1],
  ] as const)
    await cluster.api.create(PRIORITY_CLASSES, { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name }, value });
  await cluster.deploy("filler", 1, { pod: BIG });
  await cluster.until("it runs", () => cluster.readyPods().length === 1);
  await cluster.deploy("low", 1, { pod: { ...BIG, priorityClassName: "low" } });
  await cluster.deploy("high", 1, { pod: { ...BIG, priorityClassName: "high" } });
  await cluster.until("one of them runs", () => cluster.readyPods().length === 2);
  expect(
    cluster
      .readyPods()
      .map(({ metadata }) => metadata.labels?.["app"])
      .toSorted(),
  ).toEqual(["filler", "high"]);
  await cluster.close();
});

test("machines that the minimum wants come back once the cloud has them again", async () => {
  const cluster = await testCluster({ nodes: 2, provisioner: { minNodes: 2, maxNodes: 4, vanishAfterMs: 5_000 } });
  cluster.provisioner.limit({}, 0);
  await cluster.provisioner.kill("node-a1");
  await cluster.clock.advance(60_000);
  expect(machines(cluster)).toEqual(["zone-b/local.xlarge/spot"]);
  cluster.provisioner.limit({}, null);
  await cluster.until("it is back", () => machines(cluster).length === 2);
  await cluster.close();
});

test("what runs on demand and is empty goes first", async () => {
  const cluster = await testCluster({
    nodes: 2,
    provisioner: { minNodes: 2, maxNodes: 2, maxOnDemand: 1, consolidateAfterMs: 5_000, disruptionIntervalMs: 1_000 },
  });
  const deployment = await cluster.deploy("onDemand".toLowerCase(), 1, {
    pod: requiring({ key: "karpenter.sh/capacity-type", operator: "In", values: ["on-demand"] }),
  });
  await cluster.until("it runs", () => cluster.readyPods().length === 1);
  expect(machines(cluster).length).toBe(3);
  await cluster.api.delete({
    type: { group: "apps", version: "v1", kind: "Deployment", plural: "deployments", namespaced: true },
    namespace: deployment.metadata.namespace,
    name: deployment.metadata.name,
  });
  await cluster.until("it is gone", () => machines(cluster).length === 2);
  expect(machines(cluster)).toEqual(["zone-a/local.xlarge/spot", "zone-b/local.xlarge/spot"]);
  await cluster.close();
});
