/**
 * A workload's replica count goes from whoever owns it to a Pool, by an operator's word (K3).
 *
 * 1. The signal must be valid, and everybody who sets the count is named, before anything is touched (K2, K8).
 * 2. One owner is removed, and only the one that was named with its UID. Whoever writes from a repository is not fought: that is changed there.
 * 3. It is adopted when fresh reads show nobody else, with the count that it has: a hand-over changes nothing.
 * 4. A crash on the way leaves the Pool without its target, and the same command goes on.
 */
import { draftRemoveOwner } from "../act/draft-step.ts";
import type { Executor } from "../act/executor.ts";
import { REMOVABLE_OWNERS } from "../act/steps/remove-scale-owner.ts";
import { readAutoscalers, refOfTarget, type TargetObjectRef } from "../act/steps/targets.ts";
import type { Clock, Instant } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { KubeApi } from "../kube/api.ts";
import { findObject } from "../kube/find-object.ts";
import type { Informer } from "../kube/informer.ts";
import { targetObjectOf } from "../model/parse-scale-owner.ts";
import { poolKey } from "../model/pool.ts";
import { reason } from "../model/reasons.ts";
import { type Adoption, deedOf, nameOfOwner, OWN_MANAGER, roleOf, type ScaleOwner, type TargetObject } from "../model/scale-owner.ts";
import { managersAgainst, othersOf, ownerOfManager } from "../plan/scaling/target.ts";
import type { ScaleState } from "../model/scale.ts";
import type { AdoptCommand, AdoptionResult } from "../server/adoption-state.ts";
import type { Authority, PoolRows, Store } from "../store/port.ts";
import type { Controller } from "./controller.ts";
import type { PoolEntry } from "./pool-informer.ts";
import { type Preflight, refuseByPreflight } from "./preflight-gate.ts";
import { refuseRewound } from "./store-desk.ts";

/** How long an owner may take to be gone: KEDA takes its HorizontalPodAutoscaler away first. */
export const OWNER_GONE_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 200;
/** How long a write that is under way may take before its target is given back. */
const AT_REST_WITHIN_MS = 5_000;
/** Of a commit that the planner's own may come before. */
const TRIES = 5;

export interface AdoptDeskParts {
  readonly store: Store;
  readonly controller: Controller;
  readonly executor: Executor;
  readonly kube: KubeApi;
  readonly pools: Informer<PoolEntry>;
  readonly clock: Clock;
  readonly preflight?: Preflight | undefined;
}

interface Subject {
  readonly pool: string;
  readonly entry: PoolEntry;
  readonly authority: Authority;
  readonly rows: PoolRows;
  readonly target: Omit<TargetObjectRef, "uid">;
  /** `Deployment/web`. */
  readonly name: string;
}

export async function adopt(parts: AdoptDeskParts, entry: PoolEntry, command: AdoptCommand): Promise<AdoptionResult> {
  const subject = await subjectOf(parts, entry);
  const { name, pool, rows } = subject;
  const object = await readTarget(parts, subject);
  const owners = await ownersOf(parts, subject, object);
  const facts = { pool, target: name, uid: object.uid, replicas: object.replicas, at: parts.clock.now(), resetTo: null };
  if (
    rows.scale?.adopted?.uid === object.uid &&
    othersOf(rows, { owners: autoscalersOf(owners), takenAt: takenAtOf(parts, pool) }, object).length === 0
  )
    return { ...facts, outcome: "already_adopted", at: rows.scale.adopted.at, removed: rows.scale.adopted.removed, owners: [] };
  refuseInvalidSignal(parts, pool);
  await refuseByPreflight(parts.preflight, pool, entry.document);
  const removed = ownerToRemove(subject, owners, command);
  refuseOthers(subject, owners, removed, command);
  const gone = removed === null ? null : nameOfOwner(removed);
  if (command.dryRun) return { ...facts, outcome: "would_adopt", removed: gone, owners };
  if (removed !== null) await remove(parts, subject, object, removed, command.by);
  const handOver = { before: object, removed: gone, isScaledObject: removed?.kind === "ScaledObject", by: command.by };
  return overAgain(() => settle(parts, subject, handOver));
}

/** The target keeps its count, and the Pool only tells from now on what it would do. */
export async function releaseTarget(parts: AdoptDeskParts, entry: PoolEntry, by: string): Promise<AdoptionResult> {
  const subject = await subjectOf(parts, entry);
  const { pool, name } = subject;
  const { scale, adopted, at } = await overAgain(() => commitRelease(parts, subject, by));
  parts.controller.wake(pool);
  await untilLooked(parts, pool, at);
  await atRest(parts, subject);
  const none = { removed: null, owners: [], resetTo: null };
  return { pool, target: name, uid: adopted.uid, replicas: scale.desired, outcome: "released", at, ...none };
}

