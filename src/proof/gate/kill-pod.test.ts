import { expect, test } from "vitest";
import { bootstrapCluster } from "../../embedded/store/bootstrap.ts";
import { directKubeApi } from "../../embedded/store/direct-api.ts";
import { ObjectStore } from "../../embedded/store/object-store.ts";
import { countingIds } from "../../embedded/testing/cluster.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { KubeApi } from "../../kube/api.ts";
import { DEPLOYMENTS, PODS } from "../../kube/resources.ts";
import { declaredWorkers } from "./declared-workers.ts";
import { killByPod } from "./kill-pod.ts";
import { readyByPod } from "./ready-workers.ts";

const CLUSTER = { namespace: "default", labelSelector: "relevo.dev/instance=trino-1" };

async function site(): Promise<KubeApi> {
  const cluster = new ObjectStore({ clock: new VirtualClock(), ids: countingIds() });
  bootstrapCluster(cluster);
  return directKubeApi(cluster);
}

async function addPod(kube: KubeApi, name: string, podIP: string, ready = "True", instance = "trino-1"): Promise<string> {
  const labels = { "relevo.dev/instance": instance };
  const spec = { containers: [{ name: "trino", image: "trino" }] };
  const pod = await kube.create(PODS, { apiVersion: "v1", kind: "Pod", metadata: { name, labels }, spec }, { namespace: "default" });
  const status = { phase: "Running", podIP, conditions: [{ type: "Ready", status: ready }] };
  await kube.patchStatus({ type: PODS, namespace: "default", name }, { status });
  return pod.metadata.uid;
}

test("the pod at the worker's address is deleted under its UID, and gone when it or its UID is (I8)", async () => {
  const kube = await site();
  await addPod(kube, "trino-1-worker-a", "10.0.0.7");
  const uid = await addPod(kube, "trino-1-worker-b", "10.0.0.8");
  const killer = killByPod(kube, CLUSTER);
  const worker = { nodeId: "b", uri: "http://10.0.0.8:8080" };

  expect(await killer.isGone(worker)).toBeNull();
  expect(await killer.kill(worker)).toBe(`pod default/trino-1-worker-b (${uid})`);
  expect((await kube.list(PODS, { namespace: "default" })).items.map(({ metadata }) => metadata.name)).toEqual(["trino-1-worker-a"]);
  expect(await killer.isGone(worker)).toBe(true);

  await addPod(kube, "trino-1-worker-b", "10.0.0.9");
  expect(await killer.isGone(worker)).toBe(true);
});

test("a stateful pod is found by its name too", async () => {
  const kube = await site();
  const uid = await addPod(kube, "trino-worker-0", "10.0.0.7");
  const worker = { nodeId: "0", uri: "http://trino-worker-0.trino-worker.default.svc:8080" };
  expect(await killByPod(kube, CLUSTER).kill(worker)).toBe(`pod default/trino-worker-0 (${uid})`);
});

test("a worker whose pod is not known is not killed, nor that of another cluster", async () => {
  const kube = await site();
  await addPod(kube, "trino-2-worker", "10.0.0.8", "True", "trino-2");
  const killer = killByPod(kube, CLUSTER);
  await expect(killer.kill({ nodeId: "b", uri: "http://10.0.0.8:8080" })).rejects.toMatchObject({ code: "worker_pod_unknown" });
  expect((await kube.list(PODS, { namespace: "default" })).items).toHaveLength(1);
});

test("ready workers are the ready pods without the coordinator's (T12)", async () => {
  const kube = await site();
  await addPod(kube, "coordinator", "10.0.0.6");
  await addPod(kube, "worker-a", "10.0.0.7");
  await addPod(kube, "worker-b", "10.0.0.8", "False");
  expect(await readyByPod(kube, CLUSTER, "10.0.0.6").ready()).toEqual(["worker-a"]);
});

test("as many workers are declared as the cluster's objects want, without its coordinator", async () => {
  const kube = await site();
  const add = async (name: string, replicas: number, instance = "trino-1") => {
    const labels = { "relevo.dev/instance": instance };
    const template = { metadata: { labels }, spec: { containers: [{ name: "trino", image: "trino" }] } };
    const spec = { replicas, selector: { matchLabels: labels }, template };
    await kube.create(
      DEPLOYMENTS,
      { apiVersion: "apps/v1", kind: "Deployment", metadata: { name, labels }, spec },
      { namespace: "default" },
    );
  };
  await add("trino-1", 1);
  await add("trino-1-workers", 3);
  await add("trino-2-workers", 5, "trino-2");
  expect(await declaredWorkers(kube, CLUSTER)).toBe(3);
});
