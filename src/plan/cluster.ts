/** What differs for an instance that is a cluster: a lead, and members that come and go beneath it (decision 0018). */
import type { InstanceSnapshot, PodSnapshot, PoolSnapshot } from "./snapshot.ts";

export function isCluster({ spec }: Pick<PoolSnapshot, "spec">): boolean {
  return spec.service.protocol === "trino/v1";
}

/** A pod of its own beside the lead. */
export function isMember(pool: Pick<PoolSnapshot, "spec">, { owned, lead }: PodSnapshot): boolean {
  return isCluster(pool) && owned && !lead;
}

/** Pods whose end by a deadline is the end of the instance: a cluster outlives its members. */
export function podsOfInstance(pool: Pick<PoolSnapshot, "spec">, { pods }: InstanceSnapshot): readonly PodSnapshot[] {
  return isCluster(pool) ? pods.filter(({ lead }) => lead) : pods;
}

export function readyPods({ pods }: InstanceSnapshot): number {
  return pods.filter(({ ready, deleting }) => ready && !deleting).length;
}
