/**
 * How an instance leaves: from its drain to the end of its objects. Nothing is sealed before every registered gateway replica has applied the drain's generation
 * and reports no obligation; only a sealed instance, or a candidate that never served, is deleted.
 */
import { formatInstant, type Instant } from "../kernel/clock.ts";
import { formatDuration } from "../kernel/units.ts";
import { reason } from "../model/reasons.ts";
import { isCluster } from "./cluster.ts";
import type { Draft } from "./draft.ts";
import type { GatewayState, InstanceSnapshot, PoolSnapshot } from "./snapshot.ts";
import { holdForStep } from "./step-hold.ts";
import { deadlineOf, describeEvidence, gravestEvidence, idOf, openStep } from "./view.ts";
import { isWorker, jobsOf, tiedTo, workerFinishes, workerSeal } from "./worker.ts";

/** A machine that is to be taken is taken within moments of its time. */
const SPARED_AFTER_MS = 60_000;

/** A read model that is in step shows what was made well within this. */
const OBJECTS_SEEN_WITHIN_MS = 10_000;

/** A first call for slots has ended by then; where there is nobody to be asked, that is known too. */
const ASKED_WITHIN_MS = 1_000;

export function seal(pool: PoolSnapshot, instance: InstanceSnapshot, now: Instant, draft: Draft): void {
  const { record, obligations, ownObligations } = instance;
  const generation = record.drainGeneration ?? pool.generation;
  const isLost = instance.newIncarnation !== null || instance.evidence.some(({ loss }) => loss === "forced");
  if (isWorker(pool)) return isLost ? sealLost(pool, instance, now, draft) : sealWorker(pool, instance, now, draft);
  const silent = pool.gateways.filter((gateway) => gateway.silent && (gateway.lostAt === null || record.createdAt <= gateway.lostAt));
  const behind = pool.gateways.filter((gateway) => !gateway.silent && !instance.drainAppliedEverywhere);
  if (behind.length > 0)
    return draft.hold(
      idOf(instance),
      reason("waiting_for_gateways", { replicas: behind.map(({ replica }) => replica).join(", "), generation }),
    );
  if (isLost) return sealLost(pool, instance, now, draft);

  const open = (obligations?.requests ?? 0) + (obligations?.sessions ?? 0) + (ownObligations ?? 0);
  const isDone = obligations !== null && open === 0;
  // A process that ended a moment ago has nothing any more either: only one that answers says that it finished what it had (D13).
  // Of a cluster its engine says it.
  const isOwnWordKnown = ownObligations !== null || pool.spec.service.protocol === "none";
  if (isDone && isOwnWordKnown && silent.length === 0) {
    return draft.decide({
      kind: "move",
      instance: idOf(instance),
      from: "draining",
      to: "sealed",
      seal: "confirmed",
      reason: reason("obligations_done", { generation }),
    });
  }
  if (isDone && silent.length > 0 && isOwnWordKnown) return shutDoor(pool, instance, silent, now, draft);
  if (sealedAtDeadline(instance, isCluster(pool) ? tiedTo(pool, instance) : open, now, draft)) return;
  holdDrain(pool, instance, now, draft);
}

function sealWorker(pool: PoolSnapshot, instance: InstanceSnapshot, now: Instant, draft: Draft): void {
  // Before it was told it may say that it has nothing, and take something a moment later.
  const isTold = openStep(pool, idOf(instance), "drain_instance") === undefined;
  const done = isTold ? workerSeal(pool, instance) : undefined;
  if (done !== undefined) return draft.decide({ kind: "move", instance: idOf(instance), from: "draining", to: "sealed", ...done });
  if (sealedAtDeadline(instance, jobsOf(instance), now, draft)) return;
  if (!isTold) holdForStep(pool, instance, "drain_instance", draft);
  if (instance.slotsAwaited) draft.lookAgainAt(now + ASKED_WITHIN_MS);
  holdDrain(pool, instance, now, draft);
}

/** A drain with a deadline has an end, also where the machine was spared after all: else whoever takes over would wait for it for ever. */
function sealedAtDeadline(instance: InstanceSnapshot, open: number, now: Instant, draft: Draft): boolean {
  const { drainLoss, drainDeadline } = instance.record;
  if (drainLoss !== "deadline" || drainDeadline === null) return false;
  const until = drainDeadline + SPARED_AFTER_MS;
  if (now < until) {
    draft.lookAgainAt(until);
    return false;
  }
  draft.decide({
    kind: "move",
    instance: idOf(instance),
    from: "draining",
    to: "sealed",
    seal: "forced",
    lostObligations: open,
    reason: reason("deadline_passed", { deadline: formatInstant(drainDeadline) }),
  });
  return true;
}

