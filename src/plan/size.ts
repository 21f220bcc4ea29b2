/**
 * As many instances as are desired (D12, I21). A place is free when nobody who stays or comes holds its ordinal; a replacement whose predecessor still
 * holds it is there on top. Repairs ask nothing of the disruption policy: they work in every mode.
 */
import type { Instant } from "../kernel/clock.ts";
import { reason } from "../model/reasons.ts";
import { capacityLimit } from "../model/pool.ts";
import type { Budget } from "./budget.ts";
import { candidateGate, fillGate, NOT_WANTED } from "./candidates.ts";
import { mayAct } from "./disruption.ts";
import type { Draft } from "./draft.ts";
import { sayUnsavable, turnOf } from "./evacuation/turn.ts";
import { indexOf } from "./pool-index.ts";
import { standbyFor } from "./standby.ts";
import type { InstanceSnapshot, PoolSnapshot } from "./snapshot.ts";
import {
  compareText,
  describeEvidence,
  gravestEvidence,
  idOf,
  isCondemned,
  isHeld,
  isRoutedNow,
  isServing,
  isStandby,
  isSurge,
  openStep,
  servingOf,
} from "./view.ts";

export function planSize(pool: PoolSnapshot, desired: number, budget: Budget, now: Instant, draft: Draft): void {
  const holders = pool.instances.filter((instance) => isHeld(instance) && !isStandby(instance) && !isSurge(pool, instance));
  const places = new Set(holders.map(({ record }) => record.ordinal));
  if (places.size < desired) fill(pool, places, desired, budget, now, draft);
  else if (holders.length > desired) shrink(pool, holders, desired, budget, draft);
}

function fill(pool: PoolSnapshot, taken: ReadonlySet<number>, desired: number, budget: Budget, now: Instant, draft: Draft): void {
  let missing = desired - taken.size;
  for (let ordinal = 0; missing > 0; ordinal += 1) {
    if (taken.has(ordinal)) continue;
    missing -= 1;
    fillPlace(pool, ordinal, desired, budget, now, draft);
  }
}

function fillPlace(pool: PoolSnapshot, ordinal: number, desired: number, budget: Budget, now: Instant, draft: Draft): void {
  const predecessor = lostHolder(pool, ordinal);
  const gate = predecessor ? candidateGate(pool, idOf(predecessor), now) : fillGate(pool, draft.fills(), now);
  if (!gate.open) return draft.hold(predecessor ? idOf(predecessor) : "", gate.reason, gate.until ?? undefined);
  const turn = turnOf(pool, predecessor ? idOf(predecessor) : "", now);
  if (!turn.mayGo) return draft.hold(predecessor ? idOf(predecessor) : "", turn.reason, turn.until ?? undefined);
  if (predecessor) sayUnsavable(pool, idOf(predecessor), draft);
  if (predecessor && turn.standby && standbyFor(pool, predecessor, draft)) return;
  if (!budget.takeRoom())
    return draft.hold("", reason("capacity_used", { occupied: pool.instances.length, allowed: capacityLimit(pool.spec) }));
  draft.decide({
    kind: "add_instance",
    ordinal,
    purpose: predecessor ? "replace" : "fill",
    replaces: predecessor ? idOf(predecessor) : null,
    reason: predecessor
      ? reason("replace_lost", { instance: idOf(predecessor), evidence: describeEvidence(gravestEvidence(predecessor)) })
      : reason("below_desired", { serving: servingOf(pool).length, desired }),
  });
}

/** Who held this ordinal and is leaving without a successor; the newest when there are several. */
function lostHolder(pool: PoolSnapshot, ordinal: number): InstanceSnapshot | undefined {
  return indexOf(pool)
    .byOrdinal.get(ordinal)
    ?.filter((instance) => !isHeld(instance) && instance.record.phase !== "failed" && instance.record.failure === null)
    .toSorted((a, b) => b.record.createdAt - a.record.createdAt || compareText(idOf(b), idOf(a)))[0];
}

/**
 * Those whose place another one holds too first, then those that take no traffic, then the condemned, then who has least to finish, then the highest ordinal.
 * Drains wait for a spare one like any other voluntary drain, and none has an end of its own: what a busy slot does is finished.
 */
