/**
 * The second half of a NodeClaim's life, in Karpenter's order: termination timestamp, Node deleted and tainted, Drained through the Eviction API,
 * VolumesDetached, InstanceTerminating, Node gone, NodeClaim gone. Pods that may not be evicted hold the drain, until the termination grace period says
 * otherwise.
 */
import { KubeApiError } from "../../kube/api.ts";
import { NODE_CLAIMS, NODES, PODS } from "../../kube/resources.ts";
import { formatInstant } from "../../kernel/clock.ts";
import { parseDuration } from "../../kernel/units.ts";
import { tolerates } from "../../kube/scheduling.ts";
import type { ReconcileResult } from "../controllers/loop.ts";
import { refOf, type NodeClaimView, type NodeView, type PodView, type Taint } from "../controllers/views.ts";
import { isDeleting, isProtected, type ProvisionerContext } from "./context.ts";
import { DISRUPTED_TAINT, EXCLUDE_FROM_BALANCERS, TERMINATION_FINALIZER, TERMINATION_TIMESTAMP } from "./labels.ts";

const DISRUPTED: Taint = { key: DISRUPTED_TAINT, effect: "NoSchedule" };

export async function terminateClaim(context: ProvisionerContext, claim: NodeClaimView): Promise<ReconcileResult | void> {
  const { access, cloud } = context;
  let seen = await stampTermination(context, claim);
  const instance = cloud.byProviderID(seen.status?.providerID);
  let node = context.nodeOf(seen);
  if (node !== undefined && instance?.state === "running") {
    if (!isDeleting(node)) {
      await access.delete(refOf(NODES, node), node.metadata.uid);
      node = (await access.refresh(refOf(NODES, node), node.metadata.uid)) as NodeView | undefined;
    }
    if (node !== undefined) {
      await taintDisrupted(context, node);
      const remaining = await drain(context, seen, node);
      if (remaining > 0) {
        await context.setConditions(seen, { type: "Drained", status: "Unknown", reason: "Draining", message: "Draining" });
        return { requeueAfterMs: context.options.drainRetryMs };
      }
      seen = await context.setConditions(
        seen,
        { type: "Drained", status: "True", reason: "Drained" },
        { type: "VolumesDetached", status: "True", reason: "VolumesDetached" },
      );
    }
    seen = await context.setConditions(seen, { type: "InstanceTerminating", status: "True", reason: "InstanceTerminating" });
  }
  if (instance !== undefined) await cloud.take(instance);
  if (node !== undefined) await removeNode(context, node);
  await releaseFinalizer(context, seen);
  if (instance !== undefined) {
    await context.fleet.remove(instance.nodeName);
    cloud.forget(instance);
  }
}

/** The Node object goes, whatever holds it. */
export async function removeNode(context: ProvisionerContext, node: NodeView): Promise<void> {
  const { access } = context;
  const ref = refOf(NODES, node);
  const { uid } = node.metadata;
  if ((node.metadata.finalizers ?? []).length > 0) await access.patch(ref, { metadata: { uid, finalizers: null } });
  await access.delete(ref, uid);
}

async function releaseFinalizer(context: ProvisionerContext, claim: NodeClaimView): Promise<void> {
  const { access } = context;
  const finalizers = (claim.metadata.finalizers ?? []).filter((finalizer) => finalizer !== TERMINATION_FINALIZER);
  await access.patch(refOf(NODE_CLAIMS, claim), {
    metadata: { uid: claim.metadata.uid, finalizers: finalizers.length === 0 ? null : finalizers },
  });
  await access.refresh(refOf(NODE_CLAIMS, claim), claim.metadata.uid);
}

async function stampTermination(context: ProvisionerContext, claim: NodeClaimView): Promise<NodeClaimView> {
  const grace = claim.spec.terminationGracePeriod;
  if (grace === undefined || claim.metadata.annotations?.[TERMINATION_TIMESTAMP] !== undefined) return claim;
  const begun = Date.parse(claim.metadata.deletionTimestamp ?? context.access.stamp());
  const at = `${formatInstant(begun + (parseDuration(grace) ?? 0)).slice(0, 19)}Z`;
  return (await context.access.patch(refOf(NODE_CLAIMS, claim), {
    metadata: { uid: claim.metadata.uid, annotations: { [TERMINATION_TIMESTAMP]: at } },
  })) as NodeClaimView;
}

export async function taintDisrupted(context: ProvisionerContext, node: NodeView): Promise<void> {
  const taints = node.spec.taints ?? [];
  const hasTaint = taints.some((taint) => taint.key === DISRUPTED_TAINT);
  const isExcluded = !isDeleting(node) || node.metadata.labels?.[EXCLUDE_FROM_BALANCERS] === "karpenter";
  if (hasTaint && isExcluded) return;
  const { uid, resourceVersion } = node.metadata;
  await context.access.patch(refOf(NODES, node), {
    metadata: { uid, resourceVersion, ...(isDeleting(node) ? { labels: { [EXCLUDE_FROM_BALANCERS]: "karpenter" } } : {}) },
    spec: { taints: hasTaint ? taints : [...taints, DISRUPTED] },
  });
}

/** How many pods are still to go. */
async function drain(context: ProvisionerContext, claim: NodeClaimView, node: NodeView): Promise<number> {
  const stamp = claim.metadata.annotations?.[TERMINATION_TIMESTAMP];
  const endsAt = stamp === undefined ? Number.POSITIVE_INFINITY : Date.parse(stamp);
  const now = context.access.clock.now();
  const pods = context
    .podsOn(node.metadata.name)
    .filter((pod) => !(pod.spec.tolerations ?? []).some((toleration) => tolerates(toleration, DISRUPTED)));
  if (pods.length > 0 && now >= endsAt) {
    context.events.record(
      node,
      "Warning",
      "TerminationGracePeriodExpiring",
      "The termination grace period is over; the instance is terminated with pods on it",
    );
    return 0;
  }
  for (const pod of pods) {
    const graceMs = (pod.spec.terminationGracePeriodSeconds ?? 30) * 1000;
    if (isDeleting(pod)) continue;
    if (now >= endsAt - graceMs) await deletePastBudget(context, pod, endsAt - now);
    else if (!isProtected(pod)) await evict(context, node, pod);
  }
  return pods.length;
}

async function deletePastBudget(context: ProvisionerContext, pod: PodView, leftMs: number): Promise<void> {
  await context.access.delete(refOf(PODS, pod), pod.metadata.uid, { gracePeriodSeconds: Math.max(1, Math.floor(leftMs / 1000)) });
  context.events.record(pod, "Normal", "Disrupted", "Deleted: the node's termination grace period ends before the pod's own");
}

async function evict(context: ProvisionerContext, node: NodeView, pod: PodView): Promise<void> {
  try {
    await context.access.api.evict(refOf(PODS, pod), { preconditions: { uid: pod.metadata.uid } });
    context.events.record(pod, "Normal", "Evicted", "Evicted pod: the node is being disrupted");
  } catch (error) {
    if (!(error instanceof KubeApiError) || ![404, 409, 429, 500].includes(error.httpCode)) throw error;
    if (error.httpCode === 429)
      context.events.record(
        node,
        "Warning",
        "FailedDraining",
        `Failed to drain node, pod ${pod.metadata.namespace}/${pod.metadata.name} is held by its disruption budget`,
      );
  }
}
