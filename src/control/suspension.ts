/**
 * `relevo suspend | resume | status` (T19, T20): a pool's instances by its own size, its engine's owner by that owner's own field, and its companions by their counts.
 *
 * 1. Never below a running query: refused while something is under way, or nobody knows, unless it is to drain. A drain ends by the ordinary lifecycle, and the owner
 *    and the companions go when no instance is left: whoever waits asks again. A target cannot be drained: it is refused as long as something runs.
 * 2. What an object had stands in a mark on the object itself, written with the change in one patch under its UID and resourceVersion: whoever does it again, after
 *    a crash too, changes nothing more, and what bears no mark of ours is never restored.
 * 3. An owner's reconciliation is never paused, and one that is paused is refused: it would take the word and do nothing.
 */
import { z } from "zod";
import { RelevoError } from "../kernel/errors.ts";
import { asServiceAccount, type KubeApi, type KubeObject, type ObjectRef, type ResourceType } from "../kube/api.ts";
import { findObject } from "../kube/find-object.ts";
import { DEPLOYMENTS, POOLS, STATEFUL_SETS } from "../kube/resources.ts";
import { phaseOf, pricePerMonth, type SuspendedPart, type SuspensionStatus } from "../model/suspension.ts";
import type { PoolEntry } from "./pool-informer.ts";

/** On a companion its former count, on an owner `running`. */
export const SUSPENDED_FROM = "relevo.dev/suspended-from";

const TRINO_CLUSTERS: ResourceType = {
  group: "trino.stackable.tech",
  version: "v1alpha1",
  kind: "TrinoCluster",
  plural: "trinoclusters",
  namespaced: true,
};

export interface SuspensionParts {
  readonly kube: KubeApi;
  /** Of each instance that is not gone: what it has under way; null where nobody knows. */
  readonly work: (
    pool: string,
  ) => Promise<readonly { readonly instance: string; readonly underWay: number | null; readonly isServing: boolean }[]>;
}

/** Throws `suspend_running`, `suspend_owner_paused` with nothing changed; `suspend_gone` for a part that is not there. */
export async function suspend(parts: SuspensionParts, entry: PoolEntry, { drain }: { readonly drain: boolean }): Promise<SuspensionStatus> {
  const found = await partsOf(parts, entry);
  refuse(entry.key, found);
  const { suspension, target } = entry.document.spec;
  if (!suspension.suspended && (!drain || target !== undefined)) await refuseBelowWork(parts, entry);
  if (!suspension.suspended) await setSuspended(parts, entry, true);
  if ((await parts.work(entry.key)).length === 0) for (const part of found) await stop(parts, entry, part);
  return statusOf(parts, entry, true);
}

/** What bears no mark of ours stays as it is. The owner first: without it no companion has anything to serve. */
export async function resume(parts: SuspensionParts, entry: PoolEntry): Promise<SuspensionStatus> {
  for (const part of await partsOf(parts, entry)) await start(parts, entry, part);
  if (entry.document.spec.suspension.suspended) await setSuspended(parts, entry, false);
  return statusOf(parts, entry, false);
}

/** `suspended`: what was just written, where the read model may not show it yet. */
export async function statusOf(parts: SuspensionParts, entry: PoolEntry, suspended?: boolean): Promise<SuspensionStatus> {
  const { spec } = entry.document;
  const work = await parts.work(entry.key);
  const seen = {
    suspended: suspended ?? spec.suspension.suspended,
    serving: work.filter(({ isServing }) => isServing).length,
    desired: spec.size.desired,
    instances: work.length,
    parts: (await partsOf(parts, entry)).map(viewOf),
  };
  const { residue } = spec.suspension;
  // How many are desired is not known before the read model shows what was written.
  const isOld = seen.suspended !== spec.suspension.suspended;
  return {
    pool: entry.key,
    phase: isOld ? (seen.suspended ? "stopping" : "starting") : phaseOf(seen),
    ...seen,
    residue,
    perMonth: pricePerMonth(residue),
  };
}

interface Part {
  readonly kind: "Deployment" | "StatefulSet" | "TrinoCluster";
  readonly name: string;
  readonly ref: ObjectRef;
  readonly object: KubeObject | undefined;
}

const TYPES: Readonly<Record<Part["kind"], ResourceType>> = {
  Deployment: DEPLOYMENTS,
  StatefulSet: STATEFUL_SETS,
  TrinoCluster: TRINO_CLUSTERS,
};

function kubeOf({ kube }: SuspensionParts, { document }: PoolEntry): KubeApi {
  return asServiceAccount(kube, document.metadata.namespace, document.spec.serviceAccountName);
}

async function partsOf(parts: SuspensionParts, entry: PoolEntry): Promise<readonly Part[]> {
  const { namespace } = entry.document.metadata;
  const { owner, companions } = entry.document.spec.suspension;
  const kube = kubeOf(parts, entry);
  return Promise.all(
    [...(owner === undefined ? [] : [owner]), ...companions].map(async ({ kind, name }) => {
      const ref = { type: TYPES[kind], namespace, name };
      return { kind, name, ref, object: await findObject(kube, ref) };
    }),
  );
}

