/**
 * What a read model does not have is not gone for that: it may be behind the store, when another controller wrote there what is not seen here yet, and its kinds
 * are behind each other. Before absence is a verdict, the server is asked by name (D8); a named read is never served from an older state than the one that
 * was current when it was asked for.
 */
import type { Clock } from "../kernel/clock.ts";
import type { KubeApi, KubeObject, ObjectRef } from "../kube/api.ts";
import { findObject } from "../kube/find-object.ts";
import { DEPLOYMENTS, NODES, PODS, REPLICA_SETS, STATEFUL_SETS } from "../kube/resources.ts";
import { conditionOf, INSTANCE_LABEL, type KubePod, type KubeWorkload, parseNode, parsePod, parseReplicaSet } from "../kube/types.ts";
import type { Incarnation, InstanceRecord, OwnedObject } from "../model/instance.ts";
import { processOf } from "./instance-objects.ts";
import { controllerOf, isForeign, ownerOf } from "./owners.ts";

/**
 * What the read model says of an instance: that its workloads and pods are gone; that its process does not run in its pod any more; that the pod of its
 * process is gone or is its own no more; that the node of its process is gone, is another machine, or is not ready.
 */
export type Absence = "objects" | "process" | "pod" | "node";

/** How long a read that says otherwise is believed. */
const ASKED_AGAIN_MS = 1_000;
const MAX_ASKED_AT_ONCE = 8;
/** Instances of which answers are kept; of the one that was asked about longest ago they go first, and are asked for again. */
const MAX_REMEMBERED = 10_000;
/** An instance has a few ReplicaSets and pods; more pages of them are something that is there. */
const MAX_LISTED = 100;

interface Asked {
  readonly absence: Absence;
  /** On the clock that never goes back: of the question, then of the answer. */
  at: number;
  answer: boolean | undefined;
}

/** What was asked of an instance as its row was then. */
interface Remembered {
  readonly row: string;
  readonly asked: readonly Asked[];
}

export interface NamedReadsOptions {
  readonly kube: Pick<KubeApi, "get" | "list">;
  readonly clock: Clock;
  /** After an answer, and when it is time to ask once more. */
  readonly onChange: (pool: string) => void;
  readonly log: (level: "debug", message: string, fields: Readonly<Record<string, unknown>>) => void;
}

export class NamedReads {
  readonly #options: NamedReadsOptions;
  /** By instance. Not by its record: a store that several processes share gives another object for the same row at each look. */
  readonly #remembered = new Map<string, Remembered>();
  readonly #waiting: (() => Promise<void>)[] = [];
  #running = 0;

  constructor(options: NamedReadsOptions) {
    this.#options = options;
  }

  /**
   * Whether the server said so too; false until it did, and `onChange` calls when there is news. What it said once holds as long as the row is the same: what
   * is gone under its UID never comes back, and whoever lost its node is replaced.
   */
  confirm(record: InstanceRecord, absence: Absence): boolean {
    const now = this.#options.clock.monotonic();
    const row = JSON.stringify(record);
    const remembered = this.#remembered.get(record.id);
    const all = remembered?.row === row ? remembered.asked : [];
    const known = all.find((each) => each.absence === absence);
    if (known !== undefined && (known.answer !== false || now - known.at < ASKED_AGAIN_MS)) return known.answer === true;
    const asked: Asked = { absence, at: now, answer: undefined };
    this.#remember(record.id, { row, asked: [...all.filter((each) => each !== known), asked] });
    this.#waiting.push(() => this.#ask(record, asked));
    this.#next();
    return false;
  }

  #remember(instance: string, remembered: Remembered): void {
    this.#remembered.delete(instance);
    this.#remembered.set(instance, remembered);
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > MAX_REMEMBERED && oldest !== undefined) this.#remembered.delete(oldest);
  }

  #next(): void {
    if (this.#running >= MAX_ASKED_AT_ONCE) return;
    const ask = this.#waiting.shift();
    if (ask === undefined) return;
    this.#running += 1;
    void ask().finally(() => {
      this.#running -= 1;
      this.#next();
    });
  }

  async #ask(record: InstanceRecord, asked: Asked): Promise<void> {
    const { kube, clock, onChange, log } = this.#options;
    try {
      asked.answer = await isAbsent(asked.absence, record, kube);
    } catch (error) {
      asked.answer = false;
      log("debug", "what is not seen of an instance cannot be read by name", { instance: record.id, error: String(error) });
    }
    asked.at = clock.monotonic();
    if (asked.answer) onChange(record.pool);
    else clock.after(ASKED_AGAIN_MS, () => onChange(record.pool));
  }
}

