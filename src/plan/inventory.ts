/**
 * Whether all is seen that could run on a node: what a cordon relies on (D8, D9, I6).
 *
 * A fresh instance, one on its way to its first admission, converges: a pod of it that is not there yet or waits for a place is on no node, and says nothing
 * against the cordon of any. In an evacuation some candidate is always like that. Once it was admitted its pods were all placed: then one that is missing is a
 * hole in what is seen.
 */
import type { InstanceRecord } from "../model/instance.ts";
import { isLeaving } from "../model/phase.ts";
import type { InstanceSnapshot, InventoryState, PodSnapshot } from "./snapshot.ts";

/** What went wrong with the looks: at the objects of the cluster, and at whom its nodes belong to; undefined when nothing did. */
export interface LookTroubles {
  readonly objects: string | undefined;
  readonly owners: string | undefined;
}

export function inventoryOf({ objects, owners }: LookTroubles, instances: readonly InstanceSnapshot[]): InventoryState {
  if (objects !== undefined) return { state: "error", error: objects };
  if (owners !== undefined) return { state: "error", error: owners, isOfOwnersOnly: true };
  for (const { record, pods, podsWanted, cluster } of instances) {
    if (isLeaving(record.phase)) continue;
    const isNew = isFresh(record);
    if (!isNew && pods.length < podsWanted) return { state: "incomplete", missing: `${podsWanted - pods.length} pods of ${record.id}` };
    // A member of a cluster is made anew beneath an instance that stays: one that waits for its place is seen, and is on no node.
    const mayWait = (pod: PodSnapshot): boolean => isNew || (cluster !== undefined && pod.owned && !pod.lead);
    const unseen = pods.find((pod) => pod.node === null && !(mayWait(pod) && waitsForPlace(pod)));
    if (unseen) return { state: "incomplete", missing: `the node of pod ${unseen.name}` };
  }
  return { state: "complete" };
}

/** Being made, and never admitted so far. */
export function isFresh({ phase, admittedGeneration }: Pick<InstanceRecord, "phase" | "admittedGeneration">): boolean {
  return (phase === "pending" || phase === "creating" || phase === "preparing") && admittedGeneration === null;
}

/** It is on no node. One that has a place on a node that is not seen is somewhere: that is a hole also of a fresh instance. */
function waitsForPlace({ node, scheduledAt }: PodSnapshot): boolean {
  return node === null && scheduledAt === null;
}
