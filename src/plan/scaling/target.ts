/**
 * The size of a workload that others made: nothing but its replicas is this Pool's, and these only while it alone owns them (K3, I20).
 *
 * 1. Before it was adopted nothing is decided, only told what would be.
 * 2. Whoever else sets the count is an owner: then nothing is decided and nothing written, until somebody adopts it anew or the other one is gone.
 * 3. A ScaledObject that asks nobody but us is our hand: what is decided reaches the workload through it, and we write nothing.
 * 4. What cannot be seen as it is now, is gone, paused or another object than the one that was adopted, stays as it is.
 */
import type { Instant } from "../../kernel/clock.ts";
import { type Reason, reason } from "../../model/reasons.ts";
import {
  type Adoption,
  deedOf,
  type FieldManager,
  isSameManager,
  nameOfOwner,
  OWN_MANAGER,
  roleOf,
  type ScaleOwner,
  type TargetObject,
  type TargetView,
} from "../../model/scale-owner.ts";
import type { ScalePolicy } from "../../model/scale.ts";
import type { Draft } from "../draft.ts";
import type { PoolSnapshot } from "../snapshot.ts";
import { decideScale } from "./decide-scale.ts";
import { inputOf } from "./plan-scaling.ts";
import { stateAfter } from "./state-after.ts";
import type { ScalingInput } from "./types.ts";

export function planTarget(pool: PoolSnapshot, now: Instant, draft: Draft): void {
  const { target } = pool;
  const { scale: policy } = pool.spec;
  if (policy === undefined || pool.spec.target === undefined || pool.deleting) return;
  const name = `${pool.spec.target.kind}/${pool.spec.target.name}`;
  if (target === undefined || target === null) return draft.hold("", reason("scale_target_unread", { target: name }));
  const { object } = target;
  if (object === null)
    return draft.hold("", target.trouble === null ? reason("scale_target_gone", { target: name }) : unseen(name, target));
  const input = inputOfTarget(pool, policy, target, object);
  const outcome = decideScale(input, now);
  draft.recommend(outcome.recommendation);
  const isFrozen = pool.freeze !== null && now < pool.freeze.until;
  const kept = keptBack(pool, target, object, outcome.desired);
  if (kept.length > 0) {
    for (const why of kept) draft.hold("", why);
    return;
  }
  const hand = handOf(pool, target);
  if (isFrozen) return;
  for (const why of outcome.holds) draft.hold("", why);
  if (outcome.nextLookAt !== null) draft.lookAgainAt(outcome.nextLookAt);
  let decidedAt = pool.scale?.changedAt ?? now;
  // What was found at the beginning is a decision too: to leave it so.
  if (outcome.change !== null) {
    decidedAt = now;
    const state = stateAfter(input, outcome.desired, now);
    draft.decide({ kind: "set_desired", from: input.desired, to: outcome.desired, state, reason: outcome.change });
  }
  const facts = { target: name, desired: outcome.desired, replicas: object.replicas };
  if (hand !== undefined && pool.scale === null && outcome.change === null && outcome.recommendation !== null) {
    // The other replicas of the controller answer KEDA too: what is decided is in the store from the beginning.
    const state = { desired: outcome.desired, changedAt: now, direction: null, lastUp: null, recent: [] };
    const why = reason("scale_through_keda", { ...facts, owner: nameOfOwner(hand) });
    draft.decide({ kind: "set_desired", from: outcome.desired, to: outcome.desired, state, reason: why });
  }
  if (hand !== undefined) return draft.hold("", reason("scale_through_keda", { ...facts, owner: nameOfOwner(hand) }));
  if (object.replicas === outcome.desired) return draft.hold("", reason("target_follows", facts));
  const move = { from: object.replicas, to: outcome.desired };
  draft.decide({ kind: "scale_target", uid: object.uid, ...move, decidedAt, reason: reason("scale_target", { target: name, ...move }) });
}

function unseen(name: string, { trouble }: TargetView): Reason {
  return reason("scale_target_unseen", { target: name, trouble: trouble ?? "?" });
}

