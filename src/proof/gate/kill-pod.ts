/** A worker in a cluster: its pod is deleted with a grace of 0 under its UID; whoever owns the pod makes the next one. */
import { RelevoError } from "../../kernel/errors.ts";
import type { KubeApi } from "../../kube/api.ts";
import { findObject } from "../../kube/find-object.ts";
import { PODS } from "../../kube/resources.ts";
import { type KubePod, parsePod } from "../../kube/types.ts";
import type { GateWorker, Killer } from "./ports.ts";

export interface PodsOfCluster {
  readonly namespace: string;
  /** Of all that belong to the cluster; absent: any pod of the namespace may be a worker. */
  readonly labelSelector: string | undefined;
}

const MOST_PODS = 1_000;

export function killByPod(kube: KubeApi, pods: PodsOfCluster): Killer {
  const killed = new Map<string, { readonly name: string; readonly uid: string }>();
  return {
    how: `a worker's pod in ${pods.namespace} is deleted with a grace of 0, under its UID`,
    async kill(worker) {
      const pod = podOf(await listPods(kube, pods), worker, pods.namespace);
      const { name, uid } = pod.metadata;
      killed.set(worker.nodeId, { name, uid });
      await kube.delete({ type: PODS, namespace: pods.namespace, name }, { preconditions: { uid }, gracePeriodSeconds: 0 });
      return `pod ${pods.namespace}/${name} (${uid})`;
    },
    async isGone(worker) {
      const pod = killed.get(worker.nodeId);
      if (pod === undefined) return null;
      const seen = await findObject(kube, { type: PODS, namespace: pods.namespace, name: pod.name });
      return seen === undefined || seen.metadata.uid !== pod.uid;
    },
    /** Its controller does that. */
    restart: () => Promise.resolve(),
  };
}

export async function listPods(kube: KubeApi, { namespace, labelSelector }: PodsOfCluster): Promise<readonly KubePod[]> {
  const { items } = await kube.list(PODS, { namespace, labelSelector, limit: MOST_PODS });
  return items.flatMap((item) => {
    const pod = parsePod(item);
    return pod.ok ? [pod.value] : [];
  });
}

/** By the address that the engine has of it: the pod's own, or a name that begins with the pod's. */
export function findPodOf(pods: readonly KubePod[], { uri }: Pick<GateWorker, "uri">): KubePod | undefined {
  const { hostname } = new URL(uri);
  const matching = pods.filter(({ metadata, status }) => status.podIP === hostname || metadata.name === hostname.split(".")[0]);
  return matching.length === 1 ? matching[0] : undefined;
}

function podOf(pods: readonly KubePod[], worker: GateWorker, namespace: string): KubePod {
  const pod = findPodOf(pods, worker);
  if (pod !== undefined) return pod;
  throw new RelevoError("worker_pod_unknown", `No pod of ${namespace}, or more than one, has the address of the worker ${worker.nodeId}.`, {
    found: worker.uri,
    todo: "name the namespace of the workers in spec.kill.pod, or a command in spec.kill.command",
  });
}
