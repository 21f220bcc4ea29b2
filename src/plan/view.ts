/** Questions about a snapshot that several policies ask. Pure, total, and independent of the order of anything. */
import type { Instant } from "../kernel/clock.ts";
import type { Evidence } from "../model/evidence.ts";
import { graverLoss, isCandidate, isLeaving, isRouted, type Loss } from "../model/phase.ts";
import type { StepRecord } from "../model/step.ts";
import { podsOfInstance } from "./cluster.ts";
import { indexOf } from "./pool-index.ts";
import type { InstanceSnapshot, NodeSnapshot, PodSnapshot, PoolSnapshot } from "./snapshot.ts";

export function idOf(instance: InstanceSnapshot): string {
  return instance.record.id;
}

/** Not on its way out: from `pending` to `serving`. */
export function isHeld(instance: InstanceSnapshot): boolean {
  return !isLeaving(instance.record.phase);
}

/** Kept for whoever must go next, or on its way to that: it serves nobody, holds no place of the pool and replaces none yet. */
export function isStandby(instance: InstanceSnapshot): boolean {
  return instance.record.purpose === "standby";
}

export function isServing(instance: InstanceSnapshot): boolean {
  return instance.record.phase === "serving";
}

/** A capable process that serves: what the floor and `desired` are compared with. A writer that does not renew its lease gets nothing new meanwhile. */
export function servingOf(pool: PoolSnapshot): readonly InstanceSnapshot[] {
  const known = serving.get(pool);
  if (known !== undefined) return known;
  const found = pool.instances.filter(
    (instance) => isServing(instance) && !(instance.record.trust === "suspect" && instance.lease.state !== "none"),
  );
  serving.set(pool, found);
  return found;
}

/** A snapshot never changes; many sentences of a plan say how many of it serve. */
const serving = new WeakMap<PoolSnapshot, readonly InstanceSnapshot[]>();

export function isCondemned(instance: InstanceSnapshot): boolean {
  return instance.evidence.length > 0;
}

/** The gravest evidence; among equals the one with the earliest deadline, then the first seen. */
export function gravestEvidence(instance: InstanceSnapshot): Evidence | undefined {
  return instance.evidence.toSorted(compareEvidence)[0];
}

function compareEvidence(a: Evidence, b: Evidence): number {
  if (a.loss !== b.loss) return graverLoss(a.loss, b.loss) === a.loss ? -1 : 1;
  return (a.deadline ?? Infinity) - (b.deadline ?? Infinity) || a.firstSeen - b.firstSeen || compareText(a.id, b.id);
}

export function lossOf(instance: InstanceSnapshot): Loss | undefined {
  return gravestEvidence(instance)?.loss;
}

/**
 * The earliest time at which its capacity goes. A loss of class deadline without a time (hibernation) may come at any moment: its time is now. Evidence is
 * written once: where it says maintenance in two weeks and the node is now interrupted in two minutes, what is seen counts.
 */
export function deadlineOf(pool: PoolSnapshot, instance: InstanceSnapshot): Instant | null {
  const recorded = instance.evidence.filter(({ loss }) => loss === "deadline").map(({ deadline, firstSeen }) => deadline ?? firstSeen);
  if (recorded.length === 0) return null;
  const seen =
    pool.spec.disruption.mode === "Off"
      ? []
      : podsOfInstance(pool, instance)
          .flatMap(({ node, owned }) => (owned ? (node?.findings ?? []) : []))
          .filter(({ loss }) => loss === "deadline");
  return Math.min(...recorded, ...seen.flatMap(({ deadline }) => deadline ?? []));
}

/** Grave before light, early before late, and then by id: never by chance. */
export function compareUrgency(a: InstanceSnapshot, b: InstanceSnapshot): number {
  const left = gravestEvidence(a);
  const right = gravestEvidence(b);
  if (left && right && compareEvidence(left, right) !== 0) return compareEvidence(left, right);
  return compareText(idOf(a), idOf(b));
}

export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * The instance that is to take over from this one and is still on its way or serves: its own replacement, or the one of a replacement that had to go itself.
 * A place that had two successors would have one writer too few.
 */
