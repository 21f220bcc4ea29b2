/**
 * Which instances must make way because the capacity under them goes (D3–D7, D10, D11, S4).
 *
 * 1. Evidence that is recorded is acted upon, whatever later looks say (D10); only `disruption.mode` Act begins a replacement, and one that was begun is
 *    finished in any mode.
 * 2. A voluntary drain waits until more instances serve than are desired (I5), one for each spare one.
 * 3. A deadline waits for its replacement only as long as the drain keeps its time before the deadline.
 * 4. A node is cordoned only with a complete inventory (`inventory.ts`) and no error, and only the very node that the evidence names (I6).
 * 5. Every instance that is left alone gets a reason (D11).
 */
import type { Instant } from "../kernel/clock.ts";
import { formatInstant } from "../kernel/clock.ts";
import { reason, sentenceOf, type Reason } from "../model/reasons.ts";
import { capacityLimit } from "../model/pool.ts";
import type { Budget } from "./budget.ts";
import { candidateGate } from "./candidates.ts";
import { cordonNodes } from "./cordon.ts";
import type { Draft } from "./draft.ts";
import { planMembers } from "./members.ts";
import { indexOf } from "./pool-index.ts";
import { sayUnsavable, turnOf } from "./evacuation/turn.ts";
import { standbyFor } from "./standby.ts";
import type { InstanceSnapshot, PoolSnapshot } from "./snapshot.ts";
import {
  compareUrgency,
  deadlineOf,
  describeEvidence,
  gravestEvidence,
  idOf,
  isCondemned,
  isHeld,
  isRoutedNow,
  isServing,
  replacementOf,
  servingOf,
  succeededOf,
} from "./view.ts";

export function planDisruption(pool: PoolSnapshot, desired: number, budget: Budget, now: Instant, draft: Draft): void {
  for (const instance of pool.instances) {
    if (instance.record.phase === "draining") hasten(pool, instance, draft);
    if (mayAct(pool, instance)) protect(pool, instance, draft);
    planMembers(pool, instance, now, draft);
    unprotect(pool, instance, draft);
  }
  for (const instance of pool.instances.filter(isCondemned).toSorted(compareUrgency))
    planCondemned(pool, instance, desired, budget, now, draft);
}

/** D1, D10: an accepted replacement is finished in any mode; so is what an operator asked for and what is lost already. */
export function mayAct(pool: PoolSnapshot, instance: InstanceSnapshot): boolean {
  if (pool.spec.disruption.mode === "Act") return true;
  if (instance.evidence.some(({ reason: why, loss }) => why === "operator_drain" || loss === "forced")) return true;
  return instance.record.phase === "draining" || wasReplacementBegun(pool, instance);
}

/** Also one whose candidates all failed so far: what was begun goes on with the next. */
function wasReplacementBegun(pool: PoolSnapshot, instance: InstanceSnapshot): boolean {
  const { replacing, failedFor } = indexOf(pool);
  return replacing.has(idOf(instance)) || failedFor.has(idOf(instance));
}

function planCondemned(pool: PoolSnapshot, instance: InstanceSnapshot, desired: number, budget: Budget, now: Instant, draft: Draft): void {
  if (!mayAct(pool, instance)) {
    if (isHeld(instance)) draft.hold(idOf(instance), passive(pool, instance));
    return;
  }
  if (pool.spec.disruption.mode === "Act") cordonNodes(pool, instance, instance.evidence, draft);
  // A candidate that never took traffic is given up by the lifecycle when its place is unsafe; what is leaving already goes on by itself.
  if (!isRoutedNow(instance)) return void loseCandidate(instance, draft);

  const isForced = instance.evidence.some(({ loss }) => loss === "forced");
  if (isForced) return drain(instance, "drain_forced", null, budget, draft);
  if (!replacementOf(pool, instance) && budget.isShort()) requestReplacement(pool, instance, budget, now, draft);
  if (isServing(instance)) considerDrain(pool, instance, desired, budget, now, draft);
}

