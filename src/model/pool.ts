/**
 * The Pool document: one schema for YAML, the HTTP API and the custom resource. Defaults are here and nowhere else. Durations and quantities are parsed at
 * this edge: inside, everything is milliseconds.
 */
import { z } from "zod";
import { duration, durationOf, someTime } from "./duration.ts";
import { PRIORITIES, type RoutePolicy } from "./membership.ts";
import { rfc1123Label } from "./names.ts";
import { replicasBesideLead } from "./replicas.ts";
import { scaleSchema, workerSchema } from "./scale.ts";
import { suspensionSchema } from "./suspension.ts";
import { COORDINATOR_PATH, trinoSchema } from "./trino.ts";

export const API_VERSION = "relevo.dev/v1alpha1";

/** Below it the time that a busy machine takes away for other work would pass for silence. */
const LEAST_LEASE_MS = 1_000;

const OWN_HEALTH_PATH = "/relevo/v1/health";

/** From a place for its pods to its admission. */
const READY_WITHIN_MS = 120_000;
/** A coordinator and its workers need 90 s on an idle machine before the first query is answered, and several times as long where many start at once. */
const CLUSTER_READY_WITHIN_MS = 600_000;

const dnsLabel = z.string().regex(/^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$/, "lower-case letters, digits and dashes, at most 40 characters");

/** Kinds that a blueprint may hold; anything else is refused, ClusterRoles first of all. */
export const BLUEPRINT_KINDS = ["Deployment", "StatefulSet", "Service", "ConfigMap", "PersistentVolumeClaim"] as const;

/** What has a `/scale`. */
export const TARGET_KINDS = ["Deployment", "StatefulSet"] as const;

const API_VERSION_OF: Readonly<Record<(typeof BLUEPRINT_KINDS)[number], string>> = {
  Deployment: "apps/v1",
  StatefulSet: "apps/v1",
  Service: "v1",
  ConfigMap: "v1",
  PersistentVolumeClaim: "v1",
};
const OBJECT_NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

const blueprintObject = z.looseObject({
  apiVersion: z.string(),
  kind: z.enum(BLUEPRINT_KINDS),
  metadata: z.looseObject({ name: z.string().min(1).max(253, "a name of at most 253 characters") }),
});

export const DRIVERS = ["service", "worker", "trino"] as const;
export type Driver = (typeof DRIVERS)[number];

export const DISRUPTION_MODES = ["Off", "Observe", "Act"] as const;
export type DisruptionMode = (typeof DISRUPTION_MODES)[number];

export const PROVISIONERS = ["karpenter", "cluster-autoscaler", "instance-group", "none"] as const;
export type Provisioner = (typeof PROVISIONERS)[number];