export function replacementOf(pool: PoolSnapshot, instance: InstanceSnapshot): InstanceSnapshot | undefined {
  return (
    indexOf(pool).replacing.get(idOf(instance))?.find(isHeld) ??
    sharersOf(pool, instance).find((other) => !isCondemned(other) && instance.record.replaces !== idOf(other))
  );
}

/** Condemned ones that still serve, beside a successor that serves. */
export function succeededOf(pool: PoolSnapshot): readonly InstanceSnapshot[] {
  const known = succeeded.get(pool);
  if (known !== undefined) return known;
  const found = pool.instances.filter((instance) => {
    if (!isServing(instance) || !isCondemned(instance)) return false;
    const successor = replacementOf(pool, instance);
    return successor !== undefined && isServing(successor);
  });
  succeeded.set(pool, found);
  return found;
}

/** Asked for each condemned one; a snapshot never changes. */
const succeeded = new WeakMap<PoolSnapshot, readonly InstanceSnapshot[]>();

/** The one that it is to take over from; undefined when there is none, or it is gone. */
export function predecessorOf(pool: PoolSnapshot, { record }: InstanceSnapshot): InstanceSnapshot | undefined {
  return record.replaces === null ? undefined : indexOf(pool).byId.get(record.replaces);
}

/** A replacement whose predecessor has not left yet, also where another one between the two has: it is there on top of what is desired. */
export function isSurge(pool: PoolSnapshot, instance: InstanceSnapshot): boolean {
  const predecessor = predecessorOf(pool, instance);
  if (predecessor !== undefined && isHeld(predecessor)) return true;
  return (
    !isCondemned(instance) && sharersOf(pool, instance).some((other) => isCondemned(other) && other.record.replaces !== idOf(instance))
  );
}

/** The others that hold the same place. */
export function sharersOf(pool: PoolSnapshot, instance: InstanceSnapshot): readonly InstanceSnapshot[] {
  if (isStandby(instance)) return [];
  const ofPlace = indexOf(pool).byOrdinal.get(instance.record.ordinal) ?? [];
  return ofPlace.filter((other) => other !== instance && isHeld(other) && !isStandby(other));
}

/** A candidate of a voluntary replacement: what `surge` bounds. */
export function isVoluntaryCandidate(pool: PoolSnapshot, instance: InstanceSnapshot): boolean {
  const { purpose, phase } = instance.record;
  if (purpose !== "replace" || !(isCandidate(phase) || phase === "standby")) return false;
  const predecessor = predecessorOf(pool, instance);
  return predecessor !== undefined && lossOf(predecessor) === "voluntary";
}

/** An open step of this kind for this instance: it is being done, or nobody knows yet whether it was. */
export function openStep(pool: PoolSnapshot, instance: string, kind: string): StepRecord | undefined {
  return indexOf(pool)
    .steps.get(instance)
    ?.find((step) => step.kind.startsWith(`${kind}/`));
}

/** Still the process that was admitted, as far as can be seen. */
export function isRoutedNow(instance: InstanceSnapshot): boolean {
  return isRouted(instance.record.phase);
}

/** Why a candidate may not stay on this node (D7); undefined when it may. */
export function unsafety(
  node: NodeSnapshot,
  provisioners: readonly string[],
): "drifting" | "deleting" | "cordoned" | "not_ready" | "owner_unknown" | "about_to_go" | undefined {
  if (node.deleting) return "deleting";
  if (node.findings.some(({ loss }) => loss !== "voluntary")) return "about_to_go";
  if (node.findings.some(({ reason }) => reason === "node_drifted")) return "drifting";
  if (node.findings.length > 0) return "about_to_go";
  if (node.unschedulable) return "cordoned";
  if (!node.ready) return "not_ready";
  if (!(node.owner ? provisioners.includes(node.owner.provisioner) : provisioners.includes("none"))) return "owner_unknown";
  return undefined;
}

export function leadPod(instance: InstanceSnapshot): PodSnapshot | undefined {
  return instance.pods.find((pod) => pod.lead && pod.uid === instance.record.incarnation.podUid) ?? instance.pods.find((pod) => pod.lead);
}

/** For sentences: `spot_interruption of i-0abc…`. */
export function describeEvidence(evidence: Evidence | undefined): string {
  if (!evidence) return "no evidence";
  return evidence.nodeName === null ? evidence.reason : `${evidence.reason} of ${evidence.nodeName}`;
}
