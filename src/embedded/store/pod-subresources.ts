/** Eviction and binding of pods. */
import { formatInstant } from "../../kernel/clock.ts";
import type { DeleteOptions, KubeObject, ObjectRef } from "../../kube/api.ts";
import { NODES, POD_DISRUPTION_BUDGETS, PODS } from "../../kube/resources.ts";
import { conflict, internalError, tooManyRequests } from "./api-errors.ts";
import { formatSeconds } from "./deletion.ts";
import { isJsonObject, type JsonObject, valueAt } from "./json.ts";
import { checkPreconditions } from "./new-object.ts";
import { type ObjectStore, refOf } from "./object-store.ts";
import { type LabelSelector, matchesLabelSelector } from "./selectors.ts";

const BUDGET_BEHIND_RETRY_S = 10;
const BINDINGS = { ...PODS, plural: "pods/binding" };

export type EvictOptions = DeleteOptions & { readonly dryRun?: boolean | undefined };

/** Deletes a pod if its disruption budget allows it, and takes one disruption from the budget in the same step. */
export function evictPod(store: ObjectStore, ref: ObjectRef, options: EvictOptions = {}): void {
  const pod = store.get(ref);
  checkPreconditions(PODS, pod, options.preconditions ?? {});
  if (countsForBudget(pod)) spendBudget(store, pod, options.dryRun ?? false);
  if (options.dryRun) return;
  if (pod.metadata.deletionTimestamp === undefined && valueAt(pod, "spec.nodeName") !== undefined) markEvicted(store, ref);
  store.delete(ref, { ...options, preconditions: { uid: pod.metadata.uid } });
}

function countsForBudget(pod: KubeObject): boolean {
  const phase = valueAt(pod, "status.phase");
  return pod.metadata.deletionTimestamp === undefined && phase !== "Pending" && phase !== "Succeeded" && phase !== "Failed";
}

function spendBudget(store: ObjectStore, pod: KubeObject, dryRun: boolean): void {
  const { namespace, name, labels } = pod.metadata;
  const budgets = store
    .list(POD_DISRUPTION_BUDGETS, { namespace })
    .items.filter((budget) => matchesLabelSelector(valueAt(budget, "spec.selector") as LabelSelector | undefined, labels));
  const [budget] = budgets;
  if (!budget) return;
  if (budgets.length > 1)
    throw internalError("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
  if (!isReady(pod) && mayEvictUnhealthy(budget)) return;
  checkBudget(budget);
  store.modify(
    refOf(POD_DISRUPTION_BUDGETS, budget),
    (before) => {
      const status = statusOf(before);
      const disruptedPods = isJsonObject(status["disruptedPods"]) ? status["disruptedPods"] : {};
      return {
        ...before,
        status: {
          ...status,
          disruptionsAllowed: number(status, "disruptionsAllowed") - 1,
          disruptedPods: { ...disruptedPods, [name]: formatSeconds(store.clock.now()) },
        },
      };
    },
    { part: "status", dryRun },
  );
}

function checkBudget(budget: KubeObject): void {
  const { name, generation = 0 } = budget.metadata;
  const status = statusOf(budget);
  const refusal = "Cannot evict pod as it would violate the pod's disruption budget.";
  if (number(status, "observedGeneration") < generation) {
    const message = `The disruption budget ${name} is still being processed by the server.`;
    throw tooManyRequests(refusal, { causes: [{ reason: "DisruptionBudget", message }], retryAfterSeconds: BUDGET_BEHIND_RETRY_S });
  }
  if (number(status, "disruptionsAllowed") > 0) return;
  const message = `The disruption budget ${name} needs ${number(status, "desiredHealthy")} healthy pods and has ${number(status, "currentHealthy")} currently`;
  throw tooManyRequests(refusal, { causes: [{ reason: "DisruptionBudget", message }] });
}

/** A pod that is not ready cannot make a healthy set less healthy. */
function mayEvictUnhealthy(budget: KubeObject): boolean {
  if (valueAt(budget, "spec.unhealthyPodEvictionPolicy") === "AlwaysAllow") return true;
  const status = statusOf(budget);
  const desired = number(status, "desiredHealthy");
  return desired > 0 && number(status, "currentHealthy") >= desired;
}

function statusOf(object: KubeObject): JsonObject {
  return isJsonObject(object["status"]) ? object["status"] : {};
}

function number(status: JsonObject, field: string): number {
  const value = status[field];
  return typeof value === "number" ? value : 0;
}

function isReady(pod: KubeObject): boolean {
  return conditionsOf(pod).some((condition) => condition["type"] === "Ready" && condition["status"] === "True");
}

function conditionsOf(object: KubeObject): readonly JsonObject[] {
  const conditions = statusOf(object)["conditions"];
  return Array.isArray(conditions) ? conditions.filter(isJsonObject) : [];
}

function markEvicted(store: ObjectStore, ref: ObjectRef): void {
  const condition = {
    type: "DisruptionTarget",
    status: "True",
    reason: "EvictionByEvictionAPI",
    message: "Eviction API: evicting",
    lastTransitionTime: formatSeconds(store.clock.now()),
  };
  store.modify(
    ref,
    (pod) => ({
      ...pod,
      status: { ...statusOf(pod), conditions: [...conditionsOf(pod).filter((each) => each["type"] !== condition.type), condition] },
    }),
    { part: "status" },
  );
}

const TOPOLOGY_LABELS = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/** Puts a pod on a node; copies the node's topology labels, as servers do since 1.35. */
export function bindPod(store: ObjectStore, ref: ObjectRef, nodeName: string): KubeObject {
  const bind = (pod: KubeObject): JsonObject => {
    const bound = valueAt(pod, "spec.nodeName");
    if (typeof bound === "string" && bound !== "")
      throw conflict(BINDINGS, ref.name, `pod ${ref.name} is already assigned to node "${bound}"`);
    if (pod.metadata.deletionTimestamp !== undefined)
      throw conflict(BINDINGS, ref.name, `pod ${ref.name} is being deleted, cannot be assigned to a host`);
    const nodeLabels = store.find({ type: NODES, name: nodeName })?.metadata.labels ?? {};
    const topology = Object.fromEntries(
      TOPOLOGY_LABELS.flatMap((label) => (nodeLabels[label] === undefined ? [] : [[label, nodeLabels[label]]])),
    );
    return {
      ...pod,
      metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, ...topology } },
      spec: { ...(pod["spec"] as JsonObject), nodeName },
      status: scheduled(pod, formatInstant(store.clock.now())),
    };
  };
  return store.modify(ref, bind, { part: "binding" });
}

function scheduled(pod: KubeObject, at: string): JsonObject {
  const condition = { type: "PodScheduled", status: "True", lastTransitionTime: `${at.slice(0, 19)}Z` };
  return { ...statusOf(pod), conditions: [...conditionsOf(pod).filter((each) => each["type"] !== condition.type), condition] };
}