const specSchema = z.object({
  spec: z.object({
    replicas: z.int().nullish(),
    clusterOperation: z.looseObject({ stopped: z.boolean().nullish(), reconciliationPaused: z.boolean().nullish() }).nullish(),
  }),
  status: z.object({ replicas: z.int().nullish() }).nullish(),
});

function shapeOf(object: KubeObject): z.output<typeof specSchema> {
  return specSchema.safeParse(object).data ?? { spec: {} };
}

function markOf(object: KubeObject | undefined): string | null {
  return object?.metadata.annotations?.[SUSPENDED_FROM] ?? null;
}

function nameOf({ kind, name }: Part): string {
  return `${kind}/${name}`;
}

function viewOf(part: Part): SuspendedPart {
  const { object, kind } = part;
  if (object === undefined) return { object: nameOf(part), running: null, restoresTo: null, trouble: "it is not there" };
  const { spec, status } = shapeOf(object);
  const isPaused = spec.clusterOperation?.reconciliationPaused === true;
  const running = kind === "TrinoCluster" ? null : Math.max(spec.replicas ?? 1, status?.replicas ?? 0);
  return {
    object: nameOf(part),
    running,
    restoresTo: markOf(object),
    trouble: isPaused ? "its reconciliation is paused: it takes every word and does nothing" : null,
  };
}

function refuse(pool: string, found: readonly Part[]): void {
  const missing = found.filter(({ object }) => object === undefined);
  if (missing.length > 0)
    throw new RelevoError("suspend_gone", `What pool ${pool} names in spec.suspension is not there, so nothing is suspended.`, {
      class: "conflict",
      found: missing.map(nameOf).join(", "),
      todo: "correct spec.suspension",
    });
  const paused = found.find(({ object }) => object !== undefined && shapeOf(object).spec.clusterOperation?.reconciliationPaused === true);
  if (paused === undefined) return;
  throw new RelevoError("suspend_owner_paused", `The reconciliation of ${nameOf(paused)} is paused, so nothing is suspended.`, {
    class: "conflict",
    found: "spec.clusterOperation.reconciliationPaused: true",
    allowed: "an owner that does what its field says",
    todo: "let its operator go on first: Relevo never pauses it, nor ends a pause of others",
  });
}

async function refuseBelowWork({ work }: SuspensionParts, { key }: PoolEntry): Promise<void> {
  const busy = (await work(key)).filter(({ underWay }) => underWay !== 0);
  if (busy.length === 0) return;
  throw new RelevoError("suspend_running", `Something runs in pool ${key}, so it is not suspended.`, {
    class: "conflict",
    found: busy.map(({ instance, underWay }) => `${instance}: ${underWay === null ? "nobody knows" : `${underWay} under way`}`).join("; "),
    allowed: "a pool in which nothing runs, or --drain for one with instances of its own",
    todo: "wait, or say --drain: instances take nothing new and end with the last of it",
  });
}

async function setSuspended({ kube }: SuspensionParts, { document, uid }: PoolEntry, suspended: boolean): Promise<void> {
  const { namespace, name } = document.metadata;
  await kube.patch({ type: POOLS, namespace, name }, { metadata: { uid }, spec: { suspension: { suspended } } });
}

async function stop(parts: SuspensionParts, entry: PoolEntry, { kind, ref, object }: Part): Promise<void> {
  if (object === undefined) return;
  const { spec } = shapeOf(object);
  const mark = markOf(object);
  if (kind === "TrinoCluster") {
    // Stopped by others before: theirs to start.
    if (spec.clusterOperation?.stopped === true) return;
    return change(parts, entry, { ref, object, mark: "running", spec: { clusterOperation: { stopped: true } } });
  }
  const replicas = spec.replicas ?? 1;
  if (replicas === 0) return;
  await change(parts, entry, { ref, object, mark: mark ?? String(replicas), spec: { replicas: 0 } });
}

async function start(parts: SuspensionParts, entry: PoolEntry, { kind, ref, object }: Part): Promise<void> {
  const mark = markOf(object);
  if (object === undefined || mark === null) return;
  const { spec } = shapeOf(object);
  if (kind === "TrinoCluster") return change(parts, entry, { ref, object, mark: null, spec: { clusterOperation: { stopped: false } } });
  const former = Number(mark);
  // Somebody gave it another count meanwhile: that stands.
  const isOurs = (spec.replicas ?? 1) === 0 && Number.isSafeInteger(former) && former >= 0;
  await change(parts, entry, { ref, object, mark: null, spec: isOurs ? { replicas: former } : {} });
}

interface Change {
  readonly ref: ObjectRef;
  readonly object: KubeObject;
  readonly mark: string | null;
  readonly spec: Readonly<Record<string, unknown>>;
}

async function change(parts: SuspensionParts, entry: PoolEntry, { ref, object, mark, spec }: Change): Promise<void> {
  const { uid, resourceVersion } = object.metadata;
  await kubeOf(parts, entry).patch(ref, { metadata: { uid, resourceVersion, annotations: { [SUSPENDED_FROM]: mark } }, spec });
}