interface Release {
  readonly scale: ScaleState;
  readonly adopted: Adoption;
  readonly at: Instant;
}

async function commitRelease(parts: AdoptDeskParts, subject: Subject, by: string): Promise<Release> {
  const { pool, name, authority } = subject;
  const { scale } = await atRest(parts, subject);
  if (scale?.adopted === undefined)
    throw new RelevoError("adopt_not_adopted", `${name} is not pool ${pool}'s`, { class: "conflict", todo: "nothing is to be released" });
  const at = parts.clock.now();
  const { adopted, ...rest } = scale;
  const why = reason("scale_released", { by, target: name, replicas: scale.desired });
  await parts.store.commit(
    authority,
    [{ kind: "set_desired", from: scale.desired, to: scale.desired, state: { ...rest, changedAt: at }, reason: why }],
    at,
  );
  return { scale, adopted, at };
}

/** Passes come one after the other: when one has begun since, whatever the one before it decided is begun too. Throws `adopt_busy`. */
async function untilLooked({ controller, clock }: AdoptDeskParts, pool: string, since: Instant): Promise<void> {
  const until = clock.monotonic() + AT_REST_WITHIN_MS;
  while ((controller.lastPass(pool)?.snapshot.scale?.adopted ?? null) !== null || (controller.lastPass(pool)?.at ?? 0) < since) {
    if (clock.monotonic() >= until)
      throw new RelevoError("adopt_busy", `pool ${pool} was not looked at since its target was given back: a write may be under way`, {
        class: "retryable",
        todo: "see npx relevo explain",
      });
    await clock.sleep(LOOK_EVERY_MS);
  }
}

/** When nothing is being written: what was begun under the adoption would end after it. Throws `adopt_busy`. */
async function atRest({ store, clock }: AdoptDeskParts, { pool, name, rows: first }: Subject): Promise<PoolRows> {
  const until = clock.monotonic() + AT_REST_WITHIN_MS;
  for (;;) {
    const rows = (await store.readPool(pool)) ?? first;
    if (!rows.openSteps.some(({ kind }) => kind.startsWith("scale_target/"))) return rows;
    if (clock.monotonic() >= until)
      throw new RelevoError("adopt_busy", `${name} is being scaled`, { class: "retryable", todo: "try again in a second" });
    await clock.sleep(LOOK_EVERY_MS);
  }
}

async function subjectOf({ store, controller }: AdoptDeskParts, entry: PoolEntry): Promise<Subject> {
  const { key: pool, document, isDeleting } = entry;
  const { target } = document.spec;
  if (target === undefined || isDeleting)
    throw new RelevoError("adopt_no_target", `pool ${pool} ${isDeleting ? "is being deleted" : "has no target"}`, {
      class: "conflict",
      found: pool,
      allowed: "a Pool with spec.target",
      todo: "name the workload in spec.target, beside spec.scale",
    });
  refuseRewound(controller, pool);
  const authority = controller.authorityOf(pool);
  const rows = authority && (await store.readPool(pool));
  if (authority === undefined || rows === undefined)
    throw new RelevoError("pool_not_ready", `pool ${pool} has not been looked at yet`, {
      class: "retryable",
      todo: "try again in a second",
    });
  const { namespace } = document.metadata;
  return { pool, entry, authority, rows, target: { ...target, namespace }, name: `${target.kind}/${target.name}` };
}

async function readTarget({ kube }: Pick<AdoptDeskParts, "kube">, { target, name, pool }: Subject): Promise<TargetObject> {
  const read = await findObject(kube, refOfTarget(target));
  const object = read && targetObjectOf(read);
  if (object === undefined || object.isDeleting)
    throw new RelevoError("adopt_target_gone", `there is no ${name} that pool ${pool} could own`, {
      class: "conflict",
      found: object === undefined ? "nothing of that name" : "it is being deleted",
      allowed: `a ${target.kind} ${target.name} in ${target.namespace}`,
    });
  return object;
}

/** All, read now: autoscalers, other Pools, and field managers as if it were nobody's yet. */
async function ownersOf(
  { kube, pools, controller }: Pick<AdoptDeskParts, "kube" | "pools" | "controller">,
  subject: Subject,
  object: TargetObject,
): Promise<readonly ScaleOwner[]> {
  const { target, pool, rows } = subject;
  const others = pools.list().flatMap(({ document: { metadata, spec } }): readonly ScaleOwner[] => {
    const key = poolKey(metadata.namespace, metadata.name);
    const isSame = metadata.namespace === target.namespace && spec.target?.kind === target.kind && spec.target.name === target.name;
    return isSame && key !== pool ? [{ kind: "Pool", name: key, uid: "" }] : [];
  });
  const managers = managersAgainst(object.managers, rows.scale?.adopted, object.uid, takenAtOf({ controller }, pool)).map(ownerOfManager);
  return [...(await readAutoscalers(kube, target)), ...others, ...managers];
}

