/**
 * Deletes the pod of one member of a cluster under its UID, so that its own workload makes the next one. Only a pod whose owners lead by UID to what this instance
 * was made of (D2), and never that of the lead: it is the instance.
 */
import { z } from "zod";
import { asServiceAccount, isNotFound } from "../../kube/api.ts";
import { findObject } from "../../kube/find-object.ts";
import { PODS } from "../../kube/resources.ts";
import { done, failed, happened, NOT_HAPPENED, type StepKind, superseded } from "../step-kind.ts";
import { ownedObjectSchema, podRefSchema } from "./objects.ts";
import { recordedOwnerOf } from "./recorded-owner.ts";

const replaceMemberSchema = z.object({
  instance: z.string(),
  /** The id of the evidence for it. */
  evidence: z.string(),
  pod: podRefSchema,
  /** As the create step recorded them, the lead first. */
  objects: z.array(ownedObjectSchema),
  /** The ServiceAccount of the namespace as which it is done; the controller itself without one. */
  serviceAccount: z.string().optional(),
});
export type ReplaceMember = z.infer<typeof replaceMemberSchema>;

export const replaceMember: StepKind<ReplaceMember> = {
  kind: "replace_member/1",
  schema: replaceMemberSchema,

  async act({ pod, objects, serviceAccount }, { kube }) {
    const ref = { type: PODS, namespace: pod.namespace, name: pod.name };
    const seen = await findObject(kube, ref);
    if (seen === undefined) return superseded("pod_gone");
    if (seen.metadata.uid !== pod.uid) return superseded("pod_replaced");
    if (seen.metadata.deletionTimestamp !== undefined) return superseded("pod_deleting");
    const owner = await recordedOwnerOf(kube, seen, objects);
    if (owner === undefined) return superseded("owner_not_ours");
    if (owner.uid === objects[0]?.uid) return failed("is_lead");
    try {
      await asServiceAccount(kube, pod.namespace, serviceAccount).delete(ref, {
        preconditions: { uid: pod.uid },
        propagationPolicy: "Background",
      });
    } catch (error) {
      if (!isNotFound(error)) throw error; // somebody else was quicker
    }
    return done("member_deleted");
  },

  async probe({ pod }, { kube }) {
    const seen = await findObject(kube, { type: PODS, namespace: pod.namespace, name: pod.name });
    const isGone = seen?.metadata.uid !== pod.uid || seen.metadata.deletionTimestamp !== undefined;
    return isGone ? happened("member_deleted") : NOT_HAPPENED;
  },

  settle: () => [],
};
