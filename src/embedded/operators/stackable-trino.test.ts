import { expect, test } from "vitest";
import type { KubeObject } from "../../kube/api.ts";
import { CONFIG_MAPS, STATEFUL_SETS } from "../../kube/resources.ts";
import { testCluster, type TestCluster } from "../testing/cluster.ts";
import { TRINO_CLUSTERS } from "./stackable-trino.ts";

const REF = { type: TRINO_CLUSTERS, namespace: "default", name: "lake" };
const WORKERS = { type: STATEFUL_SETS, namespace: "default", name: "lake-worker-default" };

async function lake(coordinators: object = {}): Promise<TestCluster> {
  const cluster = await testCluster({ controlPlane: { operators: ["stackable-trino"] } });
  const podOverrides = { spec: { containers: [{ name: "trino", command: ["run"] }] } };
  const role = (replicas: number, more: object = {}) => ({ podOverrides, roleGroups: { default: { replicas } }, ...more });
  await cluster.api.create(
    TRINO_CLUSTERS,
    {
      apiVersion: "trino.stackable.tech/v1alpha1",
      kind: "TrinoCluster",
      metadata: { name: "lake" },
      spec: { coordinators: role(1, coordinators), workers: role(2) },
    },
    { namespace: "default" },
  );
  await cluster.until("its pods are ready", () => cluster.readyPods().length === 3);
  return cluster;
}

const dataOf = (cluster: TestCluster, role: string) =>
  (cluster.find(CONFIG_MAPS, `lake-${role}-default`)?.["data"] ?? {}) as Readonly<Record<string, string>>;
const specOf = (object: KubeObject | undefined) => object?.["spec"] as { readonly replicas: number; readonly template: unknown };

test("overrides of files that it does not know are accepted and dropped (T1)", async () => {
  const overrides = {
    "config.properties": { "retry-policy": "TASK" },
    "exchange-manager.properties": { "exchange-manager.name": "filesystem" },
  };
  const cluster = await lake({ configOverrides: overrides });
  expect(dataOf(cluster, "coordinator")).toEqual({
    "config.properties": "coordinator=true\nhttp-server.http.port=8080\nretry-policy=TASK\n",
    "node.properties": "node.environment=lake\n",
    "jvm.config": "-server\n-Xmx1g\n-XX:+UseG1GC\n-XX:+ExitOnOutOfMemoryError\n",
  });
  await cluster.close();
});

test("a ConfigMap changes and no pod begins anew (T15)", async () => {
  const cluster = await lake();
  const before = cluster
    .pods()
    .map(({ metadata }) => metadata.uid)
    .toSorted();
  await cluster.api.patch(REF, { spec: { workers: { configOverrides: { "config.properties": { "query.max-memory": "1GB" } } } } });
  await cluster.until("it is rendered", () => dataOf(cluster, "worker")["config.properties"]?.includes("query.max-memory=1GB") === true);
  await cluster.clock.advance(60_000);
  expect(
    cluster
      .pods()
      .map(({ metadata }) => metadata.uid)
      .toSorted(),
  ).toEqual(before);
  await cluster.close();
});

test("replicas that somebody else set are set back at its third look; undeclared ones are left alone (T18)", async () => {
  const cluster = await lake();
  await cluster.api.patch(WORKERS, { spec: { replicas: 4 } });
  await cluster.clock.advance(9_000);
  expect(specOf(cluster.find(STATEFUL_SETS, WORKERS.name)).replicas).toBe(4);
  await cluster.until("it is set back", () => specOf(cluster.find(STATEFUL_SETS, WORKERS.name)).replicas === 2, 10_000);

  await cluster.api.patch(REF, { spec: { workers: { roleGroups: { default: { replicas: null } } } } });
  await cluster.clock.advance(6_000);
  await cluster.api.patch(WORKERS, { spec: { replicas: 4 } });
  await cluster.clock.advance(60_000);
  expect(specOf(cluster.find(STATEFUL_SETS, WORKERS.name)).replicas).toBe(4);
  await cluster.close();
});

test("stopped: no pods; paused: everything is accepted and nothing happens (T18, T19)", async () => {
  const cluster = await lake();
  await cluster.api.patch(REF, { spec: { clusterOperation: { stopped: true } } });
  await cluster.until("no pod is left", () => cluster.pods().length === 0);
  await cluster.api.patch(REF, { spec: { clusterOperation: { stopped: false } } });
  await cluster.until("they are back", () => cluster.readyPods().length === 3);

  const before = dataOf(cluster, "worker");
  await cluster.api.patch(REF, {
    spec: { clusterOperation: { reconciliationPaused: true }, workers: { configOverrides: { "config.properties": { "a.b": "c" } } } },
  });
  await cluster.clock.advance(60_000);
  expect(dataOf(cluster, "worker")).toEqual(before);
  await cluster.close();
});
