/** Keeps as many pods as a ReplicaSet wants, and its status true. */
import { isDeepStrictEqual } from "node:util";
import { PODS, REPLICA_SETS } from "../../kube/resources.ts";
import { controllerKey, type ClusterAccess } from "./access.ts";
import type { EventRecorder } from "./events.ts";
import { ControllerLoop, type ReconcileResult } from "./loop.ts";
import { availableInMs, controllerOf, isActive, isReady, keyOf, refOf, type PodView, type ReplicaSetView } from "./views.ts";
import { matchesLabelSelector } from "../store/selectors.ts";

/** Pods made or ended in one reconcile. */
const BURST = 500;

export function replicaSetController(access: ClusterAccess, events: EventRecorder): ControllerLoop {
  const sets = access.informer(REPLICA_SETS);
  const pods = access.informer(PODS);
  pods.addIndex("orphans", (pod) => (controllerOf(pod) === undefined ? [pod.metadata.namespace ?? ""] : []));
  const loop = new ControllerLoop({ name: "replica-set", clock: access.clock, log: access.log, signal: access.signal, reconcile });
  sets.onChange(({ key }) => loop.enqueue(key));
  pods.onChange(({ before, after }) => {
    for (const pod of [before, after]) {
      const owner = pod === undefined ? undefined : controllerKey(pod, "ReplicaSet");
      if (owner !== undefined) loop.enqueue(owner);
    }
  });

  async function reconcile(key: string): Promise<ReconcileResult | void> {
    const set = sets.get(key) as ReplicaSetView | undefined;
    if (set === undefined) return;
    if (set.metadata.deletionTimestamp === undefined) {
      await adoptOrphans(set);
      await scale(set);
    }
    return await writeStatus(set);
  }

  const owned = (set: ReplicaSetView): readonly PodView[] => pods.byIndex("owner", set.metadata.uid) as readonly PodView[];

  async function adoptOrphans(set: ReplicaSetView): Promise<void> {
    for (const orphan of pods.byIndex("orphans", set.metadata.namespace ?? "") as readonly PodView[]) {
      if (!isActive(orphan) || !matchesLabelSelector(set.spec.selector, orphan.metadata.labels)) continue;
      const ownerReferences = [...(orphan.metadata.ownerReferences ?? []), ownerReference(set)];
      await access.patch(refOf(PODS, orphan), { metadata: { uid: orphan.metadata.uid, ownerReferences } });
    }
  }

  async function scale(set: ReplicaSetView): Promise<void> {
    const active = owned(set).filter(isActive);
    const missing = (set.spec.replicas ?? 1) - active.length;
    for (let i = 0; i < Math.min(missing, BURST); i++) await createPod(set);
    if (missing < 0) for (const pod of active.toSorted(compareExpendable).slice(0, Math.min(-missing, BURST))) await deletePod(set, pod);
  }

  async function createPod(set: ReplicaSetView): Promise<void> {
    const { metadata, spec } = set.spec.template;
    const namespace = set.metadata.namespace;
    const pod = await access.create(
      PODS,
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: {
          generateName: `${set.metadata.name}-`,
          ...(metadata?.labels === undefined ? {} : { labels: metadata.labels }),
          ...(metadata?.annotations === undefined ? {} : { annotations: metadata.annotations }),
          ...(metadata?.finalizers === undefined ? {} : { finalizers: metadata.finalizers }),
          ownerReferences: [ownerReference(set)],
        },
        spec,
      },
      namespace,
    );
    events.record(set, "Normal", "SuccessfulCreate", `Created pod: ${pod.metadata.name}`);
  }

  async function deletePod(set: ReplicaSetView, pod: PodView): Promise<void> {
    await access.delete(refOf(PODS, pod), pod.metadata.uid);
    events.record(set, "Normal", "SuccessfulDelete", `Deleted pod: ${pod.metadata.name}`);
  }

  async function writeStatus(set: ReplicaSetView): Promise<ReconcileResult> {
    const now = access.clock.now();
    const active = owned(set).filter(isActive);
    const waits = active.map((pod) => availableInMs(pod, set.spec.minReadySeconds ?? 0, now));
    const status = {
      replicas: active.length,
      fullyLabeledReplicas: active.length,
      readyReplicas: active.filter(isReady).length,
      availableReplicas: waits.filter((wait) => wait === 0).length,
      observedGeneration: set.metadata.generation ?? 1,
    };
    if (!isDeepStrictEqual(set.status, status)) {
      await access.patchStatus(refOf(REPLICA_SETS, set), { metadata: { uid: set.metadata.uid }, status });
    }
    const pending = waits.filter((wait) => wait !== undefined && wait > 0) as readonly number[];
    return { requeueAfterMs: pending.length === 0 ? undefined : Math.min(...pending) };
  }

  return loop;
}

export function ownerReference(owner: {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly uid: string };
}): {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller: true;
  readonly blockOwnerDeletion: true;
} {
  const { apiVersion, kind, metadata } = owner;
  return { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true, blockOwnerDeletion: true };
}

/** Which pod goes first: without a node, not ready, cheaper by its own word, younger; as Kubernetes ranks them. */
function compareExpendable(a: PodView, b: PodView): number {
  return (
    Number(hasNode(a)) - Number(hasNode(b)) ||
    Number(isReady(a)) - Number(isReady(b)) ||
    deletionCost(a) - deletionCost(b) ||
    b.metadata.creationTimestamp.localeCompare(a.metadata.creationTimestamp) ||
    keyOf(a).localeCompare(keyOf(b))
  );
}

function hasNode(pod: PodView): boolean {
  return (pod.spec.nodeName ?? "") !== "";
}

function deletionCost(pod: PodView): number {
  return Number(pod.metadata.annotations?.["controller.kubernetes.io/pod-deletion-cost"] ?? 0) || 0;
}
