import { expect, test } from "vitest";
import type { Clock } from "../../kernel/clock.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { isNotFound, KubeApiError } from "../../kube/api.ts";
import {
  DAEMON_SETS,
  DEPLOYMENTS,
  EVENTS,
  NODES,
  POD_DISRUPTION_BUDGETS,
  PODS,
  REPLICA_SETS,
  STATEFUL_SETS,
} from "../../kube/resources.ts";
import { testCluster, type TestCluster } from "../testing/cluster.ts";
import { conditionOf, isReady, type Condition, type NodeView, type PodView } from "./views.ts";

const status = (cluster: TestCluster, name: string): Readonly<Record<string, unknown>> =>
  (cluster.find(DEPLOYMENTS, name)?.["status"] ?? {}) as Readonly<Record<string, unknown>>;
const deploymentRef = (name: string) => ({ type: DEPLOYMENTS, namespace: "default", name });
const podRef = (pod: PodView) => ({ type: PODS, namespace: "default", name: pod.metadata.name });

test("a Deployment becomes ready pods, and its status says so", async () => {
  const cluster = await testCluster();
  await cluster.deploy("web", 3);
  await cluster.until("three are available", () => status(cluster, "web")["availableReplicas"] === 3);

  expect(status(cluster, "web")).toMatchObject({
    observedGeneration: 1,
    replicas: 3,
    updatedReplicas: 3,
    readyReplicas: 3,
    availableReplicas: 3,
    unavailableReplicas: 0,
  });
  expect(
    (status(cluster, "web")["conditions"] as readonly Condition[]).map(({ type, status: is, reason }) => `${type}=${is} ${reason}`),
  ).toEqual(["Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"]);
  expect(cluster.store.list(REPLICA_SETS).items).toHaveLength(1);
  expect(new Set(cluster.pods().map((pod) => pod.spec.nodeName)).size).toBe(3);
  await cluster.close();
});

test("a rolling update keeps what must be available and ends with one set that has pods", async () => {
  const cluster = await testCluster();
  await cluster.deploy("web", 4, { spec: { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } } });
  await cluster.until("four are ready", () => cluster.readyPods().length === 4);
  let lowest = 4;
  let highest = 4;
  await cluster.api.patch(deploymentRef("web"), { spec: { template: { metadata: { annotations: { version: "2" } } } } });
  await cluster.until("all are of the new template", () => {
    lowest = Math.min(lowest, cluster.readyPods().length);
    highest = Math.max(highest, cluster.pods().filter((pod) => pod.metadata.deletionTimestamp === undefined).length);
    return cluster.readyPods().filter((pod) => pod.metadata.annotations?.["version"] === "2").length === 4 && cluster.pods().length === 4;
  });

  expect({ lowest, highest }).toEqual({ lowest: 4, highest: 5 });
  const sizes = cluster.store.list(REPLICA_SETS).items.map((set) => (set["spec"] as { readonly replicas: number }).replicas);
  expect(sizes.toSorted()).toEqual([0, 4]);
  await cluster.close();
});

test("Recreate starts the new pods only when the last old one is gone", async () => {
  const cluster = await testCluster({ model: () => ({ termMs: 1_500 }) });
  await cluster.deploy("web", 2, { spec: { strategy: { type: "Recreate", rollingUpdate: null } } });
  await cluster.until("two are ready", () => cluster.readyPods().length === 2);
  await cluster.api.patch(deploymentRef("web"), { spec: { template: { metadata: { annotations: { version: "2" } } } } });
  let mixed = 0;
  await cluster.until("two new are ready", () => {
    const versions = new Set(cluster.pods().map((pod) => pod.metadata.annotations?.["version"]));
    mixed = Math.max(mixed, versions.size);
    return cluster.readyPods().filter((pod) => pod.metadata.annotations?.["version"] === "2").length === 2;
  });

  expect(mixed).toBe(1);
  await cluster.close();
});

