/**
 * Deletes what an instance was made of, each object by its UID, and is done only when none of it can be read any more (D5, I8). Beside the recorded objects
 * it takes those that carry the instance's label and a mark of its own create step: a create that was overtaken leaves no record of what it made. Pods and
 * nodes are never deleted here, and nothing is evicted.
 */
import { z } from "zod";
import { isNotFound, type KubeApi, type KubeObject } from "../../kube/api.ts";
import { listAll } from "./list-all.ts";
import { RelevoError } from "../../kernel/errors.ts";
import type { OwnedObject } from "../../model/instance.ts";
import { ANNOTATIONS, LABELS } from "../../model/marks.ts";
import type { Change } from "../../store/port.ts";
import { done, happened, NOT_HAPPENED, type StepKind } from "../step-kind.ts";
import { isAttemptOf } from "../step-id.ts";
import { annotationOf, blueprintTypes, findOwned, ownedObjectOf, ownedObjectSchema, refOfOwned } from "./objects.ts";

const deleteInstanceSchema = z.object({
  instance: z.string(),
  namespace: z.string(),
  /** `retiring`: an earlier attempt ended in vain. */
  from: z.enum(["sealed", "failed", "retiring"]),
  objects: z.array(ownedObjectSchema),
  /** The create step, without its attempt: what carries its mark is ours. */
  createdBy: z.string(),
});
export type DeleteInstance = z.infer<typeof deleteInstanceSchema>;

export const deleteInstance: StepKind<DeleteInstance> = {
  kind: "delete_instance/1",
  schema: deleteInstanceSchema,
  /** A create that still runs could make an object after the last look for it. */
  after: ["create_instance/1"],

  begin: ({ instance, from }) =>
    from === "retiring"
      ? [{ kind: "update_instance", instance, phase: "retiring", set: {} }]
      : [{ kind: "move_instance", instance, from, to: "retiring" }],

  guard: ({ instance }) => [{ kind: "update_instance", instance, phase: "retiring", set: {} }],

  async act(payload, { kube }) {
    for (const object of await remaining(payload, kube)) await deleteExactly(object, kube);
    const left = await remaining(payload, kube);
    if (left.length > 0) throw stillThere(payload.instance, left);
    return done("absent");
  },

  async probe(payload, { kube }) {
    return (await remaining(payload, kube)).length === 0 ? happened("absent") : NOT_HAPPENED;
  },

  settle: ({ instance }, outcome): readonly Change[] =>
    outcome.state === "done" ? [{ kind: "move_instance", instance, from: "retiring", to: "retired" }] : [],
};

/** What can still be read, by UID, each object once. */
async function remaining(payload: DeleteInstance, kube: KubeApi): Promise<readonly KubeObjectOfOurs[]> {
  const found = new Map<string, KubeObjectOfOurs>();
  for (const object of payload.objects) {
    const seen = await findOwned(kube, object);
    if (seen !== undefined) found.set(object.uid, { object, seen });
  }
  const labelSelector = `${LABELS.instance}=${payload.instance}`;
  for (const type of blueprintTypes) {
    for (const seen of await listAll(kube, type, { namespace: payload.namespace, labelSelector })) {
      if (!isAttemptOf(payload.createdBy, annotationOf(seen, ANNOTATIONS.step))) continue;
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
