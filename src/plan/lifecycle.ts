/**
 * How each instance goes on by itself, phase by phase (D5, D7, D8, D13). Who shall come and who shall go is decided elsewhere (`size`, `disruption`).
 *
 * 1. A new process goes through preparing to admission again; what was tied to the old one is a forced loss.
 * 2. Nothing is admitted before its own health check passed (I11), on a node that is not about to go (D7).
 * 3. How it leaves is in `departure.ts`.
 */
import { type Instant } from "../kernel/clock.ts";
import { formatDuration } from "../kernel/units.ts";
import { isLeaving, isRouted } from "../model/phase.ts";
import { ANYWHERE, isAnywhere, type Placement } from "../model/placement.ts";
import type { PlacementTrouble } from "../model/pod-loss.ts";
import { reason, type Reason } from "../model/reasons.ts";
import type { Draft } from "./draft.ts";
import { sizeOf } from "./scaling/size-of.ts";
import type { InstanceSnapshot, PoolSnapshot } from "./snapshot.ts";
import { refillReason } from "./standby.ts";
import { isCluster, isMember, readyPods } from "./cluster.ts";
import { beginWork, isWorker, tiedTo } from "./worker.ts";
import { waitsForFence } from "./writer.ts";
import { describeEvidence, gravestEvidence, idOf, isStandby, openStep, predecessorOf, servingOf, unsafety } from "./view.ts";
import { cleanUp, confirmAbsence, remove, seal } from "./departure.ts";
import { holdForStep } from "./step-hold.ts";

/** A node is often seen before its NodeClaim names it: that is convergence (D8), for so long. */
const OWNER_KNOWN_WITHIN_MS = 10_000;

/** How long one waits for a place away from dying capacity: a cloud's node start. */
const PLACED_WITHIN_MS = 60_000;
/** The same, once what it waits for is not advised any more: on demand there was no capacity either. */
const OUT_OF_REACH_MS = 5_000;

const NO_PLACE = "no_place";

const NO_CAPACITY: Readonly<Record<PlacementTrouble["kind"], string>> = {
  quota: "a quota is used up",
  capacity: "the cloud has none to give",
  limit: "a limit that somebody set is reached",
  resource: "no node has enough left",
};

export function planLifecycle(pool: PoolSnapshot, instance: InstanceSnapshot, now: Instant, draft: Draft): void {
  const { phase } = instance.record;
  switch (phase) {
    case "pending":
      return create(pool, instance, draft);
    case "creating":
      return awaitCreation(pool, instance, draft);
    case "preparing":
      return prepare(pool, instance, now, draft);
    case "validating":
      return validate(pool, instance, now, draft);
    case "standby":
      return isStandby(instance) ? keepStandby(pool, instance, now, draft) : admitStandby(pool, instance, now, draft);
    case "admitted":
      return beginServing(pool, instance, draft);
    case "serving":
      return keepServing(pool, instance, draft);
    case "draining":
      return seal(pool, instance, now, draft);
    case "sealed":
      return remove(pool, instance, draft);
    case "failed":
      return cleanUp(pool, instance, draft);
    case "retiring":
      return remove(pool, instance, draft);
    case "retired":
      return confirmAbsence(instance, now, draft);
    case "deleted":
      return;
    default:
      phase satisfies never;
  }
}

function create(pool: PoolSnapshot, instance: InstanceSnapshot, draft: Draft): void {
  if (openStep(pool, idOf(instance), "create_instance")) return;
  const placement = placementFor(pool, instance);
  draft.decide({
    kind: "create_instance",
    instance: idOf(instance),
    ...(isAnywhere(placement) ? {} : { placement }),
    reason: whyCreated(pool, instance),
  });
}

/** Away from where capacity is dying; where that led to no place, the next one may go to any node that is not announced to go. */
function placementFor(pool: PoolSnapshot, { record }: InstanceSnapshot): Placement {
  const hadNoPlace = pool.failures.some(
    ({ failure, replaces, purpose }) => failure === NO_PLACE && replaces === record.replaces && purpose === record.purpose,
  );
  const { nodes } = pool.placement.avoid;
  return hadNoPlace ? { ...ANYWHERE, avoid: { ...ANYWHERE.avoid, nodes } } : pool.placement;
}

