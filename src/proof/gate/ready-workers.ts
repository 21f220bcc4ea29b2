/** Workers that say of themselves that they are ready. Beside those that have announced themselves they show one that is not used (T12). */
import type { Clock } from "../../kernel/clock.ts";
import { readInfo } from "../../drivers/trino/engine.ts";
import { TrinoHttp } from "../../drivers/trino/http.ts";
import type { KubeApi } from "../../kube/api.ts";
import { conditionOf } from "../../kube/types.ts";
import { listPods, type PodsOfCluster } from "./kill-pod.ts";
import type { ReadyWorkers } from "./ports.ts";

export const NOBODY_TELLS: ReadyWorkers = { ready: () => Promise.resolve(null) };

/** As a readiness probe of `/v1/info` would see them. */
export function readyByAddress(urls: readonly string[], clock: Clock): ReadyWorkers & { close(): Promise<void> } {
  const http = new TrinoHttp(clock);
  return {
    async ready() {
      const answers = await Promise.allSettled(urls.map((url) => readInfo(url.replace(/\/+$/, ""), http)));
      return answers.flatMap((answer) => {
        if (answer.status === "rejected" || answer.value.isCoordinator || answer.value.isStarting) return [];
        return answer.value.state === null || answer.value.state === "ACTIVE" ? [answer.value.nodeId] : [];
      });
    },
    close: () => http.destroy(),
  };
}

/** Ready pods of the cluster, without that of its coordinator. */
export function readyByPod(kube: KubeApi, pods: PodsOfCluster, coordinatorHost: string): ReadyWorkers {
  return {
    async ready() {
      const seen = await listPods(kube, pods);
      return seen
        .filter(({ status }) => status.podIP !== coordinatorHost && conditionOf(status.conditions, "Ready")?.status === "True")
        .map(({ metadata }) => metadata.name);
    },
  };
}
