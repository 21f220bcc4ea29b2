/**
 * Warm standby: instances that are made, prepared and validated, and wait (S2).
 *
 * 1. They are kept at their number: one that was taken, is lost, condemned or not well for long, or was made from a former blueprint, is made anew.
 * 2. They never count as serving, hold no place of the pool, and are bounded by a number of their own.
 * 3. Taken is only one that is warm, well, and on a node that stays (S4); the one that is replaced hears of nothing before its successor serves.
 * 4. Those whose capacity goes sooner come first: a voluntary replacement takes no standby that a graver one needs.
 */
import type { Instant } from "../kernel/clock.ts";
import { reason, type Reason } from "../model/reasons.ts";
import type { Budget } from "./budget.ts";
import { MAKES_ROOM, NOT_WANTED, OUTDATED, standbyGate } from "./candidates.ts";
import type { Draft } from "./draft.ts";
import { NO_ORDINAL } from "../model/instance.ts";
import { isCandidate } from "../model/phase.ts";
import type { InstanceSnapshot, PoolSnapshot } from "./snapshot.ts";
import {
  compareText,
  describeEvidence,
  gravestEvidence,
  idOf,
  isCondemned,
  isHeld,
  isRoutedNow,
  isStandby,
  lossOf,
  replacementOf,
  unsafety,
} from "./view.ts";

/** Room that was made for somebody more important is taken within this, or there is none of it left. */
const ROOM_TAKEN_WITHIN_MS = 30_000;
/** So many are on their way at once: a large number comes step by step, and what there is no place for is not made thousandfold. */
const REFILLED_AT_ONCE = 100;

/**
 * Decides that a standby takes over from `predecessor`, if there is one that may; false when a new candidate must be made instead, with the reason told.
 * The caller has judged already that a replacement is wanted. It needs no room: the standby occupies its own.
 */
export function standbyFor(pool: PoolSnapshot, predecessor: InstanceSnapshot, draft: Draft): boolean {
  if (pool.spec.standby.count === 0 && !pool.instances.some(isStandby)) return false;
  const warm = warmStandby(pool, draft);
  const [best] = warm;
  if (best === undefined) {
    draft.hold(idOf(predecessor), reason("standby_none", { found: 0, wanted: pool.spec.standby.count }));
    return false;
  }
  if (lossOf(predecessor) === "voluntary" && warm.length <= graverNeeds(pool)) {
    draft.hold(idOf(predecessor), reason("standby_reserved"));
    return false;
  }
  draft.decide({
    kind: "take_standby",
    instance: idOf(best),
    replaces: idOf(predecessor),
    ordinal: predecessor.record.ordinal,
    reason: reason("standby_taken", {
      standby: idOf(best),
      instance: idOf(predecessor),
      evidence: describeEvidence(gravestEvidence(predecessor)),
    }),
  });
  return true;
}

/** Those that may be taken now, the longest warm first. */
export function warmStandby(pool: PoolSnapshot, draft: Draft): readonly InstanceSnapshot[] {
  return pool.instances
    .filter((instance) => isWarm(pool, instance) && !draft.hasDecisionFor(idOf(instance)))
    .toSorted((a, b) => a.record.phaseSince - b.record.phaseSince || compareText(idOf(a), idOf(b)));
}

/** Its check passes, it is of the blueprint that the pool has now, and nothing says that it or its node will go. */
export function isWarm(pool: PoolSnapshot, instance: InstanceSnapshot): boolean {
  const { record, health, newIncarnation, pods } = instance;
  if (!isStandby(instance) || record.phase !== "standby" || isCondemned(instance) || newIncarnation !== null) return false;
  if (health.state !== "passing" || record.blueprintHash !== pool.blueprintHash) return false;
  const { mode, provisioners } = pool.spec.disruption;
  return pods.every(({ node, ready, deleting }) => {
    if (!ready || deleting || node === null) return false;
    const why = unsafety(node, provisioners);
    // Without mode Act nothing that is seen of nodes stands in the way (D1), but a dead one is no place.
    return why === undefined || (mode !== "Act" && why !== "not_ready");
  });
}

/**
 * How many others must be replaced because their capacity goes at a known time, or went: they come before a voluntary replacement. Of those that are on their
 * way out already it is their place that nobody holds yet.
 */
function graverNeeds(pool: PoolSnapshot): number {
  const grave = pool.instances.filter((instance) => {
    const loss = lossOf(instance);
    return (loss === "deadline" || loss === "forced") && !isStandby(instance);
  });
  const held = new Set(pool.instances.filter((each) => isHeld(each) && !isStandby(each)).map(({ record }) => record.ordinal));
  const left = grave.filter((each) => !isHeld(each) && each.record.failure === null && !held.has(each.record.ordinal));
  return (
    grave.filter((instance) => isRoutedNow(instance) && !replacementOf(pool, instance)).length +
    new Set(left.map(({ record }) => record.ordinal)).size
  );
}