function whyCreated(pool: PoolSnapshot, instance: InstanceSnapshot): Reason {
  if (isStandby(instance)) return refillReason(pool, instance);
  const predecessor = predecessorOf(pool, instance);
  if (!predecessor) return reason("below_desired", { serving: servingOf(pool).length, desired: sizeOf(pool) });
  const why = isLeaving(predecessor.record.phase) ? "replace_lost" : "replace_condemned";
  return reason(why, { instance: idOf(predecessor), evidence: describeEvidence(gravestEvidence(predecessor)) });
}

/** A create that ended without its consequences (an operator released it) leaves nobody who goes on: what it made is cleaned up. */
function awaitCreation(pool: PoolSnapshot, instance: InstanceSnapshot, draft: Draft): void {
  if (openStep(pool, idOf(instance), "create_instance")) holdForStep(pool, instance, "create_instance", draft);
  else fail(instance, "create_ended", draft);
}

function prepare(pool: PoolSnapshot, instance: InstanceSnapshot, now: Instant, draft: Draft): void {
  if (renewed(pool, instance, draft) || failedOnUnsafeNode(pool, instance, now, draft) || failedByAbsence(instance, draft)) return;
  const scheduled = instance.pods.filter((pod) => pod.scheduledAt !== null);
  if (instance.pods.length < instance.podsWanted || scheduled.length < instance.pods.length) return awaitPlace(pool, instance, now, draft);
  const ready = instance.pods.filter((pod) => pod.ready && !pod.deleting);
  if (ready.length >= instance.podsWanted && instance.record.incarnation.number > 0) {
    return draft.decide({ kind: "move", instance: idOf(instance), from: "preparing", to: "validating", reason: reason("prepared") });
  }
  const placedAt = Math.max(...scheduled.map((pod) => pod.scheduledAt ?? 0), instance.record.phaseSince);
  if (failedByTime(pool, instance, placedAt, now, draft)) return;
  draft.hold(idOf(instance), reason("waiting_for_pods", { ready: ready.length, wanted: instance.podsWanted }));
}

/** One that was kept away from dying capacity and finds no place elsewhere is given up: sooner when on demand, too, has none. */
function awaitPlace(pool: PoolSnapshot, instance: InstanceSnapshot, now: Instant, draft: Draft): void {
  const trouble = instance.pods.map(({ uid }) => pool.noPlace?.get(uid)).find((each) => each !== undefined);
  const known = trouble && reason("no_capacity", { what: NO_CAPACITY[trouble.kind], dimension: trouble.dimension });
  const kept = instance.pods.find(({ placement, scheduledAt }) => placement !== null && scheduledAt === null);
  if (kept) {
    const isOutOfReach = kept.placement?.capacityType === "on-demand" && pool.placement.capacityType !== "on-demand";
    const until = instance.record.phaseSince + (isOutOfReach ? OUT_OF_REACH_MS : PLACED_WITHIN_MS);
    if (now >= until) return fail(instance, NO_PLACE, draft);
    const elsewhere = reason("waiting_for_schedule_elsewhere", { placement: describePlacement(kept.placement) });
    return draft.hold(idOf(instance), known ?? elsewhere, until);
  }
  draft.hold(idOf(instance), known ?? reason("waiting_for_schedule"));
}

function describePlacement(placement: Placement | null): string {
  if (placement === null) return "";
  const { avoid, capacityType } = placement;
  return [
    ...(avoid.zones.length === 0 ? [] : [`not in ${avoid.zones.join(", ")}`]),
    ...(avoid.instanceTypes.length === 0 ? [] : [`not on ${avoid.instanceTypes.join(", ")}`]),
    ...(avoid.nodes.length === 0 ? [] : [`not on ${avoid.nodes.length} nodes that go`]),
    ...(capacityType === null ? [] : [`on ${capacityType} capacity`]),
  ].join(", ");
}