/** Why nothing may be decided or written; the first is the gravest. */
function keptBack(pool: PoolSnapshot, target: TargetView, object: TargetObject, wanted: number): readonly Reason[] {
  const name = `${target.kind}/${target.name}`;
  const adopted = pool.scale?.adopted;
  if (target.trouble !== null) return [unseen(name, target)];
  if (object.isDeleting) return [reason("scale_target_deleting", { target: name })];
  const owners = othersOf(pool, target, object).map((owner) =>
    reason("scale_other_owner", { owner: nameOfOwner(owner), target: name, deed: deedOf(owner) }),
  );
  if (owners.length === 0 && handOf(pool, target) !== undefined) return [];
  if (adopted === undefined) return [...owners, reason("scale_not_adopted", { target: name, replicas: object.replicas, wanted })];
  if (adopted.uid !== object.uid)
    return [reason("scale_target_replaced", { target: name, uid: object.uid, adopted: adopted.uid }), ...owners];
  if (owners.length > 0) return owners;
  if (!object.isPaused) return [];
  return [reason("scale_target_paused", { target: name, replicas: object.replicas, desired: wanted })];
}

/** The ScaledObject through which the Pool's size reaches the target. */
export function handOf({ pool }: Pick<PoolSnapshot, "pool">, { owners }: Pick<TargetView, "owners">): ScaleOwner | undefined {
  return owners.find((owner) => owner.kind === "ScaledObject" && owner.asks === pool);
}

/** All that set the count beside this Pool, in one order. What a ScaledObject makes is told once, by its name. */
export function othersOf(
  pool: Pick<PoolSnapshot, "pool" | "scale">,
  { owners, takenAt = null }: Pick<TargetView, "owners"> & Partial<Pick<TargetView, "takenAt">>,
  object: TargetObject,
): readonly ScaleOwner[] {
  const objects = new Set(owners.flatMap((owner) => (owner.kind === "ScaledObject" ? [owner.name] : [])));
  const hands = new Set(owners.flatMap((owner) => (owner.kind === "ScaledObject" && owner.asks === pool.pool ? [owner.name] : [])));
  const autoscalers = owners.filter((owner) => {
    if (owner.kind === "ScaledObject") return !hands.has(owner.name);
    return owner.kind !== "HorizontalPodAutoscaler" || owner.madeBy === null || !objects.has(owner.madeBy);
  });
  const managers = hands.size > 0 ? [] : managersAgainst(object.managers, pool.scale?.adopted, object.uid, takenAt);
  return [...autoscalers, ...managers.map(ownerOfManager)].toSorted((a, b) => compare(nameOfOwner(a), nameOfOwner(b)));
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

export function ownerOfManager({ manager, at }: FieldManager): ScaleOwner {
  return { kind: "Manager", name: manager, uid: "", role: roleOf(manager), at };
}

/**
 * Before the adoption: all that own the field, but for what only wrote for an autoscaler, which is told by its own name as long as it is there. After it: who was
 * not there at the adoption, and who wrote it since. While we own the field too, its value is ours, whatever else one of those has written.
 */
export function managersAgainst(
  managers: readonly FieldManager[],
  adopted: Adoption | undefined,
  uid: string,
  takenAt: Instant | null = null,
): readonly FieldManager[] {
  const others = managers.filter(({ manager }) => manager !== OWN_MANAGER);
  if (adopted === undefined || adopted.uid !== uid) return others.filter(({ manager }) => roleOf(manager) !== "autoscaler");
  const isOurs = managers.some(({ manager }) => manager === OWN_MANAGER);
  if (!isOurs && takenAt !== null && takenAt > adopted.at) return others;
  return others.filter((each) => {
    const former = adopted.managers.find((known) => isSameManager(known, each));
    return former === undefined || (former.at !== each.at && !isOurs);
  });
}

function inputOfTarget(pool: PoolSnapshot, policy: ScalePolicy, { fullSince }: TargetView, object: TargetObject): ScalingInput {
  const { replicas, readyReplicas } = object;
  return {
    ...inputOf(pool, policy),
    desired: pool.scale?.desired ?? replicas,
    instances: {
      serving: Math.min(readyReplicas, replicas),
      coming: Math.max(0, replicas - readyReplicas),
      since: fullSince === null ? [] : Array.from({ length: readyReplicas }, () => fullSince),
    },
  };
}
