/** From what the planner wants to a step whose payload says everything: whoever finishes it needs nothing but the step. */
import { RelevoError } from "../kernel/errors.ts";
import type { InstanceRecord } from "../model/instance.ts";
import type { Placement } from "../model/placement.ts";
import { reason } from "../model/reasons.ts";
import type { StepDraft } from "../model/step.ts";
import type { Effect } from "../plan/decision.ts";
import type { InstanceSnapshot, PoolSnapshot } from "../plan/snapshot.ts";
import { memberTargetOf, targetOf } from "../drivers/target.ts";
import { renderBlueprint } from "./render-blueprint.ts";
import { stepIds } from "./step-id.ts";
import type { AdmitInstance } from "./steps/admit-instance.ts";
import type { CloseInstance } from "./steps/close-instance.ts";
import type { CordonNode } from "./steps/cordon-node.ts";
import type { CreateInstance } from "./steps/create-instance.ts";
import type { DeleteInstance } from "./steps/delete-instance.ts";
import type { DeleteStranger } from "./steps/delete-stranger.ts";
import type { DrainInstance } from "./steps/drain-instance.ts";
import type { DrainMember } from "./steps/drain-member.ts";
import type { PrepareInstance } from "./steps/prepare-instance.ts";
import { memberTargetSchema, type Process, targetSchema } from "./steps/process.ts";
import type { RemoveScaleOwner } from "./steps/remove-scale-owner.ts";
import type { ScaleTarget } from "./steps/scale-target.ts";
import type { ReplaceMember } from "./steps/replace-member.ts";
import type { ProtectPod } from "./steps/protect-pod.ts";
import type { UnprotectPod } from "./steps/unprotect-pod.ts";
import type { UncordonNode } from "./steps/uncordon-node.ts";

/** What is installed in the cluster beside the CRDs. */
export interface ClusterSetup {
  /** The PriorityClasses of `priorityClassOf`: a pod that names one which is missing is never made. */
  readonly hasPriorityClasses?: boolean;
}

/**
 * `blueprint` is the instance's own snapshot (`getBlueprint(record.blueprintHash)`), read only for `create_instance`. Throws `effect_not_possible` when the
 * snapshot does not hold what the effect names: a fault of the planner.
 */
export function draftStep(effect: Effect, snapshot: PoolSnapshot, blueprint: unknown, cluster: ClusterSetup = {}): StepDraft {
  if (effect.kind === "delete_stranger") return draftStranger(effect, snapshot);
  if (effect.kind === "scale_target") return draftScale(effect, snapshot);
  const seen = instanceOf(effect, snapshot);
  const { id: instance } = seen.record;
  const draft = (id: string, kind: string, payload: unknown): StepDraft => ({
    id,
    operation: operationOf(seen.record),
    pool: snapshot.pool,
    instance,
    kind,
    payload,
    reason: effect.reason,
  });
  switch (effect.kind) {
    case "create_instance":
      return draft(stepIds.create(instance), "create_instance/1", createPayload(snapshot, instance, blueprint, effect.placement, cluster));
    case "protect_pod": {
      const payload: ProtectPod = { pod: { namespace: snapshot.namespace, ...effect.pod }, objects: [...seen.record.objects] };
      return draft(stepIds.protect(effect.pod.uid), "protect_pod/1", payload);
    }
    case "unprotect_pod": {
      const payload: UnprotectPod = { pod: { namespace: snapshot.namespace, ...effect.pod }, objects: [...seen.record.objects] };
      return draft(stepIds.unprotect(effect.pod.uid), "unprotect_pod/1", payload);
    }
    case "cordon_node": {
      const payload: CordonNode = { node: effect.node, evidence: effect.evidence };
      return draft(stepIds.cordon(effect.node.uid, effect.evidence), "cordon_node/1", payload);
    }
    case "prepare_instance": {
      const { incarnation } = effect;
      const payload: PrepareInstance = { instance, incarnation, process: requireProcess(effect, seen, snapshot) };
      return draft(stepIds.prepare(instance, incarnation), "prepare_instance/1", payload);
    }
    case "admit_instance":
      return draft(stepIds.admit(instance, effect.incarnation), "admit_instance/1", admitPayload(effect, seen, snapshot));
    case "drain_instance": {
      const { loss, deadline, incarnation } = effect;
      const payload: DrainInstance = {
        instance,
        incarnation,
        from: drainFrom(effect, seen.record),
        loss,
        deadline,
        process: processOf(seen, snapshot),
      };
      return draft(stepIds.drain(instance, incarnation, loss, deadline), "drain_instance/1", payload);
    }
    case "close_instance": {
      const payload: CloseInstance = {
        instance,
        incarnation: effect.incarnation,
        loss: seen.record.drainLoss ?? "voluntary",
        process: requireProcess(effect, seen, snapshot),
      };
      return draft(stepIds.close(instance, effect.incarnation), "close_instance/1", payload);
    }
    case "drain_member": {
      const { how, since, pod } = effect;
      const payload: DrainMember = { instance, evidence: memberEvidenceOf(effect, seen), how, process: memberOf(effect, seen, snapshot) };
      return draft(stepIds.drainMember(pod.uid, how, since), "drain_member/1", payload);
    }
    case "replace_member": {
      const payload: ReplaceMember = {
        instance,
        evidence: memberEvidenceOf(effect, seen),
        pod: { namespace: snapshot.namespace, ...effect.pod },
        objects: [...seen.record.objects],
        ...accountOf(snapshot),
      };
      return draft(stepIds.replaceMember(effect.pod.uid), "replace_member/1", payload);
    }
    case "delete_instance": {
      const { phase, objects } = seen.record;
      if (phase !== "sealed" && phase !== "failed" && phase !== "retiring") throw notPossible(effect, `its phase is ${phase}`);
      const payload: DeleteInstance = {
        instance,
        namespace: snapshot.namespace,
        from: phase,
        objects: [...objects],
        createdBy: stepIds.create(instance),
        ...accountOf(snapshot),
      };
      return draft(stepIds.delete(instance), "delete_instance/1", payload);
    }
    default:
      return effect satisfies never;
  }
}