function isAbsent(absence: Absence, record: InstanceRecord, kube: NamedReadsOptions["kube"]): Promise<boolean> {
  if (absence === "objects") return areObjectsAbsent(record, kube);
  if (absence === "process") return isProcessAbsent(record, kube);
  return absence === "pod" ? isPodAbsent(record, kube) : isNodeAbsent(record, kube);
}

/** Owners first: what is gone makes no more of what comes after it. */
async function areObjectsAbsent({ id, objects }: InstanceRecord, kube: NamedReadsOptions["kube"]): Promise<boolean> {
  for (const object of objects) {
    const ref = workloadRefOf(object);
    if (ref !== undefined && (await findObject(kube, ref))?.metadata.uid === object.uid) return false;
  }
  const labelSelector = `${INSTANCE_LABEL}=${id}`;
  for (const namespace of new Set(objects.map((object) => object.namespace))) {
    const sets = await kube.list(REPLICA_SETS, { namespace, labelSelector, limit: MAX_LISTED });
    if (sets.continue !== undefined || sets.items.some((set) => isMadeBy(set, objects))) return false;
    const pods = await kube.list(PODS, { namespace, labelSelector, limit: MAX_LISTED });
    if (pods.continue !== undefined) return false;
    for (const pod of pods.items) if (!(await isNobodys(pod, objects, kube))) return false;
  }
  return true;
}

async function isProcessAbsent({ incarnation, objects }: InstanceRecord, kube: NamedReadsOptions["kube"]): Promise<boolean> {
  const found = await findPod(incarnation, objects, kube);
  if (found === undefined) return true;
  const pod = parsePod(found);
  const seen = pod.ok ? processOf(pod.value) : undefined;
  return pod.ok && (seen?.containerId !== incarnation.containerId || !seen.isRunning);
}

/** Also when it is there and nobody's of ours: its label was taken away, or its owner. */
async function isPodAbsent({ id, incarnation, objects }: InstanceRecord, kube: NamedReadsOptions["kube"]): Promise<boolean> {
  const found = await findPod(incarnation, objects, kube);
  if (found === undefined || found.metadata.labels?.[INSTANCE_LABEL] !== id) return true;
  const made = await madeBy(found, kube);
  return made !== undefined && ownerOf(made.pod, objects, made.replicaSet)?.uid !== objects[0]?.uid;
}

/** It bears the label and is none of the instance. */
async function isNobodys(found: KubeObject, objects: readonly OwnedObject[], kube: NamedReadsOptions["kube"]): Promise<boolean> {
  const made = await madeBy(found, kube);
  return made !== undefined && isForeign(made.pod, objects, made.replicaSet);
}

/** The pod with the ReplicaSet that it names; undefined when either is malformed: nothing can be said of it. */
async function madeBy(
  found: KubeObject,
  kube: NamedReadsOptions["kube"],
): Promise<{ readonly pod: KubePod; readonly replicaSet: KubeWorkload | undefined } | undefined> {
  const pod = parsePod(found);
  if (!pod.ok) return undefined;
  const { namespace } = pod.value.metadata;
  const direct = controllerOf(pod.value);
  if (direct?.kind !== "ReplicaSet") return { pod: pod.value, replicaSet: undefined };
  const set = await findObject(kube, { type: REPLICA_SETS, namespace, name: direct.name });
  const parsed = set === undefined ? undefined : parseReplicaSet(set);
  return parsed?.ok === false ? undefined : { pod: pod.value, replicaSet: parsed?.value };
}

async function findPod(
  { podName, podUid }: Incarnation,
  [lead]: readonly OwnedObject[],
  kube: NamedReadsOptions["kube"],
): Promise<KubeObject | undefined> {
  if (podName === null || lead === undefined) return undefined;
  const found = await findObject(kube, { type: PODS, namespace: lead.namespace, name: podName });
  return found?.metadata.uid === podUid ? found : undefined;
}

async function isNodeAbsent({ incarnation }: InstanceRecord, kube: NamedReadsOptions["kube"]): Promise<boolean> {
  if (incarnation.nodeName === null) return true;
  const found = await findObject(kube, { type: NODES, name: incarnation.nodeName });
  if (found === undefined || (incarnation.nodeUid !== null && found.metadata.uid !== incarnation.nodeUid)) return true;
  const node = parseNode(found);
  return node.ok && conditionOf(node.value.status.conditions, "Ready")?.status !== "True";
}

function isMadeBy(object: KubeObject, objects: readonly OwnedObject[]): boolean {
  const set = parseReplicaSet(object);
  const by = set.ok ? controllerOf(set.value)?.uid : undefined;
  return !set.ok || objects.some(({ uid }) => uid === by);
}

function workloadRefOf({ kind, namespace, name }: OwnedObject): ObjectRef | undefined {
  if (kind === "Deployment") return { type: DEPLOYMENTS, namespace, name };
  return kind === "StatefulSet" ? { type: STATEFUL_SETS, namespace, name } : undefined;
}