export function planStandby(pool: PoolSnapshot, budget: Budget, now: Instant, draft: Draft): void {
  // What was given away is refilled at the next look, which follows at once.
  if (draft.takesStandby()) return;
  const held = pool.instances.filter((instance) => isStandby(instance) && isHeld(instance) && !draft.givesUp(idOf(instance)));
  const wanted = standbyWanted(pool, held.length, now);
  if (held.length > wanted) return giveUp(pool, held, wanted, draft);
  if (pool.makesRoom > 0) draft.hold("", reason("standby_makes_room", { have: held.length, wanted }));
  renew(pool, held, draft);
  let coming = held.filter(({ record }) => record.phase !== "standby").length;
  for (let have = held.length; have < wanted; have += 1, coming += 1) {
    if (coming >= REFILLED_AT_ONCE) return draft.hold("", reason("standby_paced", { coming, have, wanted }));
    if (!refill(pool, have, budget, now, draft)) return;
  }
}

/** A pool that is being drained away keeps none; one that makes room for others refills nothing meanwhile. */
function standbyWanted(pool: PoolSnapshot, held: number, now: Instant): number {
  if (pool.deleting && pool.spec.deletion === "drain") return 0;
  if (pool.makesRoom === 0) return pool.spec.standby.count;
  const given = pool.failures.filter(({ failure, at }) => failure === MAKES_ROOM && at > now - ROOM_TAKEN_WITHIN_MS).length;
  return Math.min(pool.spec.standby.count, held - Math.max(0, pool.makesRoom - given));
}

/** The least useful first: of a former blueprint, not yet warm, the youngest. */
function giveUp(pool: PoolSnapshot, held: readonly InstanceSnapshot[], wanted: number, draft: Draft): void {
  const usefulness = (instance: InstanceSnapshot): number =>
    Number(instance.record.blueprintHash === pool.blueprintHash) * 2 + Number(instance.record.phase === "standby");
  const surplus = held
    .toSorted((a, b) => usefulness(a) - usefulness(b) || b.record.createdAt - a.record.createdAt || compareText(idOf(b), idOf(a)))
    .slice(0, held.length - wanted);
  for (const instance of surplus) {
    // One whose objects are being made this moment is given up once they are known.
    if (draft.hasDecisionFor(idOf(instance)) || instance.record.phase === "creating") continue;
    if (pool.makesRoom > 0) failStandby(instance, MAKES_ROOM, reason("standby_makes_room", { have: held.length, wanted }), draft);
    else failStandby(instance, NOT_WANTED, reason("standby_surplus", { have: held.length, wanted }), draft);
  }
}

/** One at a time, and only while no other is on its way: the cover is never given up all at once. */
function renew(pool: PoolSnapshot, held: readonly InstanceSnapshot[], draft: Draft): void {
  const outdated = held.filter(({ record }) => record.blueprintHash !== pool.blueprintHash);
  const unready = outdated.filter(({ record }) => record.phase !== "standby" && record.phase !== "creating");
  for (const instance of unready) outdate(instance, draft);
  if (unready.length > 0 || held.length < pool.spec.standby.count || held.some(({ record }) => record.phase !== "standby")) return;
  const [first] = outdated;
  if (first) outdate(first, draft);
}

function outdate(instance: InstanceSnapshot, draft: Draft): void {
  if (!draft.hasDecisionFor(idOf(instance))) failStandby(instance, OUTDATED, reason("standby_outdated"), draft);
}

/** False when it has to wait, with the reason told. */
function refill(pool: PoolSnapshot, have: number, budget: Budget, now: Instant, draft: Draft): boolean {
  const wanted = pool.spec.standby.count;
  const coming = pool.instances.filter((instance) => !isStandby(instance) && isCandidate(instance.record.phase) && !hasPlace(instance));
  if (coming.length + draft.added() > 0) {
    draft.hold("", reason("standby_waits", { candidates: coming.length + draft.added() }));
    return false;
  }
  const gate = standbyGate(pool, now);
  if (!gate.open) {
    draft.hold("", gate.reason, gate.until ?? undefined);
    return false;
  }
  if (!budget.takeStandbyRoom()) {
    const occupied = pool.instances.filter(isStandby).length;
    draft.hold("", reason("standby_room_used", { occupied, wanted }));
    return false;
  }
  draft.decide({
    kind: "add_instance",
    ordinal: NO_ORDINAL,
    purpose: "standby",
    replaces: null,
    reason: reason("standby_refill", { have, wanted }),
  });
  return true;
}

/** Its pods have their nodes: what is made after it takes no place from it. */
function hasPlace({ record, pods, podsWanted }: InstanceSnapshot): boolean {
  if (record.phase === "pending" || record.phase === "creating") return false;
  return pods.length >= podsWanted && pods.every(({ scheduledAt }) => scheduledAt !== null);
}

export function refillReason(pool: PoolSnapshot, instance: InstanceSnapshot): Reason {
  const have = pool.instances.filter((other) => isStandby(other) && isHeld(other) && idOf(other) !== idOf(instance)).length;
  return reason("standby_refill", { have, wanted: pool.spec.standby.count });
}

function failStandby({ record }: InstanceSnapshot, failure: string, why: Reason, draft: Draft): void {
  draft.decide({ kind: "move", instance: record.id, from: record.phase, to: "failed", failure, reason: why });
}
