/**
 * The fields of Kubernetes objects that this product uses, and no others: tolerant of everything else, strict on these. Times become milliseconds, absent
 * collections become empty, so that nobody above checks for their absence.
 */
import { z } from "zod";
import { parseInstant } from "../kernel/clock.ts";
import type { KubeObject } from "./api.ts";

const text = z.string();
const map = z
  .record(z.string(), z.string())
  .nullish()
  .transform((value) => value ?? {});
const listOf = <S extends z.ZodType>(item: S) =>
  z
    .array(item)
    .nullish()
    .transform((value) => value ?? []);

/** RFC 3339 and nothing looser: JavaScript's Date would take a bare year. */
export const instantSchema = z.iso.datetime({ offset: true }).transform((value) => parseInstant(value) ?? Number.NaN);
const optionalInstant = instantSchema.nullish().transform((value) => value ?? null);

const ownerReference = z.object({
  apiVersion: text,
  kind: text,
  name: text,
  uid: text,
  controller: z
    .boolean()
    .nullish()
    .transform((value) => value ?? false),
});

const meta = z.object({
  name: text.min(1),
  namespace: text.nullish().transform((value) => value ?? ""),
  uid: text.min(1),
  resourceVersion: text.min(1),
  generation: z
    .int()
    .nullish()
    .transform((value) => value ?? 0),
  creationTimestamp: instantSchema,
  deletionTimestamp: optionalInstant,
  labels: map,
  annotations: map,
  ownerReferences: listOf(ownerReference),
});
export type Meta = z.output<typeof meta>;

/** Anybody may write conditions: what is odd in one that nobody uses must not hide the object. Who uses one checks its status. */
const condition = z.object({
  type: text,
  status: text,
  reason: text.nullish().transform((value) => value ?? ""),
  lastTransitionTime: optionalInstant.catch(null),
});
export type Condition = z.output<typeof condition>;

export function conditionOf(conditions: readonly Condition[], type: string): Condition | undefined {
  return conditions.find((each) => each.type === type);
}

const taint = z.object({
  key: text,
  value: text.nullish().transform((value) => value ?? ""),
  effect: text,
  timeAdded: optionalInstant.catch(null),
});
export type Taint = z.output<typeof taint>;

const nodeSchema = z.object({
  metadata: meta,
  spec: z
    .object({
      providerID: text.nullish().transform((value) => value ?? ""),
      unschedulable: z
        .boolean()
        .nullish()
        .transform((value) => value ?? false),
      taints: listOf(taint),
    })
    .prefault({}),
  status: z.object({ conditions: listOf(condition) }).prefault({}),
});
export type KubeNode = z.output<typeof nodeSchema>;

const containerStatus = z.object({
  name: text,
  ready: z.boolean(),
  restartCount: z.int(),
  containerID: text.nullish().transform((value) => (value === "" || value === undefined ? null : value)),
  state: z
    .object({
      running: z.object({ startedAt: optionalInstant }).nullish(),
      waiting: z.object({ reason: text.nullish() }).nullish(),
      terminated: z.object({ exitCode: z.int(), reason: text.nullish(), finishedAt: optionalInstant }).nullish(),
    })
    .nullish()
    .transform((value) => value ?? {}),
  /** How the process before it ended. */
  lastState: z
    .object({ terminated: z.object({ reason: text.nullish() }).nullish() })
    .nullish()
    .catch(null)
    .transform((value) => value ?? {}),
});
export type ContainerStatus = z.output<typeof containerStatus>;

const POD_PHASES = ["Pending", "Running", "Succeeded", "Failed", "Unknown"] as const;

const podSchema = z.object({
  metadata: meta,
  spec: z.object({
    nodeName: text.nullish().transform((value) => (value === "" ? null : (value ?? null))),
    containers: listOf(z.object({ name: text, ports: listOf(z.object({ name: text.nullish(), containerPort: z.int() })) })),
  }),
  status: z
    .object({
      phase: z
        .enum(POD_PHASES)
        .nullish()
        .transform((value) => value ?? "Pending"),
      reason: text
        .nullish()
        .catch(null)
        .transform((value) => value ?? ""),
      message: text
        .nullish()
        .catch(null)
        .transform((value) => value ?? ""),
      podIP: text.nullish().transform((value) => (value === "" ? null : (value ?? null))),
      conditions: listOf(condition),
      containerStatuses: listOf(containerStatus),
    })
    .prefault({}),
});
export type KubePod = z.output<typeof podSchema>;

