/** What the cluster's objects say of one instance: its pods, whose they are and where, and which process runs in them. */
import type { Instant } from "../kernel/clock.ts";
import type { KubePod, KubeWorkload } from "../kube/types.ts";
import type { Incarnation, InstanceRecord, OwnedObject } from "../model/instance.ts";
import { ANNOTATIONS } from "../model/marks.ts";
import { isLeaving } from "../model/phase.ts";
import { type Placement, placementSchema } from "../model/placement.ts";
import type { PoolDocument } from "../model/pool.ts";
import type { NodeSnapshot, PodSnapshot } from "../plan/snapshot.ts";
import { isForeign, ownerOf, replicaSetNamedBy } from "./owners.ts";
import type { World } from "./world.ts";

export interface ObjectsInput {
  readonly document: PoolDocument;
  readonly world: World;
  /** Why what is read of the cluster may be old. */
  readonly trouble: string | undefined;
  readonly nodeView: (name: string) => NodeSnapshot | undefined;
  /** By pod UID, of pods that have a place: see `placements.ts`. */
  readonly placedSince: (podUid: string) => Instant;
}

/** What the cluster's objects say of one instance. */
export interface SeenObjects {
  readonly pods: readonly PodSnapshot[];
  readonly leads: readonly KubePod[];
  readonly wanted: number;
  readonly newIncarnation: Incarnation | null;
  readonly gone: boolean | null;
}

/** What was seen last, and all that it was made from beside the record. */
interface Kept {
  readonly namespace: string;
  readonly port: number;
  readonly labelled: readonly KubePod[];
  readonly trouble: string | undefined;
  readonly bootId: string | null;
  readonly workloads: readonly (KubeWorkload | undefined)[];
  readonly replicaSets: readonly (KubeWorkload | undefined)[];
  readonly placedAt: readonly (Instant | null)[];
  readonly nodes: readonly (NodeSnapshot | null)[];
  readonly seen: SeenObjects;
}

/**
 * By record; it holds until something that it was made from is another object or value: read models and rows never change what they gave, they give another. Of the
 * document only what is read here counts: each write of its status makes another one.
 */
const kept = new WeakMap<InstanceRecord, Kept>();

/** `bootId` is what its check says while it passes. */
export function objectsOf(input: ObjectsInput, record: InstanceRecord, bootId: string | null): SeenObjects {
  const { world, document, trouble } = input;
  const { namespace } = document.metadata;
  const { port } = document.spec.service;
  const labelled = world.pods.byIndex("instance", record.id);
  const known = kept.get(record);
  if (known !== undefined && known.labelled === labelled && known.bootId === bootId && isStill(known, input, record)) return known.seen;
  const seen = lookAt(input, record, labelled, bootId);
  kept.set(record, {
    namespace,
    port,
    labelled,
    trouble,
    bootId,
    workloads: record.objects.map((object) => workloadOf(object, world)),
    replicaSets: labelled.map((pod) => replicaSetNamedBy(pod, world)),
    placedAt: labelled.map((pod) => placedAt(input, pod)),
    nodes: labelled.map((pod) => nodeOf(input, pod)),
    seen,
  });
  return seen;
}

function isStill(known: Kept, input: ObjectsInput, { objects }: InstanceRecord): boolean {
  return (
    known.namespace === input.document.metadata.namespace &&
    known.port === input.document.spec.service.port &&
    known.trouble === input.trouble &&
    objects.every((object, at) => known.workloads[at] === workloadOf(object, input.world)) &&
    known.labelled.every(
      (pod, at) =>
        known.nodes[at] === nodeOf(input, pod) &&
        known.placedAt[at] === placedAt(input, pod) &&
        known.replicaSets[at] === replicaSetNamedBy(pod, input.world),
    )
  );
}

function lookAt(input: ObjectsInput, record: InstanceRecord, labelled: readonly KubePod[], bootId: string | null): SeenObjects {
  const owned = labelled.filter((pod) => pod.metadata.namespace === input.document.metadata.namespace);
  const pods = owned.map((pod) => viewPod(input, record, pod));
  const leads = owned.filter((_, at) => pods[at]?.lead);
  return {
    pods,
    leads,
    wanted: podsWanted(record, input.world),
    newIncarnation: renewalOf(input, record, leads, bootId),
    gone: objectsGone(input, record, owned),
  };
}

function placedAt({ placedSince }: ObjectsInput, { metadata, spec }: KubePod): Instant | null {
  return spec.nodeName === null ? null : placedSince(metadata.uid);
}

function nodeOf({ nodeView }: ObjectsInput, { spec }: KubePod): NodeSnapshot | null {
  return spec.nodeName === null ? null : (nodeView(spec.nodeName) ?? null);
}

function workloadOf({ kind, namespace, name }: OwnedObject, { deployments, statefulSets }: World): KubeWorkload | undefined {
  if (kind === "Deployment") return deployments.get(namespace, name);
  return kind === "StatefulSet" ? statefulSets.get(namespace, name) : undefined;
}