function passive(pool: PoolSnapshot, instance: InstanceSnapshot): Reason {
  if (pool.spec.disruption.mode === "Off") return reason("mode_off");
  return reason("mode_observe", {
    would: sentenceOf(reason("replace_condemned", { instance: idOf(instance), evidence: describeEvidence(gravestEvidence(instance)) })),
  });
}

function loseCandidate(instance: InstanceSnapshot, draft: Draft): void {
  const { phase } = instance.record;
  if (phase !== "preparing" && phase !== "validating" && phase !== "standby") return;
  if (draft.hasDecisionFor(idOf(instance))) return;
  const failure = `evidence_${gravestEvidence(instance)?.reason ?? "unknown"}`;
  draft.decide({
    kind: "move",
    instance: idOf(instance),
    from: phase,
    to: "failed",
    failure,
    reason: reason("candidate_failed", { failure }),
  });
}

function requestReplacement(pool: PoolSnapshot, instance: InstanceSnapshot, budget: Budget, now: Instant, draft: Draft): void {
  const isVoluntary = gravestEvidence(instance)?.loss === "voluntary";
  const gate = candidateGate(pool, idOf(instance), now);
  if (!gate.open) return draft.hold(idOf(instance), gate.reason, gate.until ?? undefined);
  if (isVoluntary && !budget.hasSurge()) return draft.hold(idOf(instance), reason("surge_used", { surge: pool.spec.disruption.surge }));
  const turn = turnOf(pool, idOf(instance), now);
  if (!turn.mayGo) return draft.hold(idOf(instance), turn.reason, turn.until ?? undefined);
  sayUnsavable(pool, idOf(instance), draft);
  if (turn.standby && standbyFor(pool, instance, draft)) {
    if (isVoluntary) budget.takeSurge();
    return budget.takeShortage();
  }
  if (!budget.takeRoom())
    return draft.hold(idOf(instance), reason("capacity_used", { occupied: pool.instances.length, allowed: capacityLimit(pool.spec) }));
  if (isVoluntary) budget.takeSurge();
  budget.takeShortage();
  draft.decide({
    kind: "add_instance",
    ordinal: instance.record.ordinal,
    purpose: "replace",
    replaces: idOf(instance),
    reason: reason("replace_condemned", { instance: idOf(instance), evidence: describeEvidence(gravestEvidence(instance)) }),
  });
}

function considerDrain(pool: PoolSnapshot, instance: InstanceSnapshot, desired: number, budget: Budget, now: Instant, draft: Draft): void {
  const replacement = replacementOf(pool, instance);
  const deadline = deadlineOf(pool, instance);
  if (deadline === null) {
    if (!budget.hasSpare()) return draft.hold(idOf(instance), waiting(pool, instance, desired));
    if (!budget.hasDrainSlot()) return draft.hold(idOf(instance), reason("draining_used", { draining: pool.spec.disruption.draining }));
    budget.takeVoluntaryDrain();
    return drainInstance(
      instance,
      null,
      draft,
      reason("drain_voluntary", {
        serving: servingOf(pool).length,
        desired,
        instance: idOf(instance),
        evidence: describeEvidence(gravestEvidence(instance)),
      }),
    );
  }
  const latestStart = deadline - pool.spec.disruption.drainLead;
  const isReplaced = replacement !== undefined && isServing(replacement);
  const canGo = isReplaced || now >= latestStart || (budget.hasSpare() && budget.spare() > promisedToOthers(pool, instance, draft));
  if (!canGo) {
    draft.hold(idOf(instance), waiting(pool, instance, desired), latestStart);
    return;
  }
  drain(instance, "drain_deadline", deadline, budget, draft);
}

/** Serving ones that are the successors of others which have not left yet: whoever goes by one of these leaves too few when its own predecessor goes. */
function promisedToOthers(pool: PoolSnapshot, instance: InstanceSnapshot, draft: Draft): number {
  return succeededOf(pool).filter((other) => idOf(other) !== idOf(instance) && !draft.hasDecisionFor(idOf(other))).length;
}