/** An operator's command; `cordonedBy` is the mark on the node, as `relevo get nodes` shows it. */
export function draftUncordon(command: {
  readonly pool: string;
  readonly node: { readonly name: string; readonly uid: string };
  readonly cordonedBy: string;
  readonly by: string;
}): StepDraft {
  const { pool, node, cordonedBy, by } = command;
  const payload: UncordonNode = { node, cordonedBy };
  const id = stepIds.uncordon(node.uid, cordonedBy);
  return {
    id,
    operation: id,
    pool,
    instance: null,
    kind: "uncordon_node/1",
    payload,
    reason: reason("uncordon_command", { node: node.name, by }),
  };
}

function draftScale(effect: Extract<Effect, { kind: "scale_target" }>, snapshot: PoolSnapshot): StepDraft {
  const { uid, from, to, decidedAt, reason: why } = effect;
  const { spec, pool, namespace, scale } = snapshot;
  if (spec.target === undefined || scale?.adopted?.uid !== uid) throw notPossible(effect, "its target is not adopted");
  const payload: ScaleTarget = {
    target: { ...spec.target, namespace, uid },
    from,
    to,
    managers: [...scale.adopted.managers],
    ...accountOf(snapshot),
  };
  const id = stepIds.scale(uid, decidedAt, from, to);
  return { id, operation: id, pool, instance: null, kind: "scale_target/1", payload, reason: why };
}

/** An operator's command: it named the owner and its UID. */
export function draftRemoveOwner(
  command: Pick<RemoveScaleOwner, "kind" | "name" | "uid" | "target"> & { readonly pool: string; readonly by: string },
  spec: PoolSnapshot["spec"],
): StepDraft {
  const { pool, by, ...owner } = command;
  const payload: RemoveScaleOwner = { ...owner, ...accountOf({ spec }) };
  const id = stepIds.removeOwner(owner.uid);
  const facts = { by, owner: `${owner.kind}/${owner.name}`, uid: owner.uid, target: `${owner.target.kind}/${owner.target.name}` };
  return { id, operation: id, pool, instance: null, kind: "remove_scale_owner/1", payload, reason: reason("scale_owner_removed", facts) };
}

/** There is no row that the step could name. */
function draftStranger(effect: Extract<Effect, { kind: "delete_stranger" }>, snapshot: PoolSnapshot): StepDraft {
  const { instance, reason: why } = effect;
  const stranger = snapshot.strangers.find((each) => each.instance === instance);
  if (stranger === undefined) throw notPossible(effect, "no object of it was seen");
  const id = stepIds.deleteStranger(instance);
  const payload: DeleteStranger = {
    instance,
    namespace: snapshot.namespace,
    objects: [...stranger.objects],
    createdBy: stepIds.create(instance),
    ...accountOf(snapshot),
  };
  return { id, operation: id, pool: snapshot.pool, instance: null, kind: "delete_stranger/1", payload, reason: why };
}

/** The steps of one replacement belong together; all others are their instance's. */
function operationOf({ id, replaces }: InstanceRecord): string {
  return replaces === null ? `instance/${id}` : `replace/${replaces}`;
}