function sealLost(pool: PoolSnapshot, instance: InstanceSnapshot, now: Instant, draft: Draft): void {
  const { record } = instance;
  const deadline = record.drainDeadline;
  const endedByDeadline = record.drainLoss === "deadline" && deadline !== null && now >= deadline;
  draft.decide({
    kind: "move",
    instance: idOf(instance),
    from: "draining",
    to: "sealed",
    seal: "forced",
    lostObligations: tiedTo(pool, instance),
    ...(endedByDeadline ? {} : { drain: { loss: "forced", deadline } }),
    reason: reason("process_lost"),
  });
}

/** Without the word of a silent replica only a shut door at the instance keeps its requests out. */
function shutDoor(pool: PoolSnapshot, instance: InstanceSnapshot, silent: readonly GatewayState[], now: Instant, draft: Draft): void {
  const replicas = silent.map(({ replica }) => replica).toSorted();
  const why = reason("replica_silent", { replica: replicas.join(", "), ttl: "its TTL" });
  if (now < pool.settledAt)
    return draft.hold(idOf(instance), reason("observer_new", { until: formatInstant(pool.settledAt) }), pool.settledAt);
  if (!hasDoor(pool)) {
    // The end of the listener is its only door: what a replica that was given up still sends there is lost, and the seal says so.
    if (silent.some(({ lostAt }) => lostAt === null))
      return draft.hold(
        idOf(instance),
        reason("waiting_for_silent_replica", { replica: replicas.join(", "), protocol: pool.spec.service.protocol }),
      );
    return draft.decide({ kind: "move", instance: idOf(instance), from: "draining", to: "sealed", seal: "assumed", reason: why });
  }
  if (openStep(pool, idOf(instance), "close_instance")) return holdForStep(pool, instance, "close_instance", draft);
  draft.decide({
    kind: "close_instance",
    instance: idOf(instance),
    incarnation: instance.record.incarnation.number,
    reason: why,
  });
}

/** A coordinator cannot be shut down or drained by a call, and one that speaks no protocol hears none. */
function hasDoor({ spec }: PoolSnapshot): boolean {
  return spec.service.protocol === "relevo/v1";
}

function holdDrain(pool: PoolSnapshot, instance: InstanceSnapshot, now: Instant, draft: Draft): void {
  const overdueAt = (instance.record.drainSince ?? now) + pool.spec.disruption.drainFor;
  if (now >= overdueAt && deadlineOf(pool, instance) === null) {
    return draft.hold(idOf(instance), reason("drain_overdue", { drainFor: formatDuration(pool.spec.disruption.drainFor) }));
  }
  if (now < overdueAt) draft.lookAgainAt(overdueAt);
  if (isWorker(pool)) return draft.hold(idOf(instance), workerFinishes(instance));
  const requests = instance.obligations?.requests ?? "?";
  const sessions = instance.obligations ? Math.max(instance.obligations.sessions, instance.ownObligations ?? 0) : "?";
  draft.hold(idOf(instance), reason("drain_in_progress", { requests, sessions, evidence: describeEvidence(gravestEvidence(instance)) }));
}

export function remove(pool: PoolSnapshot, instance: InstanceSnapshot, draft: Draft): void {
  if (openStep(pool, idOf(instance), "delete_instance")) return holdForStep(pool, instance, "delete_instance", draft);
  draft.decide({ kind: "delete_instance", instance: idOf(instance), reason: reason("sealed") });
}

export function cleanUp(pool: PoolSnapshot, instance: InstanceSnapshot, draft: Draft): void {
  if (openStep(pool, idOf(instance), "delete_instance")) return holdForStep(pool, instance, "delete_instance", draft);
  // A create that nobody knows the end of must be known first, or its objects would outlive the instance.
  if (openStep(pool, idOf(instance), "create_instance")) return holdForStep(pool, instance, "create_instance", draft);
  draft.decide({
    kind: "delete_instance",
    instance: idOf(instance),
    reason: reason("candidate_failed", { failure: instance.record.failure ?? "unknown" }),
  });
}

/** What was made and deleted at once may look gone because it was never seen, and its pods end later than it. */
export function confirmAbsence(instance: InstanceSnapshot, now: Instant, draft: Draft): void {
  const { createdAt } = instance.record;
  const until = createdAt + OBJECTS_SEEN_WITHIN_MS;
  // A clock that was set back since keeps nobody.
  const mayBeUnseen = now >= createdAt && now < until;
  if (instance.objectsGone === true && !mayBeUnseen)
    draft.decide({ kind: "move", instance: idOf(instance), from: "retired", to: "deleted", reason: reason("gone") });
  else draft.hold(idOf(instance), reason("awaiting_absence"), ...(mayBeUnseen ? [until] : []));
}