test("going back to an older template reuses its ReplicaSet under a new revision", async () => {
  const cluster = await testCluster();
  await cluster.deploy("web", 1);
  await cluster.until("one is ready", () => cluster.readyPods().length === 1);
  await cluster.api.patch(deploymentRef("web"), { spec: { template: { metadata: { annotations: { version: "2" } } } } });
  await cluster.until(
    "the second template runs",
    () => cluster.readyPods()[0]?.metadata.annotations?.["version"] === "2" && cluster.pods().length === 1,
  );
  await cluster.api.patch(deploymentRef("web"), { spec: { template: { metadata: { annotations: null } } } });
  await cluster.until(
    "the first runs again",
    () => cluster.readyPods()[0]?.metadata.annotations?.["version"] === undefined && cluster.pods().length === 1,
  );

  expect(cluster.store.list(REPLICA_SETS).items).toHaveLength(2);
  expect(cluster.find(DEPLOYMENTS, "web")?.metadata.annotations?.["deployment.kubernetes.io/revision"]).toBe("3");
  await cluster.close();
});

test("scaling down takes pods that are not ready before those that are", async () => {
  const cluster = await testCluster();
  await cluster.deploy("web", 3);
  await cluster.until("three are ready", () => cluster.readyPods().length === 3);
  const [sick] = cluster.runtime.containers();
  cluster.runtime.setHealthy(sick?.start.id ?? "", false);
  await cluster.until("one is not ready", () => cluster.readyPods().length === 2);
  await cluster.api.patch(deploymentRef("web"), { spec: { replicas: 2 } });
  await cluster.until("two are left", () => cluster.pods().length === 2);

  expect(cluster.readyPods()).toHaveLength(2);
  expect(cluster.pods().map((pod) => pod.metadata.name)).not.toContain(sick?.start.pod.name);
  await cluster.close();
});

test("a StatefulSet comes up in order, under stable names, and updates from the highest down", async () => {
  const cluster = await testCluster();
  const template = {
    metadata: { labels: { app: "db" } },
    spec: { terminationGracePeriodSeconds: 1, containers: [{ name: "main", command: ["run"] }] },
  };
  await cluster.api.create(
    STATEFUL_SETS,
    {
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { name: "db" },
      spec: { replicas: 3, serviceName: "db", selector: { matchLabels: { app: "db" } }, template },
    },
    { namespace: "default" },
  );
  const created: string[] = [];
  await cluster.until("three are ready", () => {
    for (const { metadata } of cluster.pods()) if (!created.includes(metadata.name)) created.push(metadata.name);
    return cluster.readyPods().length === 3;
  });
  expect(created).toEqual(["db-0", "db-1", "db-2"]);

  await cluster.api.patch(
    { type: STATEFUL_SETS, namespace: "default", name: "db" },
    { spec: { template: { metadata: { annotations: { version: "2" } } } } },
  );
  const updated: string[] = [];
  await cluster.until("all are updated", () => {
    for (const { metadata } of cluster.readyPods())
      if (metadata.annotations?.["version"] === "2" && !updated.includes(metadata.name)) updated.push(metadata.name);
    return updated.length === 3;
  });
  expect(updated).toEqual(["db-2", "db-1", "db-0"]);
  await cluster.close();
});

test("a DaemonSet has one pod on every node, on new ones too, cordoned or not", async () => {
  const cluster = await testCluster({ provisioner: { vanishAfterMs: 5_000 } });
  await cluster.api.patch({ type: NODES, name: "node-a1" }, { spec: { unschedulable: true } });
  const template = { metadata: { labels: { app: "agent" } }, spec: { containers: [{ name: "main", command: ["run"] }] } };
  const spec = { selector: { matchLabels: { app: "agent" } }, template };
  await cluster.api.create(
    DAEMON_SETS,
    { apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "agent" }, spec },
    { namespace: "default" },
  );
  const places = (): readonly string[] =>
    cluster
      .readyPods()
      .map((pod) => pod.spec.nodeName ?? "")
      .toSorted();
  await cluster.until("three are ready", () => places().length === 3);
  expect(places()).toEqual(["node-a1", "node-a2", "node-b1"]);

  await cluster.provisioner.kill("node-b1");
  await cluster.until("the new node has one", () => places().includes("node-b2"));
  expect(places()).toEqual(["node-a1", "node-a2", "node-b2"]);
  await cluster.clock.settle();
  expect(cluster.find(DAEMON_SETS, "agent")?.["status"]).toMatchObject({
    desiredNumberScheduled: 3,
    numberReady: 3,
    numberUnavailable: 0,
    numberMisscheduled: 0,
  });

  await cluster.api.patch(
    { type: DAEMON_SETS, namespace: "default", name: "agent" },
    { spec: { template: { metadata: { annotations: { version: "2" } } } } },
  );
  await cluster.until("all are new", () => cluster.readyPods().filter((pod) => pod.metadata.annotations?.["version"] === "2").length === 3);
  await cluster.close();
});

