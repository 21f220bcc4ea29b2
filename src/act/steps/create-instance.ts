/**
 * Makes the objects of one instance, each under a name that the instance gives, marked with the step (D5). A name that is taken is ours when it carries our
 * mark: the reply to the first try was lost. What a create leaves behind when it fails or is overtaken, the delete step finds by label and mark.
 */
import { z } from "zod";
import { asServiceAccount, isAlreadyExists, type KubeObject, type KubeObjectDraft, type ResourceType } from "../../kube/api.ts";
import { findObject } from "../../kube/find-object.ts";
import type { OwnedObject } from "../../model/instance.ts";
import { ANNOTATIONS, LABELS } from "../../model/marks.ts";
import type { Change } from "../../store/port.ts";
import { isAttemptOf } from "../step-id.ts";
import { done, failed, happened, NOT_HAPPENED, type Outcome, type StepKind, type StepPorts } from "../step-kind.ts";
import { annotationOf, findBlueprintType, ownedObjectOf, ownedObjectSchema } from "./objects.ts";

const objectSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), namespace: z.string() }),
});

const createInstanceSchema = z.object({
  instance: z.string(),
  namespace: z.string(),
  /** This step's id without its attempt. */
  createdBy: z.string(),
  /** Rendered, in the order in which they are made. */
  objects: z.array(objectSchema).min(1),
  /** The ServiceAccount of the namespace as which they are made; the controller itself without one. */
  serviceAccount: z.string().optional(),
});
export type CreateInstance = z.infer<typeof createInstanceSchema>;

const LEADS = ["Deployment", "StatefulSet"];

export const createInstance: StepKind<CreateInstance> = {
  kind: "create_instance/1",
  schema: createInstanceSchema,

  begin: ({ instance }) => [{ kind: "move_instance", instance, from: "pending", to: "creating" }],

  guard: ({ instance }) => [{ kind: "update_instance", instance, phase: "creating", set: {} }],

  async act(payload, ports) {
    for (const object of payload.objects) {
      if (findBlueprintType(object.apiVersion, object.kind) === undefined) return failed("kind_not_allowed");
      if (object.metadata.namespace !== payload.namespace) return failed("namespace_not_allowed");
    }
    const account = asServiceAccount(ports.kube, payload.namespace, payload.serviceAccount);
    const made: OwnedObject[] = [];
    for (const object of payload.objects) {
      const type = findBlueprintType(object.apiVersion, object.kind);
      if (type === undefined) return failed("kind_not_allowed");
      const seen = await createOnce(object, type, payload, { ...ports, kube: account });
      if (seen === undefined) return failed("name_taken", { objects: leadFirst(made) });
      made.push(ownedObjectOf(seen, type));
    }
    return done("created", { objects: leadFirst(made) });
  },

  /** All of its objects are there with its mark; when some are missing, making the rest is the same step. */
  async probe(payload, { kube }) {
    const account = asServiceAccount(kube, payload.namespace, payload.serviceAccount);
    const found: OwnedObject[] = [];
    for (const { apiVersion, kind, metadata } of payload.objects) {
      const type = findBlueprintType(apiVersion, kind);
      if (type === undefined) return NOT_HAPPENED;
      const seen = await findObject(account, { type, namespace: payload.namespace, name: metadata.name });
      if (seen === undefined || !isOurs(seen, payload)) return NOT_HAPPENED;
      found.push(ownedObjectOf(seen, type));
    }
    return happened("created", { objects: leadFirst(found) });
  },

  settle({ instance }, outcome): readonly Change[] {
    switch (outcome.state) {
      case "done":
        return [{ kind: "move_instance", instance, from: "creating", to: "preparing", set: { objects: objectsOf(outcome) } }];
      case "failed":
        return [
          { kind: "move_instance", instance, from: "creating", to: "failed", set: { failure: outcome.code, objects: objectsOf(outcome) } },
        ];
      case "superseded":
        return [];
      default:
        return outcome.state satisfies never;
    }
  },
};

type Rendered = CreateInstance["objects"][number];

/** Undefined when the name is somebody else's. */
async function createOnce(
  object: Rendered,
  type: ResourceType,
  payload: CreateInstance,
  { kube, step }: StepPorts,
): Promise<KubeObject | undefined> {
  try {
    return await kube.create(type, marked(object, step.id), { namespace: payload.namespace });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const seen = await kube.get({ type, namespace: payload.namespace, name: object.metadata.name });
    return isOurs(seen, payload) ? seen : undefined;
  }
}

function marked(object: Rendered, step: string): KubeObjectDraft {
  const { annotations, ...metadata } = object.metadata;
  return { ...object, metadata: { ...metadata, annotations: { ...Object(annotations), [ANNOTATIONS.step]: step } } };
}

function isOurs(object: KubeObject, { instance, createdBy }: CreateInstance): boolean {
  const step = annotationOf(object, ANNOTATIONS.step);
  return object.metadata.labels?.[LABELS.instance] === instance && isAttemptOf(createdBy, step);
}

function leadFirst(objects: readonly OwnedObject[]): readonly OwnedObject[] {
  const lead = objects.find(({ kind }) => LEADS.includes(kind));
  return lead === undefined ? objects : [lead, ...objects.filter((object) => object !== lead)];
}

const createdSchema = z.object({ objects: z.array(ownedObjectSchema) });

function objectsOf({ result }: Outcome): readonly OwnedObject[] {
  const parsed = createdSchema.safeParse(result);
  return parsed.success ? parsed.data.objects : [];
}
