/** What is asked about the replicas of the controller: who has which pools, and which of them a request is for. */
import type { Informer } from "../kube/informer.ts";
import type { InstanceRecord } from "../model/instance.ts";
import type { ControllerState, Subject } from "../server/control-plane.ts";
import type { Store } from "../store/port.ts";
import type { Controller } from "./controller.ts";
import type { Member, Members } from "./members.ts";
import { heldSteps } from "./operator-desk.ts";
import type { PoolEntry } from "./pool-informer.ts";

export interface ReplicasDeskParts {
  readonly controller: Controller;
  readonly members: Members;
  readonly pools: Informer<PoolEntry>;
  readonly store: Store;
  readonly findInstance: (id: string) => Promise<InstanceRecord | undefined>;
}

export async function listControllers({
  members,
  pools,
  store,
}: Pick<ReplicasDeskParts, "members" | "pools"> & { readonly store: Pick<Store, "poolOwners"> }): Promise<readonly ControllerState[]> {
  const owners = await store.poolOwners();
  const owned = new Map<string, string[]>();
  for (const { key } of pools.list()) {
    const owner = owners.get(key);
    if (owner !== undefined) owned.set(owner, [...(owned.get(owner) ?? []), key]);
  }
  const live = new Map(members.live().map(({ id, api }) => [id, api]));
  return [...new Set([...live.keys(), ...owned.keys()])].toSorted().map((id) => ({
    id,
    api: live.get(id) ?? null,
    isSelf: id === members.self,
    isLive: live.has(id),
    pools: (owned.get(id) ?? []).toSorted(),
  }));
}

/** Undefined: this one answers. Of what no pool has, and of what is unknown, everybody says the same. */
export async function ownerElsewhere(parts: ReplicasDeskParts, subject: Subject): Promise<Member | undefined> {
  const pool = await poolOf(parts, subject);
  return pool === undefined ? undefined : parts.controller.otherOwnerOf(pool);
}

async function poolOf(
  { pools, store, findInstance }: ReplicasDeskParts,
  { pool, instance, poolOrInstance, operation, any }: Subject,
): Promise<string | undefined> {
  if (pool !== undefined) return pool;
  if (operation !== undefined) return (await heldSteps(store, operation))[0]?.pool;
  const keys = pools.list().map(({ key }) => key);
  if (any) return keys.toSorted()[0];
  if (poolOrInstance !== undefined && keys.includes(poolOrInstance)) return poolOrInstance;
  const id = instance ?? poolOrInstance;
  return id === undefined ? undefined : (await findInstance(id))?.pool;
}
