/** The traps of an operator, on the embedded cluster with the stand-in for Stackable's: each looks as if all were well, and `relevo check` must say otherwise. */
import { expect, test } from "vitest";
import type { KubeObject } from "../../src/kube/api.ts";
import { CONFIG_MAPS } from "../../src/kube/resources.ts";
import { type PoolDocument, poolSchema } from "../../src/model/pool.ts";
import { TRINO_CLUSTERS } from "../../src/embedded/operators/stackable-trino.ts";
import { testCluster, type TestCluster } from "../../src/embedded/testing/cluster.ts";
import type { PodSight, ServerProbe } from "../../src/proof/effect/ports.ts";
import { proveEffect } from "../../src/proof/effect/prove.ts";

const podOverrides = { spec: { containers: [{ name: "trino", command: ["run"] }] } };
const role = { podOverrides, roleGroups: { default: { replicas: 1 } } };
const LAKE = {
  apiVersion: "trino.stackable.tech/v1alpha1",
  kind: "TrinoCluster",
  metadata: { name: "lake-a" },
  spec: { coordinators: role, workers: role },
};
const REF = { type: TRINO_CLUSTERS, namespace: "default", name: "lake-a" };

/** A Pool's blueprint takes no such kind yet: its objects are put in beside the schema. */
function documentOf(): PoolDocument {
  const lead = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" } };
  const pool = poolSchema.parse({
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name: "lake" },
    spec: { driver: "trino", size: { desired: 1 }, blueprint: { objects: [lead] } },
  });
  return { ...pool, spec: { ...pool.spec, blueprint: { objects: [LAKE] as never } } };
}

const silent: ServerProbe = {
  session: async () => new Map(),
  retryPolicy: async () => null,
  exchange: async (location) => ({ says: "nothing", where: `${location} cannot be listed` }),
  mayManage: async () => true,
  close: async () => undefined,
};

async function lake(): Promise<{ cluster: TestCluster; check: () => Promise<readonly string[]>; notes: () => Promise<readonly string[]> }> {
  const cluster = await testCluster({ controlPlane: { operators: ["stackable-trino"] } });
  await cluster.api.create(TRINO_CLUSTERS, LAKE, { namespace: "default" });
  await cluster.until("its pods are ready", () => cluster.readyPods().length === 2);
  // As its kubelet made them: what a ConfigMap says later is in no file of such a pod.
  const filesOf = new Map(
    cluster.pods().map(({ metadata }) => [metadata.uid, dataOf(cluster.find(CONFIG_MAPS, metadata.name.replace(/-0$/, "")))]),
  );
  const startedAt = cluster.clock.now();
  const sight: PodSight = {
    blind: "nobody looks",
    look: async ({ uid }) => ({
      ...{ commandLine: ["java", "-server", "-Xmx1g"], startedAt },
      readFile: async (path) => {
        const text = filesOf.get(uid)?.[path];
        return text === undefined ? undefined : { text, changedAt: startedAt, where: `${path} in the pod` };
      },
    }),
  };
  const prove = () =>
    proveEffect(
      { document: documentOf(), blueprintHash: "h", instances: [{ id: "lake-a", blueprintHash: "h", site: "local" }] },
      { kube: cluster.api, sight, probes: () => silent },
    );
  return {
    cluster,
    check: async () => (await prove()).rows.map(({ role: of, file, name, state }) => `${of} ${file} ${name}: ${state}`),
    notes: async () => (await prove()).notes.map(({ message }) => message),
  };
}

function dataOf(object: KubeObject | undefined): Readonly<Record<string, string>> {
  return (object?.["data"] ?? {}) as Readonly<Record<string, string>>;
}

const override = (file: string, entries: Readonly<Record<string, string>>) => ({ workers: { configOverrides: { [file]: entries } } });

test("an override for a file that the operator does not know is dropped, never effective (T1)", async () => {
  const { cluster, check } = await lake();
  await cluster.api.patch(REF, { spec: override("exchange-manager.properties", { "exchange-manager.name": "filesystem" }) });
  await cluster.clock.advance(10_000);
  expect(await check()).toEqual(["worker exchange-manager.properties exchange-manager.name: dropped"]);
  await cluster.close();
});

test("a ConfigMap that changed under pods that did not is stale, what they had before is not (T15)", async () => {
  const { cluster, check } = await lake();
  await cluster.api.patch(REF, { spec: override("config.properties", { "http-server.http.port": "8080", "query.max-memory": "1GB" }) });
  await cluster.clock.advance(10_000);
  expect(await check()).toEqual([
    "worker config.properties http-server.http.port: effective",
    "worker config.properties query.max-memory: stale",
  ]);
  await cluster.api.patch(REF, { spec: override("config.properties", { "http-server.http.port": "8081" }) });
  await cluster.clock.advance(10_000);
  expect((await check())[0]).toBe("worker config.properties http-server.http.port: stale");
  await cluster.close();
});

test("what is declared under a paused operator is stale, and the pause is told (T18)", async () => {
  const { cluster, check, notes } = await lake();
  await cluster.api.patch(REF, {
    spec: { clusterOperation: { reconciliationPaused: true }, ...override("config.properties", { "query.max-memory": "1GB" }) },
  });
  await cluster.clock.advance(10_000);
  expect(await check()).toEqual(["worker config.properties query.max-memory: stale"]);
  expect(await notes()).toEqual(["TrinoCluster lake-a is paused: it accepts everything and does nothing"]);
  await cluster.close();
});
