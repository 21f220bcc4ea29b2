/**
 * The embedded API as a process that holds a large cluster: `large-api NODES PODS`. No scheduler and no kubelets: each Deployment that is made gets its ReplicaSet
 * and a pod that runs, on a node of its own; the other pods are of a fleet that nobody runs here. It tells its URL over the channel and ends with its parent.
 */
import { startEmbeddedApi } from "../../src/embedded/http/server.ts";
import { bootstrapCluster } from "../../src/embedded/store/bootstrap.ts";
import { directKubeApi } from "../../src/embedded/store/direct-api.ts";
import { ObjectStore } from "../../src/embedded/store/object-store.ts";
import { systemClock, systemIds } from "../../src/kernel/system.ts";
import type { KubeApi, KubeObject, KubeObjectDraft } from "../../src/kube/api.ts";
import { DEPLOYMENTS, NODES, PODS, REPLICA_SETS } from "../../src/kube/resources.ts";

const [nodes = 0, pods = 0] = process.argv.slice(2).map(Number);
const AT = "2030-01-01T00:00:00Z";
const READY = { type: "Ready", status: "True", reason: "Ready", lastTransitionTime: AT };

const store = new ObjectStore({ clock: systemClock, ids: systemIds });
bootstrapCluster(store);
const api = directKubeApi(store);
const nodeName = (number: number) => `bench-${String(number % nodes).padStart(5, "0")}`;

for (let number = 0; number < nodes; number++) {
  const name = nodeName(number);
  await api.create(NODES, {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { "karpenter.sh/nodepool": "bench" } },
    spec: { providerID: `aws:///eu-west-1a/i-0${name.slice("bench-".length).padStart(16, "0")}` },
  });
  await api.patchStatus({ type: NODES, name }, { status: { conditions: [READY] } });
}
for (let number = 0; number < pods; number++) {
  const labels = { "relevo.dev/pool": "others", "relevo.dev/instance": `others-${number}` };
  await runPod(
    api,
    { name: `others-${number}`, namespace: "default", labels },
    { nodeName: nodeName(number), containers: [{ name: "main", image: "none" }] },
  );
}

let made = 0;
void (async () => {
  const { resourceVersion } = await api.list(DEPLOYMENTS, {});
  for await (const event of api.watch(DEPLOYMENTS, { resourceVersion }, new AbortController().signal))
    if (event.type === "ADDED") await runDeployment(event.object, made++);
    else if (event.type === "DELETED") await endDeployment(event.object);
})();

interface Template {
  readonly metadata: { readonly labels: Readonly<Record<string, string>>; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: { readonly containers: readonly { readonly name: string; readonly image?: string }[] };
}

async function runDeployment(deployment: KubeObject, number: number): Promise<void> {
  const { template, selector } = deployment["spec"] as { readonly template: Template; readonly selector: object };
  const { name, namespace = "default" } = deployment.metadata;
  const set = await api.create(
    REPLICA_SETS,
    {
      apiVersion: "apps/v1",
      kind: "ReplicaSet",
      metadata: { name: `${name}-1`, namespace, labels: template.metadata.labels, ownerReferences: [ownerOf(deployment, "Deployment")] },
      spec: { replicas: 1, selector, template },
    },
    { namespace },
  );
  const metadata = { name: `${name}-1-1`, namespace, ...template.metadata, ownerReferences: [ownerOf(set, "ReplicaSet")] };
  await runPod(api, metadata, { ...template.spec, nodeName: nodeName(number) }, `127.77.${number >> 8}.${number & 255}`);
}

async function endDeployment({ metadata: { name, namespace = "default" } }: KubeObject): Promise<void> {
  await api.delete({ type: REPLICA_SETS, namespace, name: `${name}-1` });
  await api.delete({ type: PODS, namespace, name: `${name}-1-1` }, { gracePeriodSeconds: 0 });
}

function ownerOf({ metadata }: KubeObject, kind: string) {
  return { apiVersion: "apps/v1", kind, name: metadata.name, uid: metadata.uid ?? "", controller: true };
}

async function runPod(
  kube: KubeApi,
  metadata: KubeObjectDraft["metadata"] & { readonly name: string; readonly namespace: string },
  spec: object,
  podIP?: string,
): Promise<void> {
  const { name, namespace } = metadata;
  await kube.create(PODS, { apiVersion: "v1", kind: "Pod", metadata, spec }, { namespace });
  const containerStatuses = [
    {
      name: "main",
      image: "none",
      imageID: "",
      containerID: `bench://${name}`,
      ready: true,
      restartCount: 0,
      state: { running: { startedAt: AT } },
    },
  ];
  await kube.patchStatus(
    { type: PODS, namespace, name },
    { status: { phase: "Running", ...(podIP === undefined ? {} : { podIP }), conditions: [READY], containerStatuses } },
  );
}

const noLogs = { read: () => Promise.reject(new Error("no pods run here")) as never };
const server = await startEmbeddedApi({ store, clock: systemClock, podLogs: noLogs });
process.on("disconnect", () => process.exit(0));
process.send?.(server.url);
