/** What users of a cluster may do with Pools: parts of the roles that every cluster has, so that whoever may see or edit workloads of a namespace may its Pools. */
import { POOLS } from "../../src/kube/resources.ts";
import { ACCESS_GROUP, ACCESS_RESOURCE, ROLE_VERBS } from "../../src/server/kubernetes-access.ts";
import { labels } from "./names.ts";
import type { Json } from "./structural.ts";

const ROLES = {
  view: ["get", "list", "watch"],
  edit: ["create", "update", "patch", "delete"],
} as const;

/**
 * Whoever may write Pools gets no more out of them than the ServiceAccount of the namespace may do there, which is less than `edit` is. The `admin` of a
 * namespace has what `edit` has.
 */
export function userRoles(): readonly Json[] {
  const ofPools = Object.entries(ROLES).map(([role, verbs]) => {
    const aggregated = { [`rbac.authorization.k8s.io/aggregate-to-${role}`]: "true" };
    return clusterRole(`relevo-pools-${role}`, { apiGroups: [POOLS.group], resources: [POOLS.plural], verbs: [...verbs] }, aggregated);
  });
  // Of the HTTP API; bound to nobody here.
  const ofApi = Object.entries(ROLE_VERBS).map(([role, verb]) =>
    clusterRole(`relevo-${role}`, { apiGroups: [ACCESS_GROUP], resources: [ACCESS_RESOURCE], verbs: [verb] }),
  );
  return [...ofPools, ...ofApi];
}

function clusterRole(name: string, rule: Json, more: Json = {}): Json {
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name, labels: { ...labels(), ...more } },
    rules: [rule],
  };
}
