/**
 * The target's replicas become as many as were decided, by its `scale` and nothing else of it (K3, I20).
 *
 * 1. Read before each write: another object, another owner, or another number than the one it was decided from ends the step, and the planner looks anew.
 * 2. Written under the resourceVersion that was read, and read back: what the object says afterwards is the proof.
 */
import { z } from "zod";
import { RelevoError } from "../../kernel/errors.ts";
import { asServiceAccount, type KubeApi, type KubeObject } from "../../kube/api.ts";
import { findObject } from "../../kube/find-object.ts";
import { targetObjectOf } from "../../model/parse-scale-owner.ts";
import type { TargetObject } from "../../model/scale-owner.ts";
import { managersAgainst } from "../../plan/scaling/target.ts";
import { done, happened, NOT_HAPPENED, type StepKind, superseded } from "../step-kind.ts";
import { readAutoscalers, refOfTarget, targetRefSchema, type TargetObjectRef } from "./targets.ts";

const managerSchema = z.object({ manager: z.string(), operation: z.string(), subresource: z.string(), at: z.number().nullable() });

const scaleTargetSchema = z.object({
  target: targetRefSchema,
  from: z.int().min(0),
  to: z.int().min(0),
  /** Who had written the count when it was adopted. */
  managers: z.array(managerSchema),
  serviceAccount: z.string().optional(),
});
export type ScaleTarget = z.infer<typeof scaleTargetSchema>;

export const scaleTarget: StepKind<ScaleTarget> = {
  kind: "scale_target/1",
  schema: scaleTargetSchema,

  async act({ target, from, to, managers, serviceAccount }, { kube: api }) {
    const kube = asServiceAccount(api, target.namespace, serviceAccount);
    const seen = await findTarget(kube, target);
    if (seen === undefined) return superseded("target_gone");
    const { object, read } = seen;
    if (object.uid !== target.uid) return superseded("target_replaced");
    if (object.isDeleting) return superseded("target_gone");
    if (object.isPaused) return superseded("target_paused");
    const adopted = { uid: target.uid, by: "", at: 0, replicas: from, managers, removed: null };
    if (managersAgainst(object.managers, adopted, object.uid).length > 0) return superseded("other_owner");
    if (object.replicas === to) return done("scaled");
    if (object.replicas !== from) return superseded("replicas_changed", { replicas: object.replicas });
    if ((await readAutoscalers(kube, target)).length > 0) return superseded("other_owner");
    await kube.patchScale(refOfTarget(target), {
      metadata: { uid: target.uid, resourceVersion: read.metadata.resourceVersion },
      spec: { replicas: to },
    });
    const after = await findTarget(kube, target);
    if (after?.object.uid === target.uid && after.object.replicas === to) return done("scaled");
    // Somebody was quicker than the read: the planner sees who.
    return superseded("replicas_changed", { replicas: after?.object.replicas ?? null });
  },

  /** That it says so is the proof, whoever wrote it: the same again changes nothing. */
  async probe({ target, to, serviceAccount }, { kube }) {
    const seen = await findTarget(asServiceAccount(kube, target.namespace, serviceAccount), target);
    return seen?.object.uid === target.uid && seen.object.replicas === to ? happened("scaled") : NOT_HAPPENED;
  },

  settle: () => [],
};

async function findTarget(
  kube: KubeApi,
  target: TargetObjectRef,
): Promise<{ readonly object: TargetObject; readonly read: KubeObject } | undefined> {
  const read = await findObject(kube, refOfTarget(target));
  if (read === undefined) return undefined;
  const object = targetObjectOf(read);
  if (object !== undefined) return { object, read };
  throw new RelevoError("target_malformed", `${target.kind} ${target.name} has no replica count.`, { class: "retryable" });
}
