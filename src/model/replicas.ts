/** How many pods the objects of a blueprint make. */

interface BlueprintObject {
  readonly kind: string;
  readonly [field: string]: unknown;
}

const WORKLOADS: readonly string[] = ["Deployment", "StatefulSet"];

/** Pods of all workloads but the first, which is the lead. What a workload does not say is one, as for Kubernetes. */
export function replicasBesideLead(objects: readonly BlueprintObject[]): number {
  const [, ...members] = objects.filter(({ kind }) => WORKLOADS.includes(kind));
  return members.reduce((sum, object) => sum + replicasOf(object), 0);
}

function replicasOf(object: BlueprintObject): number {
  const { spec } = object;
  const replicas = typeof spec === "object" && spec !== null && "replicas" in spec ? spec.replicas : undefined;
  return typeof replicas === "number" && Number.isInteger(replicas) && replicas >= 0 ? replicas : 1;
}
