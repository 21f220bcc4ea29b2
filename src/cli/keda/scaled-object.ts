/** The parts of KEDA's documents that are read, as its documentation defines them. What is not known is not refused: it is told as something that differs. */
import { z } from "zod";

const text = z.string().max(4_000);
const count = z.int().min(0).max(1_000_000);
/** KEDA writes numbers of metadata as text; people write both. */
const values = z
  .record(z.string(), z.union([z.string().max(10_000), z.number(), z.boolean()]).transform(String))
  .nullish()
  .transform((value) => new Map(Object.entries(value ?? {})));
/** It goes into queries. */
const objectName = z
  .string()
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, "lower-case letters, digits, dashes and dots");
const metadata = z.looseObject({
  name: objectName,
  namespace: objectName.default("default"),
  annotations: z
    .record(z.string(), text)
    .nullish()
    .transform((value) => new Map(Object.entries(value ?? {}))),
});

const policy = z.looseObject({ stabilizationWindowSeconds: count.nullish() });

export const triggerSchema = z.looseObject({
  type: z.string().min(1).max(100),
  name: text.nullish(),
  metadata: values,
  metricType: z.enum(["AverageValue", "Value", "Utilization"]).nullish(),
  authenticationRef: z.looseObject({ name: text, kind: text.nullish() }).nullish(),
});
export type Trigger = z.output<typeof triggerSchema>;

export const scaledObjectSchema = z.looseObject({
  kind: z.literal("ScaledObject"),
  metadata,
  spec: z.looseObject({
    scaleTargetRef: z.looseObject({
      apiVersion: text.nullish(),
      kind: text.nullish(),
      name: z.string().min(1).max(253),
      envSourceContainerName: text.nullish(),
    }),
    pollingInterval: count.nullish(),
    cooldownPeriod: count.nullish(),
    initialCooldownPeriod: count.nullish(),
    idleReplicaCount: count.nullish(),
    minReplicaCount: count.nullish(),
    maxReplicaCount: count.nullish(),
    fallback: z.looseObject({ failureThreshold: count, replicas: count, behavior: text.nullish() }).nullish(),
    advanced: z
      .looseObject({
        restoreToOriginalReplicaCount: z.boolean().nullish(),
        horizontalPodAutoscalerConfig: z
          .looseObject({ behavior: z.looseObject({ scaleDown: policy.nullish(), scaleUp: policy.nullish() }).nullish() })
          .nullish(),
        scalingModifiers: z.looseObject({ formula: text.nullish() }).nullish(),
      })
      .nullish(),
    triggers: z.array(triggerSchema).min(1).max(100),
  }),
});
export type ScaledObject = z.output<typeof scaledObjectSchema>;

export const authenticationSchema = z.looseObject({
  kind: z.enum(["TriggerAuthentication", "ClusterTriggerAuthentication"]),
  metadata,
  spec: z.looseObject({
    secretTargetRef: z.array(z.looseObject({ parameter: text, name: text, key: text })).nullish(),
    env: z.array(z.looseObject({ parameter: text, name: text })).nullish(),
    podIdentity: z.looseObject({ provider: text }).nullish(),
  }),
});
export type Authentication = z.output<typeof authenticationSchema>;

/** Something that is not as it was, or that somebody must do. `level`: `changed` scales otherwise than before; `todo` does not work before it is done; `note` is told. */
export interface Difference {
  readonly level: "changed" | "todo" | "note";
  readonly field: string;
  readonly sentence: string;
}
