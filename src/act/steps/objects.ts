/** What the steps read of Kubernetes objects, and how they find them again. */
import { z } from "zod";
import { RelevoError } from "../../kernel/errors.ts";
import type { KubeApi, KubeObject, ObjectRef, OwnerReference, ResourceType } from "../../kube/api.ts";
import { findObject } from "../../kube/find-object.ts";
import { CONFIG_MAPS, DEPLOYMENTS, PERSISTENT_VOLUME_CLAIMS, SERVICES, STATEFUL_SETS, apiVersionOf } from "../../kube/resources.ts";
import type { OwnedObject } from "../../model/instance.ts";
import type { BLUEPRINT_KINDS } from "../../model/pool.ts";

export const nodeRefSchema = z.object({ name: z.string(), uid: z.string() });
export const podRefSchema = z.object({ namespace: z.string(), name: z.string(), uid: z.string() });
export const ownedObjectSchema = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
});

const BLUEPRINT_TYPES: Readonly<Record<(typeof BLUEPRINT_KINDS)[number], ResourceType>> = {
  Deployment: DEPLOYMENTS,
  StatefulSet: STATEFUL_SETS,
  Service: SERVICES,
  ConfigMap: CONFIG_MAPS,
  PersistentVolumeClaim: PERSISTENT_VOLUME_CLAIMS,
};

/** Every type that a blueprint may make. */
export const blueprintTypes: readonly ResourceType[] = Object.values(BLUEPRINT_TYPES);

/** Undefined when no blueprint may hold it. The group counts: a custom Deployment of another group is none. */
export function findBlueprintType(apiVersion: string, kind: string): ResourceType | undefined {
  return blueprintTypes.find((type) => type.kind === kind && apiVersionOf(type) === apiVersion);
}

/** The very object that was recorded: undefined when it is gone or another took its name. */
export async function findOwned(kube: KubeApi, object: OwnedObject): Promise<KubeObject | undefined> {
  const seen = await findObject(kube, refOfOwned(object));
  return seen?.metadata.uid === object.uid ? seen : undefined;
}

export function refOfOwned(object: OwnedObject): ObjectRef {
  const type = findBlueprintType(object.apiVersion, object.kind);
  if (type === undefined)
    throw new RelevoError("kind_not_allowed", "An object of this kind cannot have been made from a blueprint.", { found: object });
  return { type, namespace: object.namespace, name: object.name };
}

export function ownedObjectOf(object: KubeObject, type: ResourceType): OwnedObject {
  const { namespace, name, uid } = object.metadata;
  return { apiVersion: apiVersionOf(type), kind: type.kind, namespace: namespace ?? "", name, uid };
}

export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller === true);
}

const conditionsSchema = z.object({
  status: z.object({ conditions: z.array(z.object({ type: z.string(), status: z.string() })) }),
});

/** `True`, `False`, `Unknown`; undefined when it is not there. The order of conditions means nothing. */
export function conditionOf(object: KubeObject, type: string): string | undefined {
  const parsed = conditionsSchema.safeParse(object);
  return parsed.success ? parsed.data.status.conditions.find((condition) => condition.type === type)?.status : undefined;
}

const unschedulableSchema = z.object({ spec: z.object({ unschedulable: z.literal(true) }) });

export function isUnschedulable(node: KubeObject): boolean {
  return unschedulableSchema.safeParse(node).success;
}

export function annotationOf(object: KubeObject, name: string): string | undefined {
  return object.metadata.annotations?.[name];
}