export const poolSpecSchema = z
  .strictObject({
    /** `service`: traffic comes through gateways. `worker`: it takes its work by itself, and no gateway routes to it. `trino`: each instance is a cluster. */
    driver: z.enum(DRIVERS),
    sites: z.array(dnsLabel).min(1).default(["local"]),
    size: z
      .strictObject({ desired: z.int().min(0).max(10_000), floor: z.int().min(0).optional(), max: z.int().min(0).max(10_000).optional() })
      .transform((size) => ({
        desired: size.desired,
        floor: size.floor ?? Math.min(1, size.desired),
        max: size.max ?? Math.max(1, size.desired * 2),
      })),
    priority: z.enum(PRIORITIES).default("standard"),
    /** Instances that are made, prepared and validated, and admitted only when one must be replaced; kept at this number. */
    standby: z.strictObject({ count: z.int().min(0).max(10_000).default(0) }).prefault({}),
    /** Of the Pool's namespace: it makes and deletes the blueprint's objects. Absent: the controller's own choice (`--instances-account`). */
    serviceAccountName: z.string().max(253).regex(OBJECT_NAME, "a name of lower-case letters, digits, dashes and dots").optional(),
    blueprint: z.strictObject({ objects: z.array(blueprintObject).max(20) }).prefault({ objects: [] }),
    /** Instead of a blueprint: one workload that others made, whose number of replicas this Pool owns from its adoption on (K3). Of the Pool's namespace. */
    target: z
      .strictObject({
        kind: z.enum(TARGET_KINDS),
        name: z.string().max(253).regex(OBJECT_NAME, "a name of lower-case letters, digits, dashes and dots"),
      })
      .optional(),
    worker: workerSchema.prefault({}),
    trino: trinoSchema.prefault({}),
    suspension: suspensionSchema.prefault({}),
    /** Moves the size between `size.floor` and `size.max`; without it the size is `size.desired`. */
    scale: scaleSchema.optional(),
    /** How an instance is spoken to: by our protocol where nothing is said, a Trino cluster always by its own. */
    service: z
      .strictObject({
        port: z.int().min(1).max(65535).default(8080),
        protocol: z.enum(["relevo/v1", "none"]).optional(),
        healthPath: z
          .string()
          .max(1_000)
          .regex(/^\/[\x21-\x7e]*$/, "a path that begins with / and holds no spaces")
          .optional(),
      })
      .prefault({}),
    traffic: z
      .strictObject({
        route: dnsLabel.optional(),
        hosts: z.array(z.string().min(1).max(253)).max(50).default([]),
        retry: z.enum(["idempotent", "not-taken"]).default("idempotent"),
        tries: z.int().min(1).max(10).default(3),
        perTryTimeout: someTime.prefault("1s"),
        queue: z.strictObject({ limit: z.int().min(0).max(100_000).default(500), wait: duration.prefault("2s") }).prefault({}),
        slowStart: duration.prefault("1s"),
        concurrency: z.int().min(1).max(100_000).default(256),
        healthEvery: someTime.prefault("1s"),
        /** A replacement farther from its clients than this is taken only when nothing nearer has room, and counted (S5). */
        latencyLimit: duration.prefault("100ms"),
      })
      .prefault({}),
    disruption: z
      .strictObject({
        mode: z.enum(DISRUPTION_MODES).default("Off"),
        surge: z.int().min(1).max(1000).default(1),
        draining: z.int().min(1).max(1000).default(2),
        drainFor: duration.prefault("10m"),
        /** A deadline drain starts at the latest this long before the node goes, replacement or not. */
        drainLead: duration.prefault("15s"),
        candidates: z
          .strictObject({
            retries: z.int().min(0).max(100).default(3),
            per: duration.prefault("10m"),
            /** Absent: 2m, and 10m for a Trino cluster. */
            readyWithin: someTime.optional(),
          })
          .prefault({}),
        /** An instance that answers no check for this long, its node being well, counts as lost. */
        unreachableAfter: someTime.prefault("10s"),
        /** Who may own a node that a candidate lands on. */
        provisioners: z.array(z.enum(PROVISIONERS)).min(1).default(["karpenter"]),
      })
      .prefault({}),
    /** With a lease, at most one process writes for each place of the pool; it stops itself when it was not able to renew for `ttl`. */
    state: z
      .strictObject({
        lease: z.strictObject({ ttl: durationOf(LEAST_LEASE_MS, "must be at least 1s and at most 365d").prefault("10s") }).optional(),
      })
      .prefault({}),
    deletion: z.enum(["refuse", "drain", "orphan"]).default("refuse"),
  })
  .superRefine((spec, context) => {
    const { desired, floor, max } = spec.size;
    if (floor > desired)
      context.addIssue({ code: "custom", path: ["size", "floor"], message: `floor ${floor} is above desired ${desired}`, input: floor });
    if (desired > max)
      context.addIssue({ code: "custom", path: ["size", "max"], message: `max ${max} is below desired ${desired}`, input: max });
    if (spec.state.lease && spec.driver !== "trino" && (spec.service.protocol ?? "relevo/v1") !== "relevo/v1")
      context.addIssue({
        code: "custom",
        path: ["state", "lease"],
        message: "needs service.protocol relevo/v1: an instance without the protocol cannot be told of its lease",
        input: spec.service.protocol,
      });
    for (const problem of problemsOfTrino(spec)) context.addIssue({ code: "custom", ...problem });
    for (const problem of problemsOfScale(spec)) context.addIssue({ code: "custom", ...problem });
    if (spec.target !== undefined) return;
    const lead = spec.blueprint.objects.filter((object) => object.kind === "Deployment" || object.kind === "StatefulSet");
    if (lead.length === 0)
      context.addIssue({
        code: "custom",
        path: ["blueprint", "objects"],
        message: "holds no Deployment and no StatefulSet: the first one is the instance's lead",
        input: spec.blueprint.objects.map((object) => object.kind),
      });
    const seen = new Set<string>();
    for (const [index, object] of spec.blueprint.objects.entries()) {
      const { kind, apiVersion, metadata } = object;
      const refuse = (path: readonly string[], message: string, input: unknown) =>
        context.addIssue({ code: "custom", path: ["blueprint", "objects", index, ...path], message, input });
      if (apiVersion !== API_VERSION_OF[kind]) refuse(["apiVersion"], `must be ${API_VERSION_OF[kind]} for a ${kind}`, apiVersion);
      if (!metadata.name.includes("$(relevo.instance)"))
        refuse(["metadata", "name"], "must contain $(relevo.instance): two instances may not share an object", metadata.name);
      else if (!OBJECT_NAME.test(metadata.name.replaceAll(/\$\(relevo\.(instance|site)\)/g, "x")))
        refuse(["metadata", "name"], "must be lower-case letters, digits, dashes and dots around $(relevo.instance)", metadata.name);
      const key = `${kind} ${metadata.name}`;
      if (seen.has(key)) refuse(["metadata", "name"], `is that of another ${kind} of the blueprint`, metadata.name);
      seen.add(key);
    }
  })
  .transform((spec) => ({ ...spec, ...sizeNow(spec), service: spokenTo(spec), disruption: withReadyWithin(spec) }));