function createPayload(
  snapshot: PoolSnapshot,
  instance: string,
  blueprint: unknown,
  placement: Placement | undefined,
  { hasPriorityClasses = false }: ClusterSetup,
): CreateInstance {
  const { namespace, name, spec } = snapshot;
  const names = { instance, pool: name, site: spec.sites[0] ?? "local", namespace };
  const objects = renderBlueprint(blueprint, hasPriorityClasses ? { ...names, priority: spec.priority } : names, placement);
  return {
    instance,
    namespace,
    createdBy: stepIds.create(instance),
    objects: objects as CreateInstance["objects"],
    ...accountOf(snapshot),
  };
}

/** As it is wanted now: what an earlier account made, the present one must be able to delete. */
function accountOf({ spec: { serviceAccountName } }: Pick<PoolSnapshot, "spec">): { readonly serviceAccount?: string } {
  return serviceAccountName === undefined ? {} : { serviceAccount: serviceAccountName };
}

function admitPayload(effect: Extract<Effect, { kind: "admit_instance" }>, seen: InstanceSnapshot, snapshot: PoolSnapshot): AdmitInstance {
  const { record } = seen;
  if (record.phase !== "validating" && record.phase !== "standby") throw notPossible(effect, `its phase is ${record.phase}`);
  const { nodeName, nodeUid } = record.incarnation;
  // Only the first process of an instance that nothing is held against is a candidate: another one comes back to where it stood, for as long as it may.
  // Without mode Act nothing that is seen of nodes stands in its way (D1).
  const { lease } = snapshot.spec.state;
  const isCandidate = effect.incarnation === 1 && seen.evidence.length === 0 && snapshot.spec.disruption.mode === "Act";
  return {
    instance: record.id,
    incarnation: effect.incarnation,
    from: record.phase,
    process: requireProcess(effect, seen, snapshot),
    node: isCandidate && nodeName !== null && nodeUid !== null ? { name: nodeName, uid: nodeUid } : null,
    ...(lease === undefined ? {} : { lease: { pool: snapshot.pool, ttlMs: lease.ttl } }),
  };
}

function drainFrom(effect: Effect, { phase }: InstanceRecord): DrainInstance["from"] {
  switch (phase) {
    case "preparing":
    case "validating":
    case "admitted":
    case "serving":
    case "draining":
      return phase;
    default:
      throw notPossible(effect, `its phase is ${phase}`);
  }
}

function processOf({ record, health, cluster, pods }: InstanceSnapshot, { namespace, spec }: PoolSnapshot): Process | null {
  const { podName, podUid, containerId, host, port } = record.incarnation;
  if (podName === null || podUid === null || host === null) return null;
  const bootId = record.incarnation.bootId ?? (health.state === "passing" ? health.bootId : null);
  const members = cluster && pods.flatMap(({ process }) => (process ? [{ host: process.host, port: spec.service.port }] : []));
  const target = targetOf(spec, { host, port: port ?? spec.service.port, bootId }, cluster, members);
  return { pod: { namespace, name: podName, uid: podUid }, containerId, target: targetSchema.parse(target) };
}

type OfMember = Extract<Effect, { kind: "drain_member" | "replace_member" }>;

function memberEvidenceOf(effect: OfMember, { memberEvidence = [] }: InstanceSnapshot): string {
  const found = memberEvidence.find(({ podUid }) => podUid === effect.pod.uid);
  if (found === undefined) throw notPossible(effect, "no evidence is about this member");
  return found.id;
}

function memberOf(effect: OfMember, { pods, cluster }: InstanceSnapshot, { namespace, spec }: PoolSnapshot): DrainMember["process"] {
  const process = pods.find(({ uid }) => uid === effect.pod.uid)?.process;
  if (process === undefined) throw notPossible(effect, "nothing was seen to run in its pod");
  const { host, containerId } = process;
  return { pod: { namespace, ...effect.pod }, containerId, target: memberTargetSchema.parse(memberTargetOf(spec, host, cluster)) };
}

function requireProcess(effect: Effect, seen: InstanceSnapshot, snapshot: PoolSnapshot): Process {
  const process = processOf(seen, snapshot);
  if (process === null) throw notPossible(effect, "no process of it was seen");
  return process;
}

type OfInstance = Extract<Effect, { readonly instance: string }>;

function instanceOf(effect: OfInstance, snapshot: PoolSnapshot): InstanceSnapshot {
  const seen = snapshot.instances.find(({ record }) => record.id === effect.instance);
  if (seen === undefined) throw notPossible(effect, "the pool has no such instance");
  return seen;
}

function notPossible(effect: Effect, why: string): RelevoError {
  const of = "instance" in effect ? effect.instance : "the target";
  return new RelevoError("effect_not_possible", `${effect.kind} of ${of} is not possible: ${why}.`, {
    todo: "report it: the planner decided what the snapshot does not allow",
  });
}
