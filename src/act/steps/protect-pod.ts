/** Marks a pod as not to be disrupted, once its owners' UIDs lead to what this instance was made of (D2). */
import { z } from "zod";
import { findObject } from "../../kube/find-object.ts";
import { PODS } from "../../kube/resources.ts";
import { ANNOTATIONS, PROTECTION_MARKS } from "../../model/marks.ts";
import { done, happened, NOT_HAPPENED, type StepKind, superseded } from "../step-kind.ts";
import { annotationOf, ownedObjectSchema, podRefSchema } from "./objects.ts";
import { recordedOwnerOf } from "./recorded-owner.ts";

export const protectPodSchema = z.object({
  pod: podRefSchema,
  /** As the create step recorded them. */
  objects: z.array(ownedObjectSchema),
});
export type ProtectPod = z.infer<typeof protectPodSchema>;

/** The value of the mark: who set it, and which of the marks that others read were set with it. Only these may ever be removed. */
const protectedBySchema = z.object({ step: z.string(), set: z.array(z.string()) });

export const protectPod: StepKind<ProtectPod> = {
  kind: "protect_pod/1",
  schema: protectPodSchema,

  async act(payload, { kube, step }) {
    const ref = { type: PODS, namespace: payload.pod.namespace, name: payload.pod.name };
    const seen = await findObject(kube, ref);
    if (seen === undefined) return superseded("pod_gone");
    if (seen.metadata.uid !== payload.pod.uid) return superseded("pod_replaced");
    if (seen.metadata.deletionTimestamp !== undefined) return superseded("pod_deleting");
    if (annotationOf(seen, ANNOTATIONS.protectedBy) !== undefined) return done("already_protected");
    if ((await recordedOwnerOf(kube, seen, payload.objects)) === undefined) return superseded("owner_not_ours");

    const set = Object.keys(PROTECTION_MARKS).filter((mark) => annotationOf(seen, mark) === undefined); // a user's own mark stays as it is
    await kube.patch(ref, {
      metadata: {
        uid: payload.pod.uid,
        resourceVersion: seen.metadata.resourceVersion,
        annotations: {
          ...Object.fromEntries(set.map((mark) => [mark, PROTECTION_MARKS[mark]])),
          [ANNOTATIONS.protectedBy]: JSON.stringify({ step: step.id, set }),
        },
      },
    });
    return done("protected", { set });
  },

  /** The marker travels in the same patch as the marks. */
  async probe({ pod }, { kube, step }) {
    const seen = await findObject(kube, { type: PODS, namespace: pod.namespace, name: pod.name });
    if (seen?.metadata.uid !== pod.uid) return NOT_HAPPENED;
    const marker = parseMarker(annotationOf(seen, ANNOTATIONS.protectedBy));
    return marker?.step === step.id ? happened("protected", { set: marker.set }) : NOT_HAPPENED;
  },

  settle: () => [],
};

export function parseMarker(text: string | undefined): z.infer<typeof protectedBySchema> | undefined {
  if (text === undefined) return undefined;
  try {
    return protectedBySchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined; // not of our writing
  }
}