export type PoolSpec = z.output<typeof poolSpecSchema>;

interface Sized {
  readonly size: { readonly desired: number; readonly floor: number; readonly max: number };
  readonly scale?: z.output<typeof scaleSchema> | undefined;
  readonly suspension: z.output<typeof suspensionSchema>;
}

/** A suspended pool wants none, whatever its document says for when it is resumed (I21). */
function sizeNow({ size, scale, suspension }: Sized): Pick<Sized, "size"> & { readonly scale?: z.output<typeof scaleSchema> | undefined } {
  if (!suspension.suspended) return { size, ...(scale === undefined ? {} : { scale }) };
  return { size: { ...size, desired: 0, floor: 0 }, ...(scale === undefined ? {} : { scale: { ...scale, pausedAt: 0 } }) };
}

interface Spoken {
  readonly port: number;
  readonly protocol: "relevo/v1" | "none" | "trino/v1";
  readonly healthPath: string;
}

interface Said {
  readonly port: number;
  readonly protocol?: "relevo/v1" | "none" | undefined;
  readonly healthPath?: string | undefined;
}

function spokenTo({ driver, service }: { readonly driver: Driver; readonly service: Said }): Spoken {
  const { port, protocol = "relevo/v1", healthPath = OWN_HEALTH_PATH } = service;
  return driver === "trino" ? { port, protocol: "trino/v1", healthPath: COORDINATOR_PATH } : { port, protocol, healthPath };
}

interface Candidates {
  readonly retries: number;
  readonly per: number;
  readonly readyWithin?: number | undefined;
}

function withReadyWithin<D extends { readonly candidates: Candidates }>({
  driver,
  disruption,
}: {
  readonly driver: Driver;
  readonly disruption: D;
}) {
  const readyWithin = disruption.candidates.readyWithin ?? (driver === "trino" ? CLUSTER_READY_WITHIN_MS : READY_WITHIN_MS);
  return { ...disruption, candidates: { ...disruption.candidates, readyWithin } };
}

interface Problem {
  readonly path: (string | number)[];
  readonly message: string;
  readonly input: unknown;
}

interface TrinoSpec {
  readonly driver: Driver;
  readonly service: Said;
  readonly state: { readonly lease?: unknown };
  readonly scale?: unknown;
}

function problemsOfTrino({ driver, service, state, scale }: TrinoSpec): readonly Problem[] {
  if (driver !== "trino") return [];
  const problems: Problem[] = [];
  if (service.protocol !== undefined)
    problems.push({
      path: ["service", "protocol"],
      message: "is not for driver trino: a cluster is always spoken to in Trino's own protocol",
      input: service.protocol,
    });
  if (service.healthPath !== undefined)
    problems.push({
      path: ["service", "healthPath"],
      message: `is not for driver trino: a coordinator is always asked at ${COORDINATOR_PATH}`,
      input: service.healthPath,
    });
  if (state.lease !== undefined)
    problems.push({
      path: ["state", "lease"],
      message: "is not for driver trino: a cluster has no writer that could be fenced",
      input: state.lease,
    });
  if (scale !== undefined)
    problems.push({ path: ["scale"], message: "is not for driver trino yet: its size is size.desired", input: driver });
  return problems;
}