test("a disruption budget counts, allows, and holds evictions back", async () => {
  const cluster = await testCluster();
  await cluster.deploy("web", 3);
  await cluster.api.create(
    POD_DISRUPTION_BUDGETS,
    {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: "web" },
      spec: { maxUnavailable: 1, selector: { matchLabels: { app: "web" } } },
    },
    { namespace: "default" },
  );
  const budget = (): unknown => {
    const { conditions: _conditions, ...counts } = (cluster.find(POD_DISRUPTION_BUDGETS, "web")?.["status"] ?? {}) as Record<
      string,
      unknown
    >;
    return counts;
  };
  await cluster.until("three are ready", () => cluster.readyPods().length === 3);
  await cluster.clock.settle();
  expect(budget()).toEqual({ expectedPods: 3, currentHealthy: 3, desiredHealthy: 2, disruptionsAllowed: 1, observedGeneration: 1 });

  const [first, second] = cluster.readyPods();
  if (first === undefined || second === undefined) throw new Error("no pods");
  await cluster.api.evict(podRef(first));
  await expect(cluster.api.evict(podRef(second))).rejects.toThrow(KubeApiError);
  await cluster.until("it is replaced", () => cluster.readyPods().length === 3);
  await cluster.clock.settle();
  expect(budget()).toMatchObject({ currentHealthy: 3, disruptionsAllowed: 1 });
  await cluster.close();
});

test("deleting a Deployment takes its ReplicaSets and pods along, and an orphaning delete leaves them", async () => {
  const cluster = await testCluster();
  await cluster.deploy("gone", 1);
  await cluster.deploy("kept", 1);
  await cluster.until("both are ready", () => cluster.readyPods().length === 2);
  await cluster.api.delete(deploymentRef("gone"), { propagationPolicy: "Background" });
  await cluster.api.delete(deploymentRef("kept"), { propagationPolicy: "Orphan" });
  await cluster.until("one pod is left", () => cluster.pods().length === 1);
  await cluster.clock.advance(5_000);

  expect(cluster.pods().map((pod) => pod.metadata.labels?.["app"])).toEqual(["kept"]);
  expect(cluster.find(DEPLOYMENTS, "kept")).toBeUndefined();
  expect(cluster.store.list(REPLICA_SETS).items.map((set) => set.metadata.ownerReferences ?? [])).toEqual([[]]);
  await cluster.close();
});

test("a foreground delete keeps the owner until its dependents are gone", async () => {
  const cluster = await testCluster({ model: () => ({ termMs: 1_000 }) });
  await cluster.deploy("web", 1);
  await cluster.until("it is ready", () => cluster.readyPods().length === 1);
  await cluster.api.delete(deploymentRef("web"), { propagationPolicy: "Foreground" });
  await cluster.clock.settle();
  expect(cluster.find(DEPLOYMENTS, "web")?.metadata.finalizers).toEqual(["foregroundDeletion"]);

  await cluster.until("the pod is gone", () => cluster.pods().length === 0);
  await cluster.until("the owner is gone", () => cluster.find(DEPLOYMENTS, "web") === undefined);
  await cluster.close();
});

