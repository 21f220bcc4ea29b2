/** Who owns the replica count, for people; and how many of a target serve. */
import { formatInstant } from "../kernel/clock.ts";
import { nameOfOwner } from "../model/scale-owner.ts";
import { handOf, othersOf } from "../plan/scaling/target.ts";
import type { PoolSnapshot } from "../plan/snapshot.ts";

/** As a part of a sentence: `relevo, pool shop/capture`. */
export function ownerOf(snapshot: PoolSnapshot): string {
  const { pool, spec, scale, target } = snapshot;
  if (spec.target === undefined) return `relevo, pool ${pool}`;
  const hand = target && handOf(snapshot, target);
  if (hand) return `${nameOfOwner(hand)}, which asks pool ${pool}`;
  const adopted = scale?.adopted;
  if (adopted === undefined || adopted.uid !== (target?.object?.uid ?? adopted.uid)) return "not this pool: relevo adopt hands it over";
  return `relevo, pool ${pool}, given by ${adopted.by} at ${formatInstant(adopted.at)}`;
}

/** `HorizontalPodAutoscaler/web`, of an instance with the workload that it scales. */
export function otherOwnersOf(snapshot: PoolSnapshot): readonly string[] {
  const { target, scaleOwners = [] } = snapshot;
  const ofTarget = target?.object ? othersOf(snapshot, target, target.object).map(nameOfOwner) : [];
  return [...ofTarget, ...scaleOwners.map(({ workload, owner }) => `${nameOfOwner(owner)} of ${workload}`)];
}

/** Of a target its ready replicas, of other pools the instances that serve. */
export function servingCountOf({ target, instances }: Pick<PoolSnapshot, "target" | "instances">): number {
  if (target?.object) return Math.min(target.object.readyReplicas, target.object.replicas);
  return instances.filter(({ record }) => record.phase === "serving").length;
}