function shrink(pool: PoolSnapshot, holders: readonly InstanceSnapshot[], desired: number, budget: Budget, draft: Draft): void {
  const shared = sharedPlaces(holders);
  const surplus = holders
    .toSorted(
      (a, b) =>
        Number(shared.has(b.record.ordinal)) - Number(shared.has(a.record.ordinal)) ||
        Number(isRoutedNow(a)) - Number(isRoutedNow(b)) ||
        Number(isCondemned(b)) - Number(isCondemned(a)) ||
        Number(isServing(a)) - Number(isServing(b)) ||
        compareWork(a, b) ||
        Number(b.lease.state === "none") - Number(a.lease.state === "none") ||
        b.record.ordinal - a.record.ordinal ||
        compareText(idOf(a), idOf(b)),
    )
    .slice(0, holders.length - desired);
  for (const instance of surplus) {
    if (draft.hasDecisionFor(idOf(instance)) || openStep(pool, idOf(instance), "drain_instance")) continue;
    if (!isRoutedNow(instance)) giveUp(instance, holders.length, desired, draft);
    else if (isServing(instance)) drainSurplus(pool, instance, desired, budget, draft);
    // One that no gateway has applied yet may never serve; a pool that goes does not wait for that.
    else if (pool.deleting) drainUnserved(pool, instance, desired, budget, draft);
  }
}

/**
 * Least busy first, and of those the one that has been stuck longest: what a stuck slot holds makes no progress here either, and a well instance stays in its place.
 * Who says nothing of slots comes after those that are known to do less.
 */
function compareWork(a: InstanceSnapshot, b: InstanceSnapshot): number {
  if (a.slots === null || b.slots === null) return Number(a.slots === null) - Number(b.slots === null);
  return a.slots.progressing - b.slots.progressing || b.slots.longestQuietMs - a.slots.longestQuietMs || a.slots.stuck - b.slots.stuck;
}

/** Ordinals that more than one holds. */
function sharedPlaces(holders: readonly InstanceSnapshot[]): ReadonlySet<number> {
  const held = new Set<number>();
  const shared = new Set<number>();
  for (const { record } of holders) (held.has(record.ordinal) ? shared : held).add(record.ordinal);
  return shared;
}

/** One that takes no traffic is just left: waiting until it serves, only to drain it, could take for ever. */
function giveUp({ record }: InstanceSnapshot, held: number, desired: number, draft: Draft): void {
  draft.decide({
    kind: "move",
    instance: record.id,
    from: record.phase,
    to: "failed",
    failure: NOT_WANTED,
    reason: reason("surplus_candidate", { held, desired }),
  });
}

function drainSurplus(pool: PoolSnapshot, instance: InstanceSnapshot, desired: number, budget: Budget, draft: Draft): void {
  // Its evidence was considered already, and why it has to wait is said there.
  if (isCondemned(instance) && mayAct(pool, instance)) return;
  if (!budget.hasSpare())
    return draft.hold(idOf(instance), reason("serving_not_above_desired", { serving: servingOf(pool).length, desired }));
  if (!budget.hasDrainSlot()) return draft.hold(idOf(instance), reason("draining_used", { draining: pool.spec.disruption.draining }));
  budget.takeVoluntaryDrain();
  decideDrain(pool, instance, desired, draft);
}

function drainUnserved(pool: PoolSnapshot, instance: InstanceSnapshot, desired: number, budget: Budget, draft: Draft): void {
  if (!budget.hasDrainSlot()) return draft.hold(idOf(instance), reason("draining_used", { draining: pool.spec.disruption.draining }));
  budget.takeDrainSlot();
  decideDrain(pool, instance, desired, draft);
}

function decideDrain(pool: PoolSnapshot, instance: InstanceSnapshot, desired: number, draft: Draft): void {
  draft.decide({
    kind: "drain_instance",
    instance: idOf(instance),
    incarnation: instance.record.incarnation.number,
    deadline: null,
    loss: "voluntary",
    reason: reason("above_desired", { serving: servingOf(pool).length, desired }),
  });
}
