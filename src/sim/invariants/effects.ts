import { baseOf } from "../../act/step-id.ts";
import type { KubeObject } from "../../kube/api.ts";
import { CONFIG_MAPS, DEPLOYMENTS, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, STATEFUL_SETS } from "../../kube/resources.ts";
import { ANNOTATIONS, LABELS } from "../../model/marks.ts";
import type { StepDraft } from "../../model/step.ts";
import type { SimEvent } from "../events.ts";
import type { Checker, Context } from "./checker.ts";

const BLUEPRINT_TYPES = [DEPLOYMENTS, STATEFUL_SETS, SERVICES, CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS];

/** Outcomes that say that this very step had its effect; the others say why it had none. */
const EFFECTIVE: ReadonlySet<string> = new Set(["created", "cordoned", "uncordoned", "protected", "admitted", "told", "closed"]);

/** Watches: effects by the step that they bear, and ends of steps that claim one. */
export function doneStepsHaveTheirEffect(): Checker {
  const recorded = new Map<string, StepDraft>();
  const effects = new Set<string>();
  return {
    id: "D5/effect",
    rule: "a step that is recorded as done had its effect",
    watches: ["committed", "api_write", "instance_performed"],
    on(event, context) {
      if (event.type === "instance_performed") effects.add(baseOf(event.step));
      if (event.type === "api_write") for (const step of stepsOf(event)) effects.add(baseOf(step));
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind === "record_step") recorded.set(change.step.id, change.step);
        if (change.kind === "end_step" && change.outcome === "name_taken" && effects.has(baseOf(change.step)))
          context.violate(`${change.step} ended ${change.outcome}, and what took its name is its own`);
        if (change.kind !== "end_step" || change.state !== "done") continue;
        const step = recorded.get(change.step);
        if (step === undefined || !speaksTheProtocol(step)) continue;
        if (EFFECTIVE.has(change.outcome) && !effects.has(baseOf(step.id)))
          context.violate(`${step.id} ended ${change.outcome}, and nothing of it was ever seen`);
        if (change.outcome !== "absent" || step.instance === null) continue;
        const left = objectsOf(context, step.instance);
        if (left.length > 0) context.violate(`${step.id} ended absent, and ${left.join(", ")} is there`);
      }
    },
  };
}

/** Watches: commits that give an instance's place free. */
export function deletedIsAbsent(): Checker {
  return {
    id: "D5/absence",
    rule: "an instance is deleted when nothing of it can be read any more",
    watches: ["committed"],
    on(event, context) {
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind !== "move_instance" || change.to !== "deleted") continue;
        const pods = context.truth.pods().filter((pod) => isOf(pod, change.instance));
        const left = [...objectsOf(context, change.instance), ...pods.map(({ metadata }) => `pod ${metadata.name}`)];
        if (left.length > 0) context.violate(`${change.instance} is deleted, and ${left.join(", ")} is there`);
      }
    },
  };
}

/** Watches: API writes that protect a pod. */
export function protectionIsProven(): Checker {
  return {
    id: "D2",
    rule: "a pod is protected, and unprotected, under its UID and resourceVersion; of the protected its owners lead to what a step made, of others not",
    watches: ["api_write"],
    on(event, { truth, violate }) {
      if (event.type !== "api_write" || event.ref.type.plural !== PODS.plural) return;
      const { before, after, body } = event;
      const isNew = after?.metadata.annotations?.[ANNOTATIONS.protectedBy] !== before?.metadata.annotations?.[ANNOTATIONS.protectedBy];
      if (before === undefined || !isNew) return;
      const { uid, resourceVersion } = (body as Partial<KubeObject> | undefined)?.metadata ?? {};
      if (uid !== before.metadata.uid) violate(`pod ${event.ref.name} is protected without its UID`);
      if (resourceVersion !== before.metadata.resourceVersion) violate(`pod ${event.ref.name} is protected without its resourceVersion`);
      const replicaSet = before.metadata.ownerReferences?.find(({ controller }) => controller === true);
      const made = BLUEPRINT_TYPES.flatMap((type) => truth.objects(type)).filter((object) => stepMarkOf(object) !== undefined);
      const isOurs = replicaSet !== undefined && made.some(({ metadata }) => isOwnerName(replicaSet.name, metadata.name));
      const isMarked = after?.metadata.annotations?.[ANNOTATIONS.protectedBy] !== undefined;
      if (isMarked !== isOurs)
        violate(`pod ${event.ref.name} is ${isMarked ? "protected, and it is not ours" : "unprotected, and it is ours"}`);
    },
  };
}

/** A ReplicaSet's name is its Deployment's with a hash; a StatefulSet owns its pods itself. */
function isOwnerName(owner: string, made: string): boolean {
  return owner === made || owner.startsWith(`${made}-`);
}

function stepsOf({ ref, method, before, after }: Extract<SimEvent, { type: "api_write" }>): readonly string[] {
  if (method === "create") return [after?.metadata.annotations?.[ANNOTATIONS.step] ?? ""];
  if (ref.type.plural === PODS.plural) {
    const mark = /"step":"([^"]*)"/.exec(after?.metadata.annotations?.[ANNOTATIONS.protectedBy] ?? "");
    return mark?.[1] === undefined ? [] : [mark[1]];
  }
  const cordonedBy = after?.metadata.annotations?.[ANNOTATIONS.cordonedBy];
  if (cordonedBy !== undefined) return [cordonedBy];
  const lifted = before?.metadata.annotations?.[ANNOTATIONS.cordonedBy];
  return lifted === undefined ? [] : [`uncordon/${before?.metadata.uid}/${lifted.replaceAll("#", ".")}`];
}

function speaksTheProtocol({ payload }: StepDraft): boolean {
  const { process } = payload as { readonly process?: { readonly target?: { readonly protocol?: string } } | null };
  return process?.target?.protocol !== "none";
}

function objectsOf({ truth }: Context, instance: string): readonly string[] {
  return BLUEPRINT_TYPES.flatMap((type) =>
    truth.objects(type).filter((object) => isOf(object, instance) && stepMarkOf(object) !== undefined),
  ).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
}

function isOf(object: KubeObject, instance: string): boolean {
  return object.metadata.labels?.[LABELS.instance] === instance;
}

function stepMarkOf(object: KubeObject): string | undefined {
  return object.metadata.annotations?.[ANNOTATIONS.step];
}
