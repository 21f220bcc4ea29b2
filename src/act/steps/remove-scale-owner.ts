/** Removes one autoscaler of a target, by an operator's command that named it and its UID (K3, I8). */
import { z } from "zod";
import { asServiceAccount, isNotFound, type ObjectRef } from "../../kube/api.ts";
import { findObject } from "../../kube/find-object.ts";
import { HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS } from "../../kube/resources.ts";
import { autoscalerOf } from "../../model/parse-scale-owner.ts";
import { done, happened, NOT_HAPPENED, type StepKind, superseded } from "../step-kind.ts";
import { targetRefSchema } from "./targets.ts";

export const REMOVABLE_OWNERS = ["HorizontalPodAutoscaler", "ScaledObject"] as const;

const removeScaleOwnerSchema = z.object({
  kind: z.enum(REMOVABLE_OWNERS),
  name: z.string(),
  uid: z.string(),
  target: targetRefSchema,
  serviceAccount: z.string().optional(),
});
export type RemoveScaleOwner = z.infer<typeof removeScaleOwnerSchema>;

function refOf({ kind, name, target: { namespace } }: RemoveScaleOwner): ObjectRef {
  return { type: kind === "ScaledObject" ? SCALED_OBJECTS : HORIZONTAL_POD_AUTOSCALERS, namespace, name };
}

export const removeScaleOwner: StepKind<RemoveScaleOwner> = {
  kind: "remove_scale_owner/1",
  schema: removeScaleOwnerSchema,

  async act(payload, { kube: api }) {
    const kube = asServiceAccount(api, payload.target.namespace, payload.serviceAccount);
    const ref = refOf(payload);
    const seen = await findObject(kube, ref);
    if (seen === undefined) return done("removed");
    if (seen.metadata.uid !== payload.uid) return superseded("owner_replaced");
    const found = autoscalerOf({ ...seen, kind: payload.kind })?.target;
    if (found?.kind !== payload.target.kind || found.name !== payload.target.name) return superseded("owner_of_another");
    // A finalizer may keep it for a while: KEDA takes its HorizontalPodAutoscaler away first.
    if (seen.metadata.deletionTimestamp !== undefined) return done("removed");
    try {
      await kube.delete(ref, { preconditions: { uid: payload.uid }, propagationPolicy: "Background" });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    return done("removed");
  },

  async probe(payload, { kube }) {
    const seen = await findObject(asServiceAccount(kube, payload.target.namespace, payload.serviceAccount), refOf(payload));
    const isGone = seen === undefined || seen.metadata.uid !== payload.uid || seen.metadata.deletionTimestamp !== undefined;
    return isGone ? happened("removed") : NOT_HAPPENED;
  },

  settle: () => [],
};
