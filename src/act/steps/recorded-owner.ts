/** Whose a pod is, by UID. */
import type { KubeApi, KubeObject } from "../../kube/api.ts";
import { findObject } from "../../kube/find-object.ts";
import { REPLICA_SETS } from "../../kube/resources.ts";
import type { OwnedObject } from "../../model/instance.ts";
import { controllerOf, findOwned } from "./objects.ts";

/**
 * pod → ReplicaSet → Deployment, or pod → StatefulSet: each read by name, each compared by UID. Undefined when they lead to none of `objects`, or to one that is
 * gone.
 */
export async function recordedOwnerOf(kube: KubeApi, pod: KubeObject, objects: readonly OwnedObject[]): Promise<OwnedObject | undefined> {
  const namespace = pod.metadata.namespace ?? "";
  let owner = controllerOf(pod);
  if (owner?.kind === "ReplicaSet") {
    const replicaSet = await findObject(kube, { type: REPLICA_SETS, namespace, name: owner.name });
    if (replicaSet?.metadata.uid !== owner.uid) return undefined;
    owner = controllerOf(replicaSet);
  }
  const recorded = objects.find(({ kind, uid }) => kind === owner?.kind && uid === owner.uid);
  return recorded !== undefined && (await findOwned(kube, recorded)) !== undefined ? recorded : undefined;
}