test("an unschedulable pod says why, and is placed when a node is uncordoned", async () => {
  const cluster = await testCluster({ provisioner: { maxNodes: 3 } });
  const names = cluster.provisioner.nodes().map((node) => node.name);
  for (const name of names) await cluster.api.patch({ type: NODES, name }, { spec: { unschedulable: true } });
  await cluster.clock.settle();
  await cluster.deploy("web", 1);
  await cluster.clock.advance(100);
  const scheduled = (): Condition | undefined => conditionOf(cluster.pods()[0]?.status?.conditions, "PodScheduled");
  expect(scheduled()).toMatchObject({
    status: "False",
    reason: "Unschedulable",
    message: "0/3 nodes are available: 3 node(s) were unschedulable.",
  });

  await cluster.api.patch({ type: NODES, name: names[0] ?? "" }, { spec: { unschedulable: null } });
  await cluster.until("it is ready", () => cluster.readyPods().length === 1);
  expect(scheduled()).toMatchObject({ status: "True" });
  await cluster.close();
});

test("a node that falls silent is Unknown and tainted, its pods not ready; when it is heard again all is as before", async () => {
  const cluster = await testCluster();
  await cluster.deploy("web", 1);
  await cluster.until("it is ready", () => cluster.readyPods().length === 1);
  const name = cluster.readyPods()[0]?.spec.nodeName ?? "";
  const machine = cluster.fleet.machine(name);
  if (machine === undefined) throw new Error("no machine");
  const node = (): NodeView => cluster.store.get({ type: NODES, name }) as NodeView;
  cluster.runtime.setFrozen(machine, true);
  await cluster.until("the pod is not ready", () => cluster.readyPods().length === 0, 10_000);
  expect(node().spec.taints?.map(({ key, effect }) => `${key}:${effect}`)).toEqual([
    "node.kubernetes.io/unreachable:NoSchedule",
    "node.kubernetes.io/unreachable:NoExecute",
  ]);

  cluster.runtime.setFrozen(machine, false);
  await cluster.until("node and pod are ready", () => isReady(node()) && cluster.readyPods().length === 1, 10_000);
  await cluster.clock.settle();
  expect(node().spec.taints).toBeUndefined();
  expect(cluster.pods()).toHaveLength(1);
  await cluster.close();
});

test("when the cluster's own process stood still, no node is judged by that time", async () => {
  const virtual = new VirtualClock();
  let skippedMs = 0;
  const clock: Clock = {
    now: () => virtual.now() + skippedMs,
    monotonic: () => virtual.monotonic() + skippedMs,
    after: (delayMs, fire) => virtual.after(delayMs, fire),
    sleep: (delayMs, signal) => virtual.sleep(delayMs, signal),
  };
  const cluster = await testCluster({ virtual, clock });
  const unready = (): number => cluster.provisioner.nodes().filter((node) => !node.isReady).length;
  for (let round = 0; round < 30; round++) {
    skippedMs += 60_000; // at another moment between two looks each time
    await virtual.advance(4_230);
  }
  expect(cluster.store.list(EVENTS).items.filter((event) => event["reason"] === "NodeNotReady")).toEqual([]);

  const machine = cluster.fleet.machine("node-a1");
  if (machine !== undefined) cluster.runtime.setFrozen(machine, true);
  await cluster.until("a node that is really silent is judged", () => unready() === 1, 10_000);
  await cluster.close();
});

test("what was created and deleted before it could be seen is not resurrected by a cache", async () => {
  const cluster = await testCluster();
  for (let round = 0; round < 5; round++) {
    await cluster.deploy("brief", 3);
    await cluster.clock.advance(round * 40);
    await cluster.api.delete(deploymentRef("brief"));
  }
  await cluster.until("nothing is left", () => cluster.pods().length === 0 && cluster.store.list(REPLICA_SETS).items.length === 0, 20_000);
  await expect(cluster.api.get(deploymentRef("brief"))).rejects.toSatisfy(isNotFound);
  expect(cluster.runtime.containers()).toEqual([]);
  await cluster.close();
});
