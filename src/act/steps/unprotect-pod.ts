/** Takes Relevo's own marks off a pod that is none of this instance's any more: what a user set, or changed since, stays (D2). */
import type { KubeApi, KubeObject } from "../../kube/api.ts";
import { findObject } from "../../kube/find-object.ts";
import { PODS, REPLICA_SETS } from "../../kube/resources.ts";
import { ANNOTATIONS, PROTECTION_MARKS } from "../../model/marks.ts";
import { done, happened, NOT_HAPPENED, type StepKind, superseded } from "../step-kind.ts";
import { annotationOf, controllerOf } from "./objects.ts";
import { parseMarker, type ProtectPod, protectPodSchema } from "./protect-pod.ts";

export type UnprotectPod = ProtectPod;

export const unprotectPod: StepKind<UnprotectPod> = {
  kind: "unprotect_pod/1",
  schema: protectPodSchema,

  async act(payload, { kube }) {
    const ref = { type: PODS, namespace: payload.pod.namespace, name: payload.pod.name };
    const seen = await findObject(kube, ref);
    if (seen === undefined) return superseded("pod_gone");
    if (seen.metadata.uid !== payload.pod.uid) return superseded("pod_replaced");
    if (seen.metadata.deletionTimestamp !== undefined) return superseded("pod_deleting");
    const marker = parseMarker(annotationOf(seen, ANNOTATIONS.protectedBy));
    if (marker === undefined) return superseded("not_our_mark");
    if (!(await isLetGo(kube, seen, payload))) return superseded("owner_ours");

    const own = marker.set.filter((mark) => PROTECTION_MARKS[mark] !== undefined && annotationOf(seen, mark) === PROTECTION_MARKS[mark]);
    await kube.patch(ref, {
      metadata: {
        uid: payload.pod.uid,
        resourceVersion: seen.metadata.resourceVersion,
        annotations: Object.fromEntries([...own, ANNOTATIONS.protectedBy].map((mark) => [mark, null])),
      },
    });
    return done("unprotected", { removed: own });
  },

  /** The marker goes in the same patch as the marks; a pod without it is as it should be, whoever did it. */
  async probe({ pod }, { kube }) {
    const seen = await findObject(kube, { type: PODS, namespace: pod.namespace, name: pod.name });
    if (seen?.metadata.uid !== pod.uid) return NOT_HAPPENED;
    return annotationOf(seen, ANNOTATIONS.protectedBy) === undefined ? happened("unprotected") : NOT_HAPPENED;
  },

  settle: () => [],
};

/** Nobody made it, or somebody else did. One whose ReplicaSet is gone goes with it. */
async function isLetGo(kube: KubeApi, pod: KubeObject, { pod: { namespace }, objects }: UnprotectPod): Promise<boolean> {
  let owner = controllerOf(pod);
  if (owner?.kind === "ReplicaSet") {
    const replicaSet = await findObject(kube, { type: REPLICA_SETS, namespace, name: owner.name });
    if (replicaSet?.metadata.uid !== owner.uid) return false;
    owner = controllerOf(replicaSet);
  }
  return !objects.some(({ uid }) => uid === owner?.uid);
}