const workloadSpec = z.object({
  replicas: z
    .int()
    .nullish()
    .transform((value) => value ?? 1),
});
const workloadStatus = z.object({
  observedGeneration: z
    .int()
    .nullish()
    .transform((value) => value ?? 0),
  readyReplicas: z
    .int()
    .nullish()
    .transform((value) => value ?? 0),
});
const workloadSchema = z.object({ metadata: meta, spec: workloadSpec.prefault({}), status: workloadStatus.prefault({}) });
/** What a Deployment, a ReplicaSet and a StatefulSet have in common. */
export type KubeWorkload = z.output<typeof workloadSchema>;

/** What a NodeClaim or a NodePool asks of its machines; other operators than In name no places. */
const requirement = z.object({ key: text, operator: text, values: listOf(text) });

const nodeClaimSchema = z.object({
  metadata: meta,
  spec: z
    .object({ requirements: listOf(requirement).catch([]) })
    .prefault({})
    .catch({ requirements: [] }),
  status: z
    .object({
      nodeName: text.nullish().transform((value) => value ?? ""),
      providerID: text.nullish().transform((value) => value ?? ""),
      conditions: listOf(condition),
    })
    .prefault({}),
});
export type NodeClaim = z.output<typeof nodeClaimSchema>;

const nodePoolSchema = z.object({
  metadata: meta,
  spec: z
    .object({
      limits: map.catch({}),
      template: z.object({ spec: z.object({ requirements: listOf(requirement) }).prefault({}) }).prefault({}),
    })
    .prefault({}),
});
export type NodePool = z.output<typeof nodePoolSchema>;

const leaseSchema = z.object({
  metadata: meta,
  spec: z
    .object({
      holderIdentity: text.nullish().transform((value) => value ?? ""),
      leaseDurationSeconds: z
        .int()
        .nullish()
        .transform((value) => value ?? null),
      leaseTransitions: z
        .int()
        .nullish()
        .transform((value) => value ?? 0),
      acquireTime: optionalInstant,
      renewTime: optionalInstant,
    })
    .prefault({}),
});
export type KubeLease = z.output<typeof leaseSchema>;

const eventSchema = z.object({
  metadata: meta,
  involvedObject: z.object({
    kind: text.nullish().transform((value) => value ?? ""),
    namespace: text.nullish().transform((value) => value ?? ""),
    name: text.nullish().transform((value) => value ?? ""),
    uid: text.nullish().transform((value) => value ?? ""),
  }),
  type: text.nullish().transform((value) => value ?? "Normal"),
  reason: text.nullish().transform((value) => value ?? ""),
  message: text.nullish().transform((value) => value ?? ""),
  count: z
    .int()
    .nullish()
    .transform((value) => value ?? 1),
  firstTimestamp: optionalInstant,
  lastTimestamp: optionalInstant,
});
export type KubeEvent = z.output<typeof eventSchema>;

/** An object's fields, or which field is wrong. */
export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

export const parseNode = parserOf(nodeSchema);
export const parsePod = parserOf(podSchema);
export const parseReplicaSet = parserOf(workloadSchema);
export const parseDeployment = parserOf(workloadSchema);
export const parseStatefulSet = parserOf(workloadSchema);
export const parseNodeClaim = parserOf(nodeClaimSchema);
export const parseNodePool = parserOf(nodePoolSchema);
export const parseLease = parserOf(leaseSchema);
export const parseEvent = parserOf(eventSchema);

function parserOf<S extends z.ZodType>(schema: S): (object: KubeObject) => Parsed<z.output<S>> {
  return (object) => {
    const result = schema.safeParse(object);
    if (result.success) return { ok: true, value: result.data };
    return {
      ok: false,
      problem: result.error.issues
        .slice(0, 3)
        .map((issue) => `${issue.path.join(".")}: ${issue.message}`)
        .join("; "),
    };
  };
}

/** The label by which the objects of an instance are found. */
export const INSTANCE_LABEL = "relevo.dev/instance";

/** How pods are looked up: by the node that they run on, and by the instance that they belong to. */
export const POD_INDEXES = {
  node: (pod: KubePod): readonly string[] => (pod.spec.nodeName === null ? [] : [pod.spec.nodeName]),
  instance: (pod: KubePod): readonly string[] => {
    const instance = pod.metadata.labels[INSTANCE_LABEL];
    return instance === undefined ? [] : [instance];
  },
} as const;
