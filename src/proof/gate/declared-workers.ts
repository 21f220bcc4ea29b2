/** How many workers a cluster of a pool is to have: a pod that was never made is missing, not unneeded. */
import type { KubeApi } from "../../kube/api.ts";
import { DEPLOYMENTS, STATEFUL_SETS } from "../../kube/resources.ts";
import { parseDeployment, parseStatefulSet } from "../../kube/types.ts";
import type { PodsOfCluster } from "./kill-pod.ts";

/** As many as its objects want, without the coordinator: not as many as are there. */
export async function declaredWorkers(kube: KubeApi, { namespace, labelSelector }: PodsOfCluster): Promise<number> {
  let replicas = 0;
  for (const [type, parse] of [
    [DEPLOYMENTS, parseDeployment],
    [STATEFUL_SETS, parseStatefulSet],
  ] as const) {
    for (const item of (await kube.list(type, { namespace, labelSelector })).items) {
      const workload = parse(item);
      if (workload.ok) replicas += workload.value.spec.replicas;
    }
  }
  return Math.max(0, replicas - 1);
}