function waiting(pool: PoolSnapshot, instance: InstanceSnapshot, desired: number): Reason {
  const replacement = replacementOf(pool, instance);
  if (replacement && !isServing(replacement))
    return reason("waiting_for_replacement", { instance: idOf(instance), replacement: idOf(replacement), phase: replacement.record.phase });
  return reason("serving_not_above_desired", { serving: servingOf(pool).length, desired });
}

function drain(
  instance: InstanceSnapshot,
  code: "drain_forced" | "drain_deadline",
  deadline: Instant | null,
  budget: Budget,
  draft: Draft,
): void {
  if (isServing(instance)) budget.takeServing();
  const evidence = describeEvidence(gravestEvidence(instance));
  drainInstance(instance, deadline, draft, reason(code, { evidence, deadline: deadline === null ? "?" : formatInstant(deadline) }));
}

function drainInstance(instance: InstanceSnapshot, deadline: Instant | null, draft: Draft, why: Reason): void {
  if (draft.hasDecisionFor(idOf(instance))) return;
  draft.decide({
    kind: "drain_instance",
    instance: idOf(instance),
    incarnation: instance.record.incarnation.number,
    deadline,
    loss: gravestEvidence(instance)?.loss ?? "voluntary",
    reason: why,
  });
}

/** A deadline that became known while the instance drains: the drain now has an end, and the instance must hear of it. */
function hasten(pool: PoolSnapshot, instance: InstanceSnapshot, draft: Draft): void {
  const deadline = deadlineOf(pool, instance);
  const loss = gravestEvidence(instance)?.loss;
  if (deadline === null || loss === undefined || loss === "forced") return;
  const known = instance.record.drainDeadline;
  if (known !== null && known <= deadline) return;
  draft.decide({
    kind: "drain_instance",
    instance: idOf(instance),
    incarnation: instance.record.incarnation.number,
    deadline,
    loss,
    reason: reason("drain_deadline", { deadline: formatInstant(deadline), evidence: describeEvidence(gravestEvidence(instance)) }),
  });
}

/** Only pods whose owners lead by UID to what Relevo made, and only while a node's owner could take them for a voluntary reason (D2). */
function protect(pool: PoolSnapshot, instance: InstanceSnapshot, draft: Draft): void {
  if (pool.spec.disruption.mode !== "Act" || !(isHeld(instance) || instance.record.phase === "draining")) return;
  for (const pod of instance.pods) {
    if (!pod.owned || pod.protectedByUs || pod.deleting || pod.node === null) continue;
    if (openSteps(pool, instance).some(({ id }) => id.startsWith(`protect/${pod.uid}`))) continue;
    draft.decide({
      kind: "protect_pod",
      instance: idOf(instance),
      pod: { name: pod.name, uid: pod.uid },
      reason: reason("protect_pod", { pod: pod.name }),
    });
  }
}

/** A pod that its owner let go is somebody else's to disrupt: what we set is taken off, whatever becomes of the instance (D2). */
function unprotect(pool: PoolSnapshot, instance: InstanceSnapshot, draft: Draft): void {
  if (pool.spec.disruption.mode !== "Act") return;
  for (const pod of instance.pods) {
    if (!pod.foreign || !pod.protectedByUs || pod.deleting) continue;
    if (openSteps(pool, instance).some(({ id }) => id.startsWith(`unprotect/${pod.uid}`))) continue;
    draft.decide({
      kind: "unprotect_pod",
      instance: idOf(instance),
      pod: { name: pod.name, uid: pod.uid },
      reason: reason("unprotect_pod", { pod: pod.name }),
    });
  }
}

function openSteps(pool: PoolSnapshot, instance: InstanceSnapshot): PoolSnapshot["openSteps"] {
  return indexOf(pool).steps.get(idOf(instance)) ?? [];
}
