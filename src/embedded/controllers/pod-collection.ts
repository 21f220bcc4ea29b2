/** Frees pods whose node is gone, after a time in which it could come back under its name. */
import { NODES, PODS } from "../../kube/resources.ts";
import type { ClusterAccess } from "./access.ts";
import { ControllerLoop, type ReconcileResult } from "./loop.ts";
import { isTerminal, keyOf, refOf, withCondition, type PodView } from "./views.ts";

export interface PodCollectionOptions {
  /** How long a pod outlives its Node object. Kubernetes: about 50 s. */
  readonly orphanGraceMs: number;
}

export function podCollectionController(access: ClusterAccess, options: PodCollectionOptions): ControllerLoop {
  const nodes = access.informer(NODES);
  const pods = access.informer(PODS);
  const orphanedAt = new Map<string, number>();
  const loop = new ControllerLoop({ name: "pod-collection", clock: access.clock, log: access.log, signal: access.signal, reconcile });
  nodes.onChange(({ key, before, after }) => {
    if (before?.metadata.uid === after?.metadata.uid) return;
    for (const pod of pods.byIndex("node", key)) loop.enqueue(keyOf(pod));
  });
  pods.onChange(({ key, before, after }) => {
    if (after === undefined && before !== undefined) orphanedAt.delete(before.metadata.uid);
    const node = (after as PodView | undefined)?.spec.nodeName;
    if (node !== undefined && nodes.get(node) === undefined) loop.enqueue(key);
  });

  async function reconcile(key: string): Promise<ReconcileResult | void> {
    const pod = pods.get(key) as PodView | undefined;
    const node = pod?.spec.nodeName ?? "";
    if (pod === undefined || node === "") return;
    const { uid } = pod.metadata;
    if (nodes.get(node) !== undefined) return void orphanedAt.delete(uid);
    const now = access.clock.monotonic();
    const since = orphanedAt.get(uid) ?? now;
    orphanedAt.set(uid, since);
    const leftMs = since + options.orphanGraceMs - now;
    if (leftMs > 0) return { requeueAfterMs: leftMs };
    if (!isTerminal(pod)) await markLost(pod);
    await access.delete(refOf(PODS, pod), uid, { gracePeriodSeconds: 0 });
  }

  async function markLost(pod: PodView): Promise<void> {
    const conditions = withCondition(
      pod.status?.conditions,
      { type: "DisruptionTarget", status: "True", reason: "DeletionByPodGC", message: "PodGC: node no longer exists" },
      access.stamp(),
    );
    await access.patchStatus(refOf(PODS, pod), { metadata: { uid: pod.metadata.uid }, status: { phase: "Failed", conditions } });
  }

  return loop;
}
