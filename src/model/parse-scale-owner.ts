/** From Kubernetes objects to who sets replica counts, and to what is scaled. Tolerant of everything that is not asked about here. */
import { z } from "zod";
import { parseInstant } from "../kernel/clock.ts";
import type { FieldManager, ScaleOwner, TargetObject } from "./scale-owner.ts";

/** A workload of the group `apps`. */
export interface WorkloadRef {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
}

/** An autoscaler, and whose count it sets. */
export interface Autoscaler {
  readonly target: WorkloadRef;
  readonly owner: ScaleOwner;
}

/** A server keeps far fewer. */
const MANAGERS_MAX = 100;

const nameSchema = z.string().max(253);
const count = z.int().min(0).max(1e9);
const metadata = z.object({
  name: nameSchema,
  namespace: nameSchema,
  uid: z.string().max(253),
  annotations: z.record(z.string(), z.string()).nullish(),
  ownerReferences: z.array(z.object({ kind: z.string(), name: z.string() })).nullish(),
});
const refSchema = z.object({ apiVersion: z.string().nullish(), kind: z.string().nullish(), name: nameSchema });

const hpaSchema = z.object({
  metadata,
  spec: z.object({ scaleTargetRef: refSchema, minReplicas: count.nullish().catch(null), maxReplicas: count.catch(0) }),
});

const scaledObjectSchema = z.object({
  metadata,
  spec: z.object({
    scaleTargetRef: refSchema,
    minReplicaCount: count.nullish().catch(null),
    maxReplicaCount: count.nullish().catch(null),
    triggers: z
      .array(z.object({ type: z.string().max(100), metadata: z.record(z.string(), z.unknown()).nullish().catch(null) }))
      .max(1_000)
      .nullish()
      .catch([]),
    advanced: z.object({ restoreToOriginalReplicaCount: z.boolean().nullish() }).nullish().catch(null),
  }),
  status: z.object({ originalReplicaCount: count.nullish() }).nullish().catch(null),
});

const isScaledObject = z.object({ kind: z.literal("ScaledObject") });

/** Of a HorizontalPodAutoscaler or a ScaledObject. Null: it scales what is no workload of `apps`. Undefined: it is malformed. */
export function autoscalerOf(object: unknown): Autoscaler | null | undefined {
  return isScaledObject.safeParse(object).success ? ofScaledObject(object) : ofHpa(object);
}

function ofHpa(object: unknown): Autoscaler | null | undefined {
  const parsed = hpaSchema.safeParse(object);
  if (!parsed.success) return undefined;
  const { metadata: of, spec } = parsed.data;
  const target = targetOf(of.namespace, spec.scaleTargetRef, null);
  if (target === null) return null;
  const madeBy = of.ownerReferences?.find(({ kind }) => kind === "ScaledObject")?.name ?? null;
  const { name, uid } = of;
  return { target, owner: { kind: "HorizontalPodAutoscaler", name, uid, min: spec.minReplicas ?? 1, max: spec.maxReplicas, madeBy } };
}

function ofScaledObject(object: unknown): Autoscaler | null | undefined {
  const parsed = scaledObjectSchema.safeParse(object);
  if (!parsed.success) return undefined;
  const { metadata: of, spec, status } = parsed.data;
  const target = targetOf(of.namespace, spec.scaleTargetRef, "Deployment");
  if (target === null) return null;
  const triggers = spec.triggers ?? [];
  const { name, uid } = of;
  return {
    target,
    owner: {
      ...{ kind: "ScaledObject", name, uid, min: spec.minReplicaCount ?? 0, max: spec.maxReplicaCount ?? 100 },
      triggers: triggers.map(({ type }) => type),
      isPaused: isPaused(of.annotations ?? {}),
      ...(spec.advanced?.restoreToOriginalReplicaCount === true ? { restores: status?.originalReplicaCount ?? null } : {}),
      asks: askedPool(triggers),
    },
  };
}

function isPaused(annotations: Readonly<Record<string, string>>): boolean {
  const paused = annotations["autoscaling.keda.sh/paused"];
  return (paused !== undefined && paused !== "false") || annotations["autoscaling.keda.sh/paused-replicas"] !== undefined;
}

interface Trigger {
  readonly type: string;
  readonly metadata?: Readonly<Record<string, unknown>> | null | undefined;
}

/** Only one whose one trigger is our scaler follows us; any other trigger could want more than was decided. */
function askedPool(triggers: readonly Trigger[]): string | null {
  const [only] = triggers;
  if (only === undefined || triggers.length > 1 || (only.type !== "external" && only.type !== "external-push")) return null;
  const pool = only.metadata?.["pool"];
  return typeof pool === "string" ? pool : null;
}

function targetOf(namespace: string, { apiVersion, kind, name }: z.output<typeof refSchema>, usual: string | null): WorkloadRef | null {
  const of = kind ?? usual;
  return of === null || !/^apps(\/|$)/.test(apiVersion ?? "apps/v1") ? null : { namespace, kind: of, name };
}

const entrySchema = z.object({
  manager: z.string().max(250).default(""),
  operation: z.string().max(50).default(""),
  subresource: z.string().max(50).default(""),
  time: z.string().optional(),
  fieldsV1: z.object({ "f:spec": z.object({ "f:replicas": z.unknown() }) }),
});
const managedSchema = z.object({ metadata: z.object({ managedFields: z.array(z.unknown()).max(1_000) }) });

/** Who owns `spec.replicas`. Malformed entries own nothing. */
export function replicaManagersOf(object: unknown): readonly FieldManager[] {
  const managed = managedSchema.safeParse(object);
  if (!managed.success) return [];
  return managed.data.metadata.managedFields.slice(0, MANAGERS_MAX).flatMap((entry): readonly FieldManager[] => {
    const parsed = entrySchema.safeParse(entry);
    if (!parsed.success || parsed.data.fieldsV1["f:spec"]["f:replicas"] === undefined) return [];
    const { manager, operation, subresource, time } = parsed.data;
    return [{ manager, operation, subresource, at: time === undefined ? null : (parseInstant(time) ?? null) }];
  });
}

const targetSchema = z.object({
  metadata: z.object({ uid: z.string().min(1), deletionTimestamp: z.string().nullish() }),
  spec: z.object({ replicas: count.nullish(), paused: z.boolean().nullish() }),
  status: z.object({ readyReplicas: count.nullish() }).nullish(),
});

/** Undefined: it is malformed. */
export function targetObjectOf(object: unknown): TargetObject | undefined {
  const parsed = targetSchema.safeParse(object);
  if (!parsed.success) return undefined;
  const { metadata: of, spec, status } = parsed.data;
  return {
    uid: of.uid,
    replicas: spec.replicas ?? 1,
    readyReplicas: status?.readyReplicas ?? 0,
    isPaused: spec.paused ?? false,
    isDeleting: (of.deletionTimestamp ?? null) !== null,
    managers: replicaManagersOf(object),
  };
}