function validate(pool: PoolSnapshot, instance: InstanceSnapshot, now: Instant, draft: Draft): void {
  if (renewed(pool, instance, draft) || failedOnUnsafeNode(pool, instance, now, draft)) return;
  // Also while its admission is being tried: one that never answers must not stay a candidate for ever.
  if (failedByTime(pool, instance, instance.record.phaseSince, now, draft)) return;
  letOn(pool, instance, isStandby(instance) ? "prepare_instance" : "admit_instance", draft);
}

/** A standby that was taken: from now on it is a candidate like any other, but warm. One that is not well is given up at once, and the next is tried. */
function admitStandby(pool: PoolSnapshot, instance: InstanceSnapshot, now: Instant, draft: Draft): void {
  if (renewed(pool, instance, draft) || failedOnUnsafeNode(pool, instance, now, draft)) return;
  if (instance.health.state === "failing") return fail(instance, "standby_unhealthy", draft);
  if (failedByTime(pool, instance, instance.record.phaseSince, now, draft)) return;
  letOn(pool, instance, "admit_instance", draft);
}

function letOn(pool: PoolSnapshot, instance: InstanceSnapshot, kind: "prepare_instance" | "admit_instance", draft: Draft): void {
  if (openStep(pool, idOf(instance), kind)) return holdForStep(pool, instance, kind, draft);
  if (instance.health.state !== "passing") return draft.hold(idOf(instance), reason("waiting_for_health"));
  const fence = kind === "admit_instance" ? waitsForFence(pool, instance) : undefined;
  if (fence) return draft.hold(idOf(instance), fence);
  const { number: incarnation } = instance.record.incarnation;
  draft.decide({
    kind,
    instance: idOf(instance),
    incarnation,
    reason: reason(kind === "admit_instance" ? "validated" : "standby_prepare"),
  });
}

/** One that is not well is not taken; one that stays so counts as lost like any other, and is made anew. */
function keepStandby(pool: PoolSnapshot, instance: InstanceSnapshot, now: Instant, draft: Draft): void {
  if (renewed(pool, instance, draft)) return;
  // What is found against its node becomes evidence, which keeps the next one away from there too.
  const isFound = instance.pods.some(({ node, owned }) => owned && node !== null && node.findings.length > 0);
  if (!isFound && failedOnUnsafeNode(pool, instance, now, draft)) return;
  if (failedByAbsence(instance, draft)) return;
  const { health } = instance;
  if (health.state === "passing") return draft.hold(idOf(instance), reason("standby_ready"));
  if (health.state === "unknown") return draft.hold(idOf(instance), reason("waiting_for_health"));
  const limit = formatDuration(pool.spec.disruption.unreachableAfter);
  draft.hold(idOf(instance), reason("standby_unhealthy", { code: health.code, limit }));
}

/** The first process of a new instance, or another one in the place of the one that was known. */
function renewed(pool: PoolSnapshot, instance: InstanceSnapshot, draft: Draft): boolean {
  const { record, newIncarnation } = instance;
  if (!newIncarnation) return false;
  draft.decide({
    kind: "renew_incarnation",
    instance: idOf(instance),
    after: record.incarnation.number,
    incarnation: newIncarnation,
    phase: record.phase,
    lostObligations: isRouted(record.phase) ? tiedTo(pool, instance) : null,
    reason: reason("new_incarnation", { incarnation: record.incarnation.number + 1 }),
  });
  return true;
}

/**
 * Only one that takes no traffic is given up for its place: one that serves has obligations and goes by evidence. Without mode Act nothing that is seen of
 * nodes causes a change (D1): with every node drifting a pool that only observes could else not be repaired.
 */