function viewPod(input: ObjectsInput, record: InstanceRecord, pod: KubePod): PodSnapshot {
  const { metadata, status } = pod;
  const replicaSet = replicaSetNamedBy(pod, input.world);
  const owner = ownerOf(pod, record.objects, replicaSet);
  return {
    name: metadata.name,
    uid: metadata.uid,
    lead: owner !== undefined && owner.uid === record.objects[0]?.uid,
    ready: status.conditions.some(({ type, status: value }) => type === "Ready" && value === "True"),
    deleting: metadata.deletionTimestamp !== null,
    owned: owner !== undefined,
    foreign: isForeign(pod, record.objects, replicaSet),
    protectedByUs: metadata.annotations[ANNOTATIONS.protectedBy] !== undefined,
    placement: placementOfPod(metadata.annotations[ANNOTATIONS.placement]),
    scheduledAt: placedAt(input, pod),
    node: nodeOf(input, pod),
    ...memberProcessOf(pod, owner !== undefined && owner.uid !== record.objects[0]?.uid),
  };
}

/** Of the lead it is the instance's incarnation. */
function memberProcessOf(pod: KubePod, isMember: boolean): Pick<PodSnapshot, "process"> {
  const seen = isMember ? processOf(pod) : undefined;
  if (seen?.isRunning !== true || pod.status.podIP === null) return {};
  return { process: { host: pod.status.podIP, containerId: seen.containerId, startedAt: seen.startedAt } };
}

/** What is malformed says nothing. */
function placementOfPod(text: string | undefined): Placement | null {
  if (text === undefined) return null;
  try {
    return placementSchema.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}

function podsWanted({ objects }: InstanceRecord, world: World): number {
  let wanted = 0;
  for (const object of objects)
    if (object.kind === "Deployment" || object.kind === "StatefulSet") wanted += workloadOf(object, world)?.spec.replicas ?? 1;
  return Math.max(1, wanted);
}

/** The process that runs in a lead pod. */
interface SeenProcess {
  readonly pod: KubePod;
  readonly containerId: string;
  readonly isRunning: boolean;
  /** Null when it does not run. */
  readonly startedAt: Instant | null;
}

export function processOf(pod: KubePod): SeenProcess | undefined {
  const first = pod.spec.containers[0]?.name;
  const status = pod.status.containerStatuses.find(({ name }) => name === first) ?? pod.status.containerStatuses[0];
  if (!status || status.containerID === null) return undefined;
  // A kubelet that evicts a pod fails it as a whole, and may leave what it said of the containers as it was.
  const hasEnded = pod.status.phase === "Failed" || pod.status.phase === "Succeeded";
  const { running } = status.state;
  return { pod, containerId: status.containerID, isRunning: Boolean(running) && !hasEnded, startedAt: running?.startedAt ?? null };
}

/**
 * Another process than the recorded one. One that takes traffic is given up as soon as its own is gone, even before another runs; one that is still being
 * prepared waits for a process that does. While the recorded one still runs it is the instance, also when its pod is being deleted and the next one is up:
 * it may finish what it has.
 */
function renewalOf(input: ObjectsInput, record: InstanceRecord, leads: readonly KubePod[], bootId: string | null): Incarnation | null {
  const { incarnation, phase } = record;
  if (isLeaving(phase) && phase !== "draining") return null;
  const recorded = leads.find(({ metadata }) => metadata.uid === incarnation.podUid);
  const current = recorded && processOf(recorded)?.isRunning ? recorded : leads.toSorted(byLiveliness)[0];
  if (!current) return null;
  const seen = processOf(current);
  const isSame = current.metadata.uid === incarnation.podUid && seen?.containerId === incarnation.containerId;
  if (isSame && seen.isRunning) {
    const hasOtherBoot = incarnation.bootId !== null && bootId !== null && bootId !== incarnation.bootId;
    return hasOtherBoot ? { ...incarnation, number: incarnation.number + 1, bootId: null } : null;
  }
  const isRunning = seen?.isRunning === true && current.status.podIP !== null;
  const takesTraffic = phase === "admitted" || phase === "serving" || phase === "draining";
  if (!isRunning && !takesTraffic) return null;
  // While its node is silent its status is old news: that is for `lost` to judge.
  if (isSame && !seen.isRunning && !isRunning && incarnation.host === null) return null;
  return {
    number: incarnation.number + 1,
    podName: current.metadata.name,
    podUid: current.metadata.uid,
    containerId: isRunning ? (seen?.containerId ?? null) : null,
    bootId: null,
    nodeName: current.spec.nodeName,
    nodeUid: current.spec.nodeName === null ? null : (input.nodeView(current.spec.nodeName)?.uid ?? null),
    host: isRunning ? current.status.podIP : null,
    port: isRunning ? input.document.spec.service.port : null,
  };
}

/** One that is not being deleted before one that is, the newest first. */
function byLiveliness(a: KubePod, b: KubePod): number {
  return (
    Number(a.metadata.deletionTimestamp !== null) - Number(b.metadata.deletionTimestamp !== null) ||
    b.metadata.creationTimestamp - a.metadata.creationTimestamp ||
    (a.metadata.uid < b.metadata.uid ? -1 : 1)
  );
}

function objectsGone({ world, trouble }: ObjectsInput, { objects }: InstanceRecord, pods: readonly KubePod[]): boolean | null {
  if (trouble !== undefined) return null;
  if (pods.some((pod) => !isForeign(pod, objects, replicaSetNamedBy(pod, world)))) return false;
  return objects.every((object) => workloadOf(object, world)?.metadata.uid !== object.uid);
}
