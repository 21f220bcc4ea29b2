/**
 * Deletes what has lost its owners. An owner counts as lost only when a fresh read of exactly that object finds none with its UID: caches may lag behind, and
 * owners of kinds that are not followed here are left to whoever follows them.
 */
import { isNotFound, type KubeObject, type OwnerReference, type ResourceType } from "../../kube/api.ts";
import { apiVersionOf } from "../../kube/resources.ts";
import type { ClusterAccess } from "./access.ts";
import type { Informer } from "./informer.ts";
import { ControllerLoop } from "./loop.ts";
import { refFromKey, refOf } from "./views.ts";

const FOREGROUND = "foregroundDeletion";
const ORPHAN = "orphan";

export function garbageCollectionController(access: ClusterAccess, types: readonly ResourceType[]): ControllerLoop {
  const informers = new Map(types.map((type) => [typeName(type), access.informer(type)]));
  const loop = new ControllerLoop({ name: "garbage-collection", clock: access.clock, log: access.log, signal: access.signal, reconcile });
  for (const [name, informer] of informers) {
    informer.onChange(({ key, before, after }) => {
      // A kubelet renews its lease every few seconds; whose it is stays.
      if (before !== undefined && after !== undefined && isOwnedAsBefore(before, after)) return;
      const isHeld = after?.metadata.finalizers?.some((finalizer) => finalizer === FOREGROUND || finalizer === ORPHAN) === true;
      if ((after?.metadata.ownerReferences?.length ?? 0) > 0 || isHeld) loop.enqueue(`${name} ${key}`);
      if (before !== undefined && before.metadata.uid !== after?.metadata.uid) enqueueDependents(before);
      for (const owner of before?.metadata.ownerReferences ?? []) if (after === undefined) enqueueOwner(before, owner);
    });
  }

  function enqueueDependents(owner: KubeObject): void {
    for (const [name, { informer, object }] of dependentsOf(owner)) loop.enqueue(`${name} ${nameIn(informer, object)}`);
  }

  /** An owner that waits for its dependents looks again when one is gone. */
  function enqueueOwner(dependent: KubeObject | undefined, owner: OwnerReference): void {
    const type = types.find((candidate) => candidate.kind === owner.kind && apiVersionOf(candidate) === owner.apiVersion);
    if (type === undefined) return;
    const key = type.namespaced ? `${dependent?.metadata.namespace}/${owner.name}` : owner.name;
    if (informers.get(typeName(type))?.get(key)?.metadata.finalizers?.includes(FOREGROUND) === true)
      loop.enqueue(`${typeName(type)} ${key}`);
  }

  function dependentsOf(owner: KubeObject): readonly (readonly [string, { readonly informer: Informer; readonly object: KubeObject }])[] {
    return [...informers].flatMap(([name, informer]) =>
      informer.byIndex("owner", owner.metadata.uid).map((object) => [name, { informer, object }] as const),
    );
  }

  async function reconcile(entry: string): Promise<void> {
    const [name = "", key = ""] = entry.split(" ");
    const informer = informers.get(name);
    const object = informer?.get(key);
    if (informer === undefined || object === undefined) return;
    if (object.metadata.deletionTimestamp !== undefined) return await releaseHeld(informer.type, key, object);
    const owners = object.metadata.ownerReferences ?? [];
    if (owners.length === 0) return;
    for (const owner of owners) if (await mayLive(object, owner)) return;
    await access.delete(refOf(informer.type, object), object.metadata.uid);
  }

  /** True when the owner is there, or when that cannot be told. */
  async function mayLive(dependent: KubeObject, owner: OwnerReference): Promise<boolean> {
    const type = types.find((candidate) => candidate.kind === owner.kind && apiVersionOf(candidate) === owner.apiVersion);
    if (type === undefined) return true;
    const namespace = type.namespaced ? dependent.metadata.namespace : undefined;
    try {
      const found = await access.api.get({ type, namespace, name: owner.name });
      const isTakingDependents = found.metadata.deletionTimestamp !== undefined && found.metadata.finalizers?.includes(FOREGROUND) === true;
      return found.metadata.uid === owner.uid && !isTakingDependents;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  async function releaseHeld(type: ResourceType, key: string, object: KubeObject): Promise<void> {
    const held = object.metadata.finalizers ?? [];
    const dependents = dependentsOf(object);
    if (held.includes(ORPHAN)) {
      for (const [, dependent] of dependents) {
        const ownerReferences = dependent.object.metadata.ownerReferences?.filter((owner) => owner.uid !== object.metadata.uid);
        await access.patch(refOf(dependent.informer.type, dependent.object), {
          metadata: { uid: dependent.object.metadata.uid, ownerReferences },
        });
      }
    } else if (held.includes(FOREGROUND)) {
      const blocking = dependents.filter(([, { object: dependent }]) =>
        dependent.metadata.ownerReferences?.some((owner) => owner.uid === object.metadata.uid && owner.blockOwnerDeletion),
      );
      for (const [, dependent] of dependents) {
        if (dependent.object.metadata.deletionTimestamp !== undefined) continue;
        await access.delete(refOf(dependent.informer.type, dependent.object), dependent.object.metadata.uid, {
          propagationPolicy: "Foreground",
        });
      }
      if (blocking.length > 0) return;
    } else return;
    const finalizers = held.filter((finalizer) => finalizer !== ORPHAN && finalizer !== FOREGROUND);
    await access.patch(refFromKey(type, key), { metadata: { uid: object.metadata.uid, finalizers } });
    await access.refresh(refFromKey(type, key), object.metadata.uid);
  }

  return loop;
}

/** The store keeps what a write leaves alone. */
function isOwnedAsBefore({ metadata: a }: KubeObject, { metadata: b }: KubeObject): boolean {
  return (
    a.uid === b.uid &&
    a.ownerReferences === b.ownerReferences &&
    a.finalizers === b.finalizers &&
    a.deletionTimestamp === b.deletionTimestamp
  );
}

function typeName(type: ResourceType): string {
  return `${type.group}/${type.plural}`;
}

function nameIn(informer: Informer, object: KubeObject): string {
  return informer.type.namespaced ? `${object.metadata.namespace}/${object.metadata.name}` : object.metadata.name;
}