function takenAtOf({ controller }: Pick<AdoptDeskParts, "controller">, pool: string): Instant | null {
  return controller.lastPass(pool)?.snapshot.target?.takenAt ?? null;
}

function autoscalersOf(owners: readonly ScaleOwner[]): readonly ScaleOwner[] {
  return owners.filter(({ kind }) => kind !== "Manager");
}

function refuseInvalidSignal({ controller }: Pick<AdoptDeskParts, "controller">, pool: string): void {
  const demand = controller.lastPass(pool)?.snapshot.demand ?? null;
  if (demand?.reading && demand.trouble === null) return;
  const found = demand?.trouble ? `${demand.trouble.code}: ${demand.trouble.detail}` : "it was not read yet";
  throw new RelevoError("adopt_signal_invalid", `the signal of pool ${pool} is not valid, so nothing is taken over`, {
    class: demand?.trouble ? "conflict" : "retryable",
    found,
    allowed: "a signal that was read by a real call and can be believed",
    todo: "see npx relevo explain, and relevo controller --connections",
  });
}

const SHORT: Readonly<Record<string, string>> = { hpa: "HorizontalPodAutoscaler", so: "ScaledObject" };

/** Whether `--remove-owner` may mean this kind. */
function isKind(asked: string, kind: string): boolean {
  const wanted = asked.toLowerCase();
  return wanted === kind.toLowerCase() || SHORT[wanted] === kind;
}

function ownerToRemove(subject: Subject, owners: readonly ScaleOwner[], { removeOwner: asked }: AdoptCommand): ScaleOwner | null {
  if (asked === null) return null;
  const found = owners.find((owner) => isKind(asked.kind, owner.kind) && owner.name === asked.name);
  const refuse = (sentence: string, todo: string): never => {
    throw new RelevoError("adopt_owner_refused", sentence, {
      class: "conflict",
      found: `${asked.kind}/${asked.name} with UID ${asked.uid}`,
      allowed: listOf(owners) || "nobody: it has no other owner",
      todo,
    });
  };
  if (found === undefined || !(REMOVABLE_OWNERS as readonly string[]).includes(found.kind))
    return refuse(`${asked.kind}/${asked.name} is no autoscaler of ${subject.name}`, "name one that sets its count");
  if (found.uid !== asked.uid) return refuse(`${nameOfOwner(found)} has another UID`, "it was made anew: look at it before it is removed");
  if (found.kind === "HorizontalPodAutoscaler" && found.madeBy !== null)
    return refuse(`${nameOfOwner(found)} is made by ScaledObject/${found.madeBy}`, "remove the ScaledObject: KEDA takes it away then");
  if (found.kind === "ScaledObject" && found.restores !== undefined)
    return refuse(
      `${nameOfOwner(found)} puts the count back to ${found.restores ?? "what it was before it"} when it is removed`,
      `set its spec.advanced.restoreToOriginalReplicaCount to false first`,
    );
  return found;
}

/** Whoever would still set the count afterwards. */
function refuseOthers(subject: Subject, owners: readonly ScaleOwner[], removed: ScaleOwner | null, { acceptManagers }: AdoptCommand): void {
  const left = owners.filter((owner) => {
    if (removed !== null && owner.kind === removed.kind && owner.name === removed.name) return false;
    if (owner.kind === "HorizontalPodAutoscaler" && owner.madeBy !== null)
      return !owners.some((other) => other.kind === "ScaledObject" && other.name === owner.madeBy);
    return owner.kind !== "Manager" || !acceptManagers.includes(owner.name);
  });
  if (left.length === 0) return;
  throw new RelevoError("adopt_other_owners", `${subject.name} has ${left.length === 1 ? "an owner" : "owners"} already`, {
    class: "conflict",
    found: listOf(left),
    allowed: "one owner of a replica count",
    todo: left.map((owner) => todoOf(owner, subject)).join("; "),
  });
}

function listOf(owners: readonly ScaleOwner[]): string {
  return owners.map((owner) => `${nameOfOwner(owner)}${owner.uid === "" ? "" : ` (UID ${owner.uid})`} ${deedOf(owner)}`).join("; ");
}

