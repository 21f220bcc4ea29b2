/** The kinds that the product speaks of, each once. */
import type { ResourceType } from "./api.ts";

const type = (group: string, version: string, kind: string, plural: string, namespaced: boolean): ResourceType => ({
  group,
  version,
  kind,
  plural,
  namespaced,
});

export const NODES = type("", "v1", "Node", "nodes", false);
export const PODS = type("", "v1", "Pod", "pods", true);
export const NAMESPACES = type("", "v1", "Namespace", "namespaces", false);
export const EVENTS = type("", "v1", "Event", "events", true);
export const SERVICES = type("", "v1", "Service", "services", true);
export const CONFIG_MAPS = type("", "v1", "ConfigMap", "configmaps", true);
export const SECRETS = type("", "v1", "Secret", "secrets", true);
export const SERVICE_ACCOUNTS = type("", "v1", "ServiceAccount", "serviceaccounts", true);
export const PERSISTENT_VOLUME_CLAIMS = type("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true);
export const DEPLOYMENTS = type("apps", "v1", "Deployment", "deployments", true);
export const REPLICA_SETS = type("apps", "v1", "ReplicaSet", "replicasets", true);
export const STATEFUL_SETS = type("apps", "v1", "StatefulSet", "statefulsets", true);
export const DAEMON_SETS = type("apps", "v1", "DaemonSet", "daemonsets", true);
export const POD_DISRUPTION_BUDGETS = type("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true);
export const LEASES = type("coordination.k8s.io", "v1", "Lease", "leases", true);
export const PRIORITY_CLASSES = type("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", false);
export const CUSTOM_RESOURCE_DEFINITIONS = type(
  "apiextensions.k8s.io",
  "v1",
  "CustomResourceDefinition",
  "customresourcedefinitions",
  false,
);
export const NODE_CLAIMS = type("karpenter.sh", "v1", "NodeClaim", "nodeclaims", false);
export const NODE_POOLS = type("karpenter.sh", "v1", "NodePool", "nodepools", false);
export const HORIZONTAL_POD_AUTOSCALERS = type("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true);
export const SCALED_OBJECTS = type("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects", true);
export const POOLS = type("relevo.dev", "v1alpha1", "Pool", "pools", true);
export const SITES = type("relevo.dev", "v1alpha1", "Site", "sites", false);

/** `v1`, `apps/v1`. */
export function apiVersionOf(resource: ResourceType): string {
  return resource.group === "" ? resource.version : `${resource.group}/${resource.version}`;
}
