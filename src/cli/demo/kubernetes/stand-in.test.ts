import { afterEach, beforeEach, expect, test } from "vitest";
import { bootstrapCluster } from "../../../embedded/store/bootstrap.ts";
import { directKubeApi } from "../../../embedded/store/direct-api.ts";
import { ObjectStore } from "../../../embedded/store/object-store.ts";
import { systemClock, systemIds, systemRandom } from "../../../kernel/system.ts";
import type { KubeApi } from "../../../kube/api.ts";
import { NODES, PODS } from "../../../kube/resources.ts";
import { type StandIn, startStandIn } from "./stand-in.ts";

let api: KubeApi;
let standIn: StandIn;

beforeEach(async () => {
  const store = new ObjectStore({ clock: systemClock, ids: systemIds });
  bootstrapCluster(store);
  api = directKubeApi(store);
  await api.create(NODES, { apiVersion: "v1", kind: "Node", metadata: { name: "node-a" } });
  standIn = await startStandIn({
    api,
    port: 0,
    startMs: 0,
    routes: () => ({
      attach: () => undefined,
      handle: (_, response) => void response.end("served"),
      upgrade: (_, socket) => void socket.destroy(),
    }),
    clock: systemClock,
    random: systemRandom,
    ids: systemIds,
  });
});

afterEach(() => standIn.stop());

test("each pod's address is a process of its own: its boot id, its state; where no pod is nobody listens", async () => {
  await runPod("a", "127.0.0.2");
  await runPod("b", "127.0.0.3");
  await expect.poll(() => identity("127.0.0.2")).toMatchObject({ instance: "orders-a", state: "starting" });
  await expect.poll(() => identity("127.0.0.3")).toMatchObject({ instance: "orders-b" });
  expect((await identity("127.0.0.2"))?.bootId).not.toBe((await identity("127.0.0.3"))?.bootId);
  expect(await identity("127.0.0.4")).toBe(null);
});

test("a restarted container is another process, and a pod that is gone has none", async () => {
  await runPod("a", "127.0.0.2");
  await expect.poll(() => identity("127.0.0.2")).not.toBe(null);
  const first = (await identity("127.0.0.2"))?.bootId;
  await api.patchStatus({ type: PODS, namespace: "default", name: "orders-a" }, status("127.0.0.2", "restarted"));
  await expect.poll(async () => (await identity("127.0.0.2"))?.bootId ?? first).not.toBe(first);
  await api.delete({ type: PODS, namespace: "default", name: "orders-a" }, { gracePeriodSeconds: 0 });
  await expect.poll(() => identity("127.0.0.2")).toBe(null);
});

test("when a node is gone the processes of its pods are too, though the pods are still there", async () => {
  await runPod("a", "127.0.0.2");
  await expect.poll(() => identity("127.0.0.2")).not.toBe(null);
  await api.delete({ type: NODES, name: "node-a" });
  await expect.poll(() => identity("127.0.0.2")).toBe(null);
  expect((await api.list(PODS, {})).items).toHaveLength(1);
});

function status(podIP: string, containerID: string) {
  return {
    status: {
      phase: "Running",
      podIP,
      containerStatuses: [{ name: "main", ready: true, restartCount: 0, containerID, state: { running: {} } }],
    },
  };
}

async function runPod(name: string, address: string): Promise<void> {
  const metadata = { name: `orders-${name}`, namespace: "default", labels: { "relevo.dev/instance": `orders-${name}` } };
  const spec = { nodeName: "node-a", containers: [{ name: "main", image: "none" }] };
  await api.create(PODS, { apiVersion: "v1", kind: "Pod", metadata, spec }, { namespace: "default" });
  await api.patchStatus({ type: PODS, namespace: "default", name: `orders-${name}` }, status(address, "first"));
}

async function identity(address: string): Promise<{ readonly instance: string; readonly bootId: string; readonly state: string } | null> {
  const response = await fetch(`http://${address}:${standIn.port}/relevo/v1/identity`).catch(() => null);
  return response === null ? null : ((await response.json()) as { instance: string; bootId: string; state: string });
}
