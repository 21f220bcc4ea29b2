/** Whose a pod is: its owner references, followed by UID to an object that the create step made (D2). */
import type { KubePod, KubeWorkload } from "../kube/types.ts";
import type { OwnedObject } from "../model/instance.ts";
import type { World } from "./world.ts";

/**
 * The recorded object that owns the pod, or undefined: then it is nobody's of ours, whatever its labels say. With the ReplicaSet that the pod names
 * (`replicaSetNamedBy`).
 */
export function ownerOf(pod: KubePod, objects: readonly OwnedObject[], replicaSet: KubeWorkload | undefined): OwnedObject | undefined {
  const direct = controllerOf(pod);
  if (!direct) return undefined;
  const made = objects.find(({ uid }) => uid === direct.uid);
  if (made) return made;
  if (replicaSet?.metadata.uid !== direct.uid) return undefined;
  const deployment = controllerOf(replicaSet);
  return deployment && objects.find(({ uid }) => uid === deployment.uid);
}

/**
 * Whether the pod is surely nobody's of ours, whatever its labels say: nobody made it, or somebody else did. While its ReplicaSet is not to be seen it may be ours:
 * pods outlive it. Of an instance whose objects are not recorded only a pod that nobody made is known to be none of it.
 */
export function isForeign(pod: KubePod, objects: readonly OwnedObject[], replicaSet: KubeWorkload | undefined): boolean {
  const direct = controllerOf(pod);
  if (direct === undefined) return true;
  if (objects.length === 0 || ownerOf(pod, objects, replicaSet) !== undefined) return false;
  return direct.kind !== "ReplicaSet" || replicaSet?.metadata.uid === direct.uid;
}

/** By name alone: whether it is the one that owns the pod its UID says. */
export function replicaSetNamedBy(pod: KubePod, world: Pick<World, "replicaSets">): KubeWorkload | undefined {
  const direct = controllerOf(pod);
  return direct?.kind === "ReplicaSet" ? world.replicaSets.get(pod.metadata.namespace, direct.name) : undefined;
}

export function controllerOf(
  object: KubePod | KubeWorkload,
): { readonly kind: string; readonly name: string; readonly uid: string } | undefined {
  return object.metadata.ownerReferences.find(({ controller }) => controller);
}