interface ScaledSpec {
  readonly driver: Driver;
  readonly size: { readonly max: number };
  readonly blueprint: { readonly objects: readonly unknown[] };
  readonly target?: unknown;
  readonly worker: z.output<typeof workerSchema>;
  readonly scale?: z.output<typeof scaleSchema> | undefined;
}

function problemsOfScale({ driver, size, blueprint, target, worker, scale }: ScaledSpec): readonly Problem[] {
  const problems: Problem[] = [];
  if (target !== undefined && blueprint.objects.length > 0)
    problems.push({ path: ["target"], message: "stands beside a blueprint: a Pool has one of both", input: target });
  if (target !== undefined && scale === undefined)
    problems.push({
      path: ["target"],
      message: "needs scale: of a workload that others made nothing but its size is this Pool's",
      input: target,
    });
  if (scale === undefined) return problems;
  if (driver === "service")
    problems.push({ path: ["scale"], message: "needs driver worker: its signal is what workers take", input: driver });
  if (worker.flow === undefined && driver !== "trino")
    problems.push({
      path: ["worker", "flow"],
      message: "must say what the workers take their jobs from: another flow's signal is refused",
      input: undefined,
    });
  for (const [path, value] of [
    ["fallback", scale.fallback?.instances],
    ["pausedAt", scale.pausedAt],
  ] as const)
    if (value !== undefined && value > size.max)
      problems.push({ path: ["scale", path], message: `${value} is above size.max ${size.max}`, input: value });
  return problems;
}

export const poolSchema = z.object({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal("Pool"),
  metadata: z.looseObject({ name: dnsLabel, namespace: rfc1123Label.default("default") }),
  spec: poolSpecSchema,
});
export type PoolDocument = z.output<typeof poolSchema>;

/** What an instance is made from and spoken to by, immutable: what the document says later is about others. */
export function snapshotOf(spec: PoolSpec): BlueprintSnapshot {
  const { protocol, healthPath } = spec.service;
  const trino = clusterOf(spec);
  return { ...spec.blueprint, service: { protocol, healthPath, ...(trino === undefined ? {} : { trino }) } };
}

/** What a cluster is that is made now; undefined of a pool of anything else. */
export function clusterOf({ blueprint, service, trino }: PoolSpec): MadeCluster | undefined {
  return service.protocol === "trino/v1" ? { user: trino.user, workers: replicasBesideLead(blueprint.objects) } : undefined;
}

export type BlueprintSnapshot = PoolSpec["blueprint"] & { readonly service: SpokenService };

/** How an instance is spoken to: its protocol and where it says how it is. */
export interface SpokenService extends Pick<PoolSpec["service"], "protocol" | "healthPath"> {
  readonly trino?: MadeCluster;
}

/** Of a Trino cluster, as it was made: as whom it is asked, and how many workers belong to it. */
export interface MadeCluster {
  readonly user: string;
  readonly workers: number;
}

/** `namespace/name`: how a pool is named in the store, in metrics and in messages. */
export function poolKey(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

/** Whether gateways route to it: workers take their work by themselves. */
export function hasRoute({ spec }: PoolDocument): boolean {
  return spec.driver !== "worker";
}

export function routeOf(pool: PoolDocument): string {
  return pool.spec.traffic.route ?? pool.metadata.name;
}

export function routePolicyOf({ driver, traffic, service, priority, trino }: PoolSpec): RoutePolicy {
  return {
    hosts: traffic.hosts,
    retry: traffic.retry,
    tries: traffic.tries,
    perTryTimeoutMs: traffic.perTryTimeout,
    queueLimit: traffic.queue.limit,
    queueWaitMs: traffic.queue.wait,
    priority,
    slowStartMs: traffic.slowStart,
    concurrency: traffic.concurrency,
    healthPath: service.healthPath,
    healthEveryMs: Math.max(50, traffic.healthEvery),
    trino:
      driver === "trino"
        ? { routing: trino.routing, clientTimeoutMs: trino.clientTimeout, transactionTimeoutMs: trino.transactionTimeout }
        : null,
  };
}

/** What all instances of a pool may occupy together: max + surge + draining + standby. */
export function capacityLimit({ size, disruption, standby }: PoolSpec): number {
  return size.max + disruption.surge + disruption.draining + standby.count;
}
