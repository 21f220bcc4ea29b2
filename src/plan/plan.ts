/**
 * The planner: one pool's snapshot in, decisions and reasons out. Pure; the clock is an argument.
 *
 *   evidence → lifecycle of each instance → disruption → size → who may write → what holds it all back
 */
import type { Instant } from "../kernel/clock.ts";
import { formatInstant } from "../kernel/clock.ts";
import { isCandidate, isLeaving } from "../model/phase.ts";
import { reason, sentenceOf } from "../model/reasons.ts";
import { deedOf, nameOfOwner } from "../model/scale-owner.ts";
import { Budget } from "./budget.ts";
import type { Effect, Move, Plan } from "./decision.ts";
import { planDisruption } from "./disruption.ts";
import { Draft } from "./draft.ts";
import { planEvidence } from "./evidence.ts";
import { planLifecycle } from "./lifecycle.ts";
import { planScaling } from "./scaling/plan-scaling.ts";
import { planTarget } from "./scaling/target.ts";
import { sizeOf } from "./scaling/size-of.ts";
import { planSize } from "./size.ts";
import { planStandby } from "./standby.ts";
import { planStrangers } from "./strangers.ts";
import { planTrust } from "./trust.ts";
import { planWriter } from "./writer.ts";
import type { PoolSnapshot } from "./snapshot.ts";
import { compareText, idOf } from "./view.ts";

export function planPool(seen: PoolSnapshot, now: Instant): Plan {
  const pool = inOrder(seen);
  const draft = new Draft();
  if (pool.rewound) {
    draft.hold("", reason("store_rewound", { ...pool.rewound, stored: pool.rewound.stored ?? "none" }));
    return draft.finish();
  }
  const awaitedUntil = pool.witnessesAwaitedUntil;
  if (awaitedUntil !== null && now < awaitedUntil) {
    draft.hold("", reason("observer_new", { until: formatInstant(awaitedUntil) }), awaitedUntil);
    return draft.finish();
  }
  if (pool.deleting && pool.spec.deletion === "orphan") {
    draft.hold("", reason("pool_orphaned"));
    return draft.finish();
  }
  if (pool.freeze && now < pool.freeze.until) return planFrozen(pool, now, draft);

  planAll(pool, now, draft);
  return draft.finish();
}

/** Whatever the order in which things were seen, they are looked at in one order (I17). */
function inOrder(pool: PoolSnapshot): PoolSnapshot {
  const instances = pool.instances.toSorted((a, b) => compareText(idOf(a), idOf(b)));
  return {
    ...pool,
    instances: instances.map((instance) =>
      instance.pods.length < 2 ? instance : { ...instance, pods: instance.pods.toSorted((a, b) => compareText(a.uid, b.uid)) },
    ),
  };
}

function planAll(pool: PoolSnapshot, now: Instant, draft: Draft): void {
  const desired = desiredOf(pool, now, draft);
  const budget = Budget.of(pool, desired);
  planEvidence(pool, now, draft);
  for (const instance of pool.instances) {
    planTrust(pool, instance, draft);
    planLifecycle(pool, instance, now, draft);
  }
  planDisruption(pool, desired, budget, now, draft);
  planSize(pool, desired, budget, now, draft);
  planStandby(pool, budget, now, draft);
  planWriter(pool, now, draft);
  planStrangers(pool, now, draft);
  if (pool.brake)
    draft.hold(
      "",
      reason("brake", { suspect: pool.brake.suspect, total: pool.brake.total, site: pool.spec.sites[0] ?? "?", window: "60s" }),
    );
  if (pool.leaseBrake && pool.spec.state.lease) draft.hold("", reason("lease_brake", { ...pool.leaseBrake, window: "60s" }));
  if (draft.isIdle()) draft.hold("", reason("nothing_to_do"));
}

function desiredOf(pool: PoolSnapshot, now: Instant, draft: Draft): number {
  if (pool.deleting && pool.spec.deletion === "drain") return 0;
  if (pool.deleting)
    draft.hold("", reason("deletion_refused", { live: pool.instances.filter(({ record }) => !isLeaving(record.phase)).length }));
  // Of a target nothing but its size is this pool's, and instances that it had before have no place any more.
  if (pool.spec.target !== undefined) {
    planTarget(pool, now, draft);
    return 0;
  }
  if (tellOtherOwners(pool, draft)) return sizeOf(pool);
  return planScaling(pool, now, draft);
}

/** Whether somebody else sets the count of a workload of ours: as long as that is so, the size stays (I20). */
function tellOtherOwners({ scaleOwners = [] }: PoolSnapshot, draft: Draft): boolean {
  for (const { workload, owner } of scaleOwners)
    draft.hold("", reason("scale_other_owner", { owner: nameOfOwner(owner), target: workload, deed: deedOf(owner) }));
  return scaleOwners.length > 0;
}

/**
 * No new decisions: what is seen is still written down, processes are still told apart, and who was promised a deadline still moves, with its
 * replacement.
 */
function planFrozen(pool: PoolSnapshot, now: Instant, draft: Draft): Plan {
  const all = new Draft();
  planAll(pool, now, all);
  const { decisions, nextLookAt, recommendation } = all.finish();
  draft.recommend(recommendation);
  const bound = new Set(pool.instances.filter(({ evidence }) => evidence.some(({ loss }) => loss === "deadline")).map(idOf));
  // One whose predecessor is gone by now was promised to whoever needed it.
  const there = new Set(pool.instances.map(idOf));
  for (const { record } of pool.instances)
    if (
      record.replaces !== null &&
      (bound.has(record.replaces) || (!there.has(record.replaces) && (isCandidate(record.phase) || record.phase === "standby")))
    )
      bound.add(record.id);
  for (const decision of decisions) if (isAcceptedWhileFrozen(decision, bound)) draft.decide(decision);
  planWriter(pool, now, draft);
  // The latest start of a drain with a deadline comes also while the pool is frozen.
  if (nextLookAt !== null) draft.lookAgainAt(nextLookAt);
  tellFreeze(pool, draft);
  return draft.finish();
}

/** What holds it because nobody knows why it is deleted is told by that reason: nobody asked for a freeze. */
function tellFreeze({ freeze, deletionCauseUnknown: found }: PoolSnapshot, draft: Draft): void {
  const unknown = found === undefined ? undefined : reason("deletion_cause_unknown", { found });
  if (unknown !== undefined) draft.hold("", unknown, freeze?.until);
  if (freeze === null || (unknown !== undefined && freeze.why === sentenceOf(unknown))) return;
  draft.hold("", reason("frozen", { until: formatInstant(freeze.until), why: freeze.why }), freeze.until);
}

function isAcceptedWhileFrozen(decision: Effect | Move, bound: ReadonlySet<string>): boolean {
  switch (decision.kind) {
    case "record_evidence":
    case "renew_incarnation":
    case "trust":
    // Only ever for a deadline.
    case "drain_member":
    case "replace_member":
      return true;
    case "add_instance":
      return decision.replaces !== null && bound.has(decision.replaces);
    case "take_standby":
      return bound.has(decision.replaces);
    case "cordon_node":
    case "protect_pod":
    case "unprotect_pod":
    // Who may write follows from what of the plan is accepted, and is decided after that.
    case "pass_writer":
    case "set_desired":
    case "scale_target":
      return false;
    default:
      return bound.has(decision.instance);
  }
}