function failedOnUnsafeNode(pool: PoolSnapshot, instance: InstanceSnapshot, now: Instant, draft: Draft): boolean {
  const { mode, provisioners } = pool.spec.disruption;
  if (mode !== "Act") return false;
  for (const pod of instance.pods) {
    const { node, owned, scheduledAt } = pod;
    const why = owned && node ? unsafety(node, provisioners) : undefined;
    if (!node || !why || why === "not_ready") continue;
    if (why === "about_to_go" && isMember(pool, pod) && node.findings.every(({ loss }) => loss === "deadline")) continue; // it is made anew elsewhere
    const knownAt = (scheduledAt ?? now) + OWNER_KNOWN_WITHIN_MS;
    if (why === "owner_unknown" && now < knownAt) {
      draft.hold(idOf(instance), reason("node_owner_unknown", { node: node.name, provisioners: provisioners.join(", ") }), knownAt);
      return true;
    }
    // Owners that cannot be read are no owners that are unknown: that must not keep a lost instance from being replaced (D12).
    if (why === "owner_unknown" && isOfOwnersOnly(pool)) continue;
    fail(instance, `node_${why}`, draft);
    return true;
  }
  return false;
}

/** Somebody deleted its objects, or the cluster lost them: no pod will ever come. */
function failedByAbsence(instance: InstanceSnapshot, draft: Draft): boolean {
  if (instance.objectsGone !== true) return false;
  fail(instance, "objects_gone", draft);
  return true;
}

function failedByTime(pool: PoolSnapshot, instance: InstanceSnapshot, since: Instant, now: Instant, draft: Draft): boolean {
  const until = since + pool.spec.disruption.candidates.readyWithin;
  if (now < until) {
    draft.lookAgainAt(until);
    return false;
  }
  // While the cluster cannot be read, what is known of its pods is old: that is no failure of the candidate (D12).
  if (pool.inventory.state === "error" && !isOfOwnersOnly(pool)) return false;
  fail(instance, "not_ready_in_time", draft);
  return true;
}

function isOfOwnersOnly({ inventory }: PoolSnapshot): boolean {
  return inventory.state === "error" && inventory.isOfOwnersOnly === true;
}

function fail(instance: InstanceSnapshot, failure: string, draft: Draft): void {
  draft.decide({
    kind: "move",
    instance: idOf(instance),
    from: instance.record.phase,
    to: "failed",
    failure,
    reason: reason("candidate_failed", { failure }),
  });
}

function beginServing(pool: PoolSnapshot, instance: InstanceSnapshot, draft: Draft): void {
  if (loseProcess(pool, instance, draft)) return;
  if (isWorker(pool)) return beginWork(instance, draft);
  const generation = instance.record.admittedGeneration ?? pool.generation;
  const registered = pool.gateways.filter(({ silent }) => !silent);
  if (registered.length === 0) return draft.hold(idOf(instance), reason("waiting_for_first_gateway"));
  if (!instance.appliedEverywhere) {
    return draft.hold(
      idOf(instance),
      reason("waiting_for_gateways", { replicas: registered.map(({ replica }) => replica).join(", "), generation }),
    );
  }
  draft.decide({
    kind: "move",
    instance: idOf(instance),
    from: "admitted",
    to: "serving",
    reason: reason("applied_everywhere", { generation }),
  });
}

function keepServing(pool: PoolSnapshot, instance: InstanceSnapshot, draft: Draft): void {
  if (loseProcess(pool, instance, draft)) return;
  if (instance.evidence.length > 0) return;
  const ready = readyPods(instance);
  // A cluster that lost a member serves on; the member's own workload makes it anew.
  const isWhole = !isCluster(pool) || ready >= instance.podsWanted;
  draft.hold(idOf(instance), isWhole ? reason("serving") : reason("serving_without_members", { ready, wanted: instance.podsWanted }));
}

/** The admitted process is not there any more, and another one is: the same instance, prepared and admitted anew. */
function loseProcess(pool: PoolSnapshot, instance: InstanceSnapshot, draft: Draft): boolean {
  return instance.evidence.every(({ loss }) => loss !== "forced") && renewed(pool, instance, draft);
}
