/** The objects of one instance: found by record and by the mark of its create step, deleted by UID. */
import { z } from "zod";
import { asServiceAccount, isNotFound, type KubeApi, type KubeObject } from "../../kube/api.ts";
import { RelevoError } from "../../kernel/errors.ts";
import type { OwnedObject } from "../../model/instance.ts";
import { ANNOTATIONS, LABELS } from "../../model/marks.ts";
import { isAttemptOf } from "../step-id.ts";
import { done, happened, NOT_HAPPENED, type Outcome, type Probe } from "../step-kind.ts";
import { listAll } from "./list-all.ts";
import { annotationOf, blueprintTypes, findOwned, ownedObjectOf, ownedObjectSchema, refOfOwned } from "./objects.ts";

export const madeForSchema = z.object({
  instance: z.string(),
  namespace: z.string(),
  objects: z.array(ownedObjectSchema),
  /** The create step, without its attempt: what carries its mark is ours. */
  createdBy: z.string(),
  /** The ServiceAccount of the namespace as which it is done; the controller itself without one. */
  serviceAccount: z.string().optional(),
});
export type MadeFor = z.infer<typeof madeForSchema>;

/** Done only when none of it can be read any more; until then it throws what is tried again. */
export async function deleteAll(made: MadeFor, caller: KubeApi): Promise<Outcome> {
  const kube = asServiceAccount(caller, made.namespace, made.serviceAccount);
  for (const object of await remaining(made, kube)) await deleteExactly(object, kube);
  const left = await remaining(made, kube);
  if (left.length > 0) throw stillThere(made.instance, left);
  return done("absent");
}

export async function probeAbsence(made: MadeFor, kube: KubeApi): Promise<Probe> {
  return (await remaining(made, asServiceAccount(kube, made.namespace, made.serviceAccount))).length === 0
    ? happened("absent")
    : NOT_HAPPENED;
}

/** What can still be read, by UID, each object once. */
async function remaining(payload: MadeFor, kube: KubeApi): Promise<readonly KubeObjectOfOurs[]> {
  const found = new Map<string, KubeObjectOfOurs>();
  for (const object of payload.objects) {
    const seen = await findOwned(kube, object);
    if (seen !== undefined) found.set(object.uid, { object, seen });
  }
  const labelSelector = `${LABELS.instance}=${payload.instance}`;
  for (const type of blueprintTypes) {
    for (const seen of await listAll(kube, type, { namespace: payload.namespace, labelSelector })) {
      if (!isAttemptOf(payload.createdBy, annotationOf(seen, ANNOTATIONS.step))) continue;
      // A copy under another name has all our marks: what a blueprint makes bears the instance in its name.
      if (!seen.metadata.name.includes(payload.instance)) continue;
      found.set(seen.metadata.uid, { object: ownedObjectOf(seen, type), seen });
    }
  }
  return [...found.values()];
}

interface KubeObjectOfOurs {
  readonly object: OwnedObject;
  readonly seen: KubeObject;
}

async function deleteExactly({ object, seen }: KubeObjectOfOurs, kube: KubeApi): Promise<void> {
  if (seen.metadata.deletionTimestamp !== undefined) return; // its finalizers take their time
  try {
    await kube.delete(refOfOwned(object), { preconditions: { uid: object.uid }, propagationPolicy: "Background" });
  } catch (error) {
    if (!isNotFound(error)) throw error; // somebody else was quicker
  }
}

function stillThere(instance: string, left: readonly KubeObjectOfOurs[]): RelevoError {
  return new RelevoError("objects_remain", `Objects of ${instance} are deleted and not yet gone.`, {
    class: "retryable",
    found: left.map(({ object }) => `${object.kind} ${object.name}`),
  });
}
