/** What users of a cluster may do with Pools: parts of the roles that every cluster has, so that whoever may see or edit workloads of a namespace may its Pools. */
import { POOLS } from "../../src/kube/resources.ts";
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
  return Object.entries(ROLES).map(([role, verbs]) => ({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: `relevo-pools-${role}`, labels: { ...labels(), [`rbac.authorization.k8s.io/aggregate-to-${role}`]: "true" } },
    rules: [{ apiGroups: [POOLS.group], resources: [POOLS.plural], verbs: [...verbs] }],
  }));
}
