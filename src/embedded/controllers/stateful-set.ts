/** Keeps the numbered pods of a StatefulSet: up in order, down in reverse, one at a time unless `Parallel`. */
import { isDeepStrictEqual } from "node:util";
import { PODS, STATEFUL_SETS } from "../../kube/resources.ts";
import { controllerKey, type ClusterAccess } from "./access.ts";
import type { EventRecorder } from "./events.ts";
import { ControllerLoop } from "./loop.ts";
import { ownerReference } from "./replica-set.ts";
import { templateHash } from "./template-hash.ts";
import { isActive, isReady, isTerminal, refOf, type PodView, type StatefulSetView } from "./views.ts";

const REVISION_LABEL = "controller-revision-hash";

export function statefulSetController(access: ClusterAccess, events: EventRecorder): ControllerLoop {
  const sets = access.informer(STATEFUL_SETS);
  const pods = access.informer(PODS);
  const loop = new ControllerLoop({ name: "stateful-set", clock: access.clock, log: access.log, signal: access.signal, reconcile });
  sets.onChange(({ key }) => loop.enqueue(key));
  pods.onChange(({ before, after }) => {
    for (const pod of [before, after]) {
      const owner = pod === undefined ? undefined : controllerKey(pod, "StatefulSet");
      if (owner !== undefined) loop.enqueue(owner);
    }
  });

  async function reconcile(key: string): Promise<void> {
    const set = sets.get(key) as StatefulSetView | undefined;
    if (set === undefined || set.metadata.deletionTimestamp !== undefined) return;
    const revision = `${set.metadata.name}-${templateHash(set.spec.template)}`;
    await step(set, revision);
    await writeStatus(set, revision);
  }

  const owned = (set: StatefulSetView): ReadonlyMap<number, PodView> =>
    new Map((pods.byIndex("owner", set.metadata.uid) as readonly PodView[]).map((pod) => [ordinalOf(set, pod), pod]));

  async function step(set: StatefulSetView, revision: string): Promise<void> {
    const isParallel = set.spec.podManagementPolicy === "Parallel";
    const desired = set.spec.replicas ?? 1;
    const present = owned(set);
    for (let ordinal = 0; ordinal < desired; ordinal++) {
      const pod = present.get(ordinal);
      if (pod !== undefined && isTerminal(pod) && pod.metadata.deletionTimestamp === undefined) {
        await access.delete(refOf(PODS, pod), pod.metadata.uid); // it comes back under the same name
      } else if (pod === undefined) {
        await createPod(set, ordinal, revision);
      }
      if (!isParallel && (pod === undefined || !isActive(pod) || !isReady(pod))) return;
    }
    const surplus = [...present].filter(([ordinal]) => ordinal >= desired).toSorted(([a], [b]) => b - a);
    for (const [, pod] of surplus) {
      if (pod.metadata.deletionTimestamp === undefined) await deletePod(set, pod);
      if (!isParallel) return;
    }
    if (surplus.length === 0 && set.spec.updateStrategy?.type !== "OnDelete") await update(set, present, revision);
  }

  /** From the highest ordinal down, the next one only when all are ready. */
  async function update(set: StatefulSetView, present: ReadonlyMap<number, PodView>, revision: string): Promise<void> {
    if ([...present.values()].some((pod) => !isActive(pod))) return;
    for (const [, pod] of [...present].toSorted(([a], [b]) => b - a)) {
      if (pod.metadata.labels?.[REVISION_LABEL] !== revision) return await deletePod(set, pod);
      if (!isReady(pod)) return;
    }
  }

  async function createPod(set: StatefulSetView, ordinal: number, revision: string): Promise<void> {
    const { metadata, spec } = set.spec.template;
    const name = `${set.metadata.name}-${ordinal}`;
    const labels = {
      ...metadata?.labels,
      [REVISION_LABEL]: revision,
      "apps.kubernetes.io/pod-index": String(ordinal),
      "statefulset.kubernetes.io/pod-name": name,
    };
    const annotations = metadata?.annotations;
    await access.create(
      PODS,
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, labels, ...(annotations === undefined ? {} : { annotations }), ownerReferences: [ownerReference(set)] },
        spec: { ...spec, hostname: name, ...(set.spec.serviceName === undefined ? {} : { subdomain: set.spec.serviceName }) },
      },
      set.metadata.namespace,
    );
    events.record(set, "Normal", "SuccessfulCreate", `create Pod ${name} in StatefulSet ${set.metadata.name} successful`);
  }

  async function deletePod(set: StatefulSetView, pod: PodView): Promise<void> {
    await access.delete(refOf(PODS, pod), pod.metadata.uid);
    events.record(set, "Normal", "SuccessfulDelete", `delete Pod ${pod.metadata.name} in StatefulSet ${set.metadata.name} successful`);
  }

  async function writeStatus(set: StatefulSetView, revision: string): Promise<void> {
    const active = [...owned(set).values()].filter(isActive);
    const updated = active.filter((pod) => pod.metadata.labels?.[REVISION_LABEL] === revision);
    const ready = active.filter(isReady).length;
    const status = {
      observedGeneration: set.metadata.generation ?? 1,
      replicas: active.length,
      readyReplicas: ready,
      availableReplicas: ready,
      currentReplicas: updated.length,
      updatedReplicas: updated.length,
      currentRevision: revision,
      updateRevision: revision,
      collisionCount: 0,
    };
    if (isDeepStrictEqual(set["status"], status)) return;
    await access.patchStatus(refOf(STATEFUL_SETS, set), { metadata: { uid: set.metadata.uid }, status });
  }

  return loop;
}

function ordinalOf(set: StatefulSetView, pod: PodView): number {
  return Number(pod.metadata.name.slice(set.metadata.name.length + 1));
}
