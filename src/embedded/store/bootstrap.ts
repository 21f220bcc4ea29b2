/** What every cluster has from its first moment. */
import { NAMESPACES, PRIORITY_CLASSES, apiVersionOf } from "../../kube/resources.ts";
import type { ObjectStore } from "./object-store.ts";

const NAMESPACE_NAMES = ["default", "kube-system", "kube-public", "kube-node-lease"];
const SYSTEM_PRIORITIES = { "system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000 };

/** Makes the namespaces and priority classes; the uid of `kube-system` is the uid of the cluster. */
export function bootstrapCluster(store: ObjectStore): void {
  for (const name of NAMESPACE_NAMES) store.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  for (const [name, value] of Object.entries(SYSTEM_PRIORITIES)) {
    store.create(PRIORITY_CLASSES, { apiVersion: apiVersionOf(PRIORITY_CLASSES), kind: PRIORITY_CLASSES.kind, metadata: { name }, value });
  }
}