function todoOf(owner: ScaleOwner, { pool, name }: Subject): string {
  switch (owner.kind) {
    case "HorizontalPodAutoscaler":
    case "ScaledObject":
      return `relevo adopt ${pool} --remove-owner ${nameOfOwner(owner)} --uid ${owner.uid}`;
    case "Pool":
      return `delete pool ${owner.name}, or give it another target`;
    case "Manager":
      return todoOfManager(owner.name, name);
    default:
      return owner satisfies never;
  }
}

function todoOfManager(manager: string, target: string): string {
  const accept = `then --accept-manager ${manager}`;
  if (roleOf(manager) !== "gitops")
    return `take spec.replicas of ${target} out of what ${manager} applies (kubectl apply would set it to 1 then: kubectl apply edit-last-applied first), ${accept}`;
  if (/^argo/i.test(manager))
    return `in its Application ignore it (ignoreDifferences: jsonPointers /spec/replicas, syncOptions RespectIgnoreDifferences=true), ${accept}`;
  return `take spec.replicas of ${target} out of its repository, ${accept}`;
}

/** Waits until fresh reads show neither it nor what it made. Throws `adopt_owner_remains`. */
async function remove(parts: AdoptDeskParts, subject: Subject, object: TargetObject, owner: ScaleOwner, by: string): Promise<void> {
  const { executor, clock, kube } = parts;
  const { pool, authority, target, entry, name } = subject;
  const kind = REMOVABLE_OWNERS.find((each) => each === owner.kind);
  if (kind === undefined) return;
  const command = { pool, by, kind, name: owner.name, uid: owner.uid, target: { ...target, uid: object.uid } };
  const until = clock.monotonic() + OWNER_GONE_WITHIN_MS;
  await Promise.race([executor.start(authority, draftRemoveOwner(command, entry.document.spec)), clock.sleep(OWNER_GONE_WITHIN_MS)]);
  for (;;) {
    const left = await readAutoscalers(kube, target);
    const remain = left.filter(
      (each) =>
        each.uid === owner.uid || (each.kind === "HorizontalPodAutoscaler" && owner.kind === "ScaledObject" && each.madeBy === owner.name),
    );
    if (remain.length === 0) return;
    if (clock.monotonic() >= until)
      throw new RelevoError(
        "adopt_owner_remains",
        `${remain.map(nameOfOwner).join(", ")} of ${name} is not gone yet, so it is not adopted`,
        {
          class: "retryable",
          found: listOf(remain),
          todo: "see relevo get steps; the same command goes on when it is gone",
        },
      );
    await clock.sleep(LOOK_EVERY_MS);
  }
}

interface HandOver {
  readonly before: TargetObject;
  readonly removed: string | null;
  readonly isScaledObject: boolean;
  readonly by: string;
}

/** The planner may decide in between: then from what is there by then. */
async function overAgain<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (tries >= TRIES || !(error instanceof RelevoError) || error.code !== "store_conflict") throw error;
    }
  }
}

/** Fresh reads once more: whoever came meanwhile is seen before it is adopted. */
async function settle(parts: AdoptDeskParts, subject: Subject, handOver: HandOver): Promise<AdoptionResult> {
  const { store, controller, clock, kube } = parts;
  const { pool, target, name, authority } = subject;
  const { before, removed, isScaledObject, by } = handOver;
  const scale = (await store.readPool(pool))?.scale ?? null;
  const after = await readTarget(parts, subject);
  if (after.uid !== before.uid)
    throw new RelevoError("adopt_target_replaced", `${name} was made anew meanwhile`, {
      class: "conflict",
      found: after.uid,
      allowed: before.uid,
    });
  const others = await readAutoscalers(kube, target);
  if (others.length > 0)
    throw new RelevoError("adopt_other_owners", `${name} got another owner meanwhile`, { class: "conflict", found: listOf(others) });
  // An autoscaler's last word before it went is its word; KEDA's reset is none.
  const isReset = isScaledObject && after.replicas !== before.replicas;
  const replicas = isReset ? before.replicas : after.replicas;
  const at = clock.now();
  const adopted: Adoption = {
    ...{ uid: after.uid, by, at, replicas, removed },
    managers: after.managers.filter(({ manager }) => manager !== OWN_MANAGER),
  };
  const why = reason("scale_adopted", { by, target: name, removed: removed ?? "nobody", replicas });
  const state = { desired: replicas, changedAt: at, direction: null, lastUp: null, recent: [], adopted };
  await store.commit(authority, [{ kind: "set_desired", from: scale?.desired ?? replicas, to: replicas, state, reason: why }], at);
  controller.wake(pool);
  return {
    ...{ pool, target: name, uid: after.uid, replicas, outcome: "adopted", at, removed },
    owners: await readAutoscalers(kube, target),
    resetTo: isReset ? after.replicas : null,
  };
}
