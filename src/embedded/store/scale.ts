/** The `scale` of a workload: its replica count as an object of its own. */
import type { KubeObject } from "../../kube/api.ts";
import { invalid } from "./api-errors.ts";
import { isJsonObject, type JsonObject, valueAt } from "./json.ts";

/** The workload with the count that the Scale asks for, under the preconditions in its metadata. */
export function withScale(before: KubeObject, wanted: JsonObject, name: string): JsonObject {
  const replicas = valueAt(wanted, "spec.replicas") ?? 0;
  if (!Number.isInteger(replicas) || (replicas as number) < 0)
    throw invalid({ group: "autoscaling", plural: "scales", kind: "Scale" }, name, [
      { field: "spec.replicas", message: `${JSON.stringify(replicas)}: must be greater than or equal to 0` },
    ]);
  const { uid, resourceVersion } = isJsonObject(wanted["metadata"]) ? wanted["metadata"] : {};
  const asked = { ...(uid === undefined ? {} : { uid }), ...(resourceVersion === undefined ? {} : { resourceVersion }) };
  return { ...before, metadata: { ...before.metadata, ...asked }, spec: { ...(before["spec"] as JsonObject), replicas } };
}

export function scaleOf(object: KubeObject): KubeObject & JsonObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const labels = valueAt(object, "spec.selector.matchLabels");
  const selector = isJsonObject(labels)
    ? Object.entries(labels)
        .map(([key, value]) => `${key}=${String(value)}`)
        .join(",")
    : "";
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), uid, resourceVersion, creationTimestamp },
    spec: { replicas: valueAt(object, "spec.replicas") ?? 0 },
    status: { replicas: valueAt(object, "status.replicas") ?? 0, selector },
  };
}
