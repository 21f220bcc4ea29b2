/** The CustomResourceDefinition of Pools, made from the document's schema. */
import { z } from "zod";
import type { PoolStatus } from "../../src/control/status.ts";
import { poolSpecSchema } from "../../src/model/pool.ts";
import { COORDINATOR_PATH } from "../../src/model/trino.ts";
import { POOLS } from "../../src/kube/resources.ts";
import { type Annotated, type CelRule, type Json, structural } from "./structural.ts";

/** `size.max` with its default. */
const MAXIMUM = "(has(self.size.max) ? self.size.max : self.size.desired == 0 ? 1 : self.size.desired * 2)";

/** What `superRefine` of the schema says, for the API server; a test runs the same bad documents through both. */
const RULES: Readonly<Record<string, readonly CelRule[]>> = {
  spec: [
    {
      rule: "!has(self.state) || !has(self.state.lease) || !has(self.service) || !has(self.service.protocol) || self.service.protocol == 'relevo/v1'",
      message: "state.lease needs service.protocol relevo/v1: an instance without the protocol cannot be told of its lease",
    },
    {
      rule: "has(self.target) || (has(self.blueprint) && self.blueprint.objects.exists(o, o.kind == 'Deployment' || o.kind == 'StatefulSet'))",
      message: "blueprint.objects holds no Deployment and no StatefulSet: the first one is the instance's lead",
      fieldPath: ".blueprint",
    },
    {
      rule: "!has(self.target) || !has(self.blueprint) || size(self.blueprint.objects) == 0",
      message: "target stands beside a blueprint: a Pool has one of both",
      fieldPath: ".target",
    },
    {
      rule: "!has(self.target) || has(self.scale)",
      message: "target needs scale: of a workload that others made nothing but its size is this Pool's",
      fieldPath: ".target",
    },
    {
      rule: "self.driver != 'trino' || !has(self.service) || !has(self.service.protocol)",
      message: "service.protocol is not for driver trino: a cluster is always spoken to in Trino's own protocol",
      fieldPath: ".service",
    },
    {
      rule: "self.driver != 'trino' || !has(self.service) || !has(self.service.healthPath)",
      message: `service.healthPath is not for driver trino: a coordinator is always asked at ${COORDINATOR_PATH}`,
      fieldPath: ".service",
    },
    {
      rule: "self.driver != 'trino' || !has(self.state) || !has(self.state.lease)",
      message: "state.lease is not for driver trino: a cluster has no writer that could be fenced",
      fieldPath: ".state",
    },
    {
      rule: "self.driver != 'trino' || !has(self.scale)",
      message: "scale is not for driver trino yet: its size is size.desired",
      fieldPath: ".scale",
    },
    {
      rule: "!has(self.scale) || self.driver != 'service'",
      message: "scale needs driver worker: its signal is what workers take",
      fieldPath: ".scale",
    },
    {
      rule: "!has(self.scale) || self.driver == 'trino' || (has(self.worker) && has(self.worker.flow))",
      message: "worker.flow must say what the workers take their jobs from: another flow's signal is refused",
      fieldPath: ".scale",
    },
    {
      rule: `!has(self.scale) || !has(self.scale.fallback) || self.scale.fallback.instances <= ${MAXIMUM}`,
      message: "scale.fallback.instances is above size.max",
      fieldPath: ".scale",
    },
    {
      rule: `!has(self.scale) || !has(self.scale.pausedAt) || self.scale.pausedAt <= ${MAXIMUM}`,
      message: "scale.pausedAt is above size.max",
      fieldPath: ".scale",
    },
  ],
  "spec.size": [
    { rule: "!has(self.floor) || self.floor <= self.desired", message: "floor is above desired", fieldPath: ".floor" },
    { rule: "!has(self.max) || self.desired <= self.max", message: "max is below desired", fieldPath: ".max" },
  ],
  "spec.blueprint": [
    {
      rule: "self.objects.all(o, self.objects.exists_one(p, p.kind == o.kind && p.metadata.name == o.metadata.name))",
      message: "two objects of one kind have the same name",
      fieldPath: ".objects",
    },
  ],
  "spec.blueprint.objects[]": [
    {
      rule: "self.apiVersion == (self.kind == 'Deployment' || self.kind == 'StatefulSet' ? 'apps/v1' : 'v1')",
      message: "apiVersion must be apps/v1 for a Deployment or StatefulSet and v1 for any other kind",
      fieldPath: ".apiVersion",
    },
    {
      rule: "self.metadata.name.contains('$(relevo.instance)')",
      message: "metadata.name must contain $(relevo.instance): two instances may not share an object",
    },
    {
      rule: "self.metadata.name.replace('$(relevo.instance)', 'x').replace('$(relevo.site)', 'x').matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
      message: "metadata.name must be lower-case letters, digits, dashes and dots around $(relevo.instance)",
    },
  ],
};

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  spec: "What is wanted of the fleet.",
  "spec.driver": "How an instance is spoken to.",
  "spec.sites": "Where instances may run, the preferred one first.",
  "spec.size": "How many instances: desired, never fewer serving than floor by Relevo's own doing, never more desired than max.",
  "spec.priority": "Who comes first when many must move at once.",
  "spec.standby": "Instances that are made, prepared and validated, and admitted only when one must be replaced.",
  "spec.serviceAccountName":
    "The ServiceAccount of this namespace that makes and deletes the blueprint's objects. Absent: the one that the controller was started with.",
  "spec.blueprint": "The objects of one instance. $(relevo.instance), $(relevo.pool) and $(relevo.site) are filled into string values.",
  "spec.target": "Instead of a blueprint: one workload that others made, whose number of replicas this Pool owns from its adoption on.",
  "spec.worker": "What the workers take their jobs from, and after which silence a busy slot counts as stuck.",
  "spec.scale": "Moves the size between size.floor and size.max by the backlog of the workers' own flow.",
  "spec.scale.signal":
    "What is looked at, through a connection that the operator of the controller configured. It holds no address and no secret.",
  "spec.trino": "Of driver trino: as whom the engine is asked, what it is configured with, and which statements its clusters take.",
  "spec.service": "The port, the protocol and the health check of an instance.",
  "spec.traffic": "The route of the gateway, what is tried again and what waits for how long.",
  "spec.disruption": "What is done when capacity goes: Off, Observe or Act; and how much at once.",
  "spec.state": "With a lease, at most one process writes for each place of the pool.",
  "spec.deletion": "What becomes of the instances when the Pool is deleted: refuse while any lives, drain them, or orphan them.",
};

/** Every field of the status that is written: one without a line here does not compile, and one that is not here would be dropped by the server. */
const STATUS: Readonly<Record<keyof PoolStatus, Json>> = {
  phase: { type: "string", description: "One word: Serving, Below, Replacing, Held or Deleting." },
  reason: { type: "string", description: "Why, as a code: that of the condition which decides the phase." },
  message: { type: "string", description: "Why, as a sentence." },
  desired: { type: "integer" },
  serving: { type: "integer" },
  candidates: { type: "integer" },
  standby: { type: "integer" },
  draining: { type: "integer" },
  condemned: { type: "integer", description: "Serving, and must make way." },
  generation: { type: "string", description: "Of the route: who may get traffic." },
  mode: { type: "string" },
  observedGeneration: { type: "integer", format: "int64" },
  demand: {
    type: "object",
    nullable: true,
    description: "Of a pool whose size follows its demand, as it was read last.",
    properties: {
      backlog: { type: "number", nullable: true },
      inFlight: { type: "number", nullable: true },
      oldestAge: { type: "integer", nullable: true, description: "In seconds." },
      trouble: { type: "string", nullable: true, description: "Why the newest look cannot be believed." },
    },
  },
  slots: {
    type: "object",
    nullable: true,
    description: "What its workers say of their slots, together.",
    properties: {
      total: { type: "integer" },
      free: { type: "integer" },
      progressing: { type: "integer" },
      stuck: { type: "integer" },
    },
  },
  capacity: {
    type: "object",
    nullable: true,
    description: "Instances: what somebody configured, and what a load test has shown.",
    properties: {
      configured: { type: "integer" },
      proven: { type: "integer", nullable: true },
      provenAt: { type: "string", nullable: true },
    },
  },
  conditions: {
    type: "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    items: {
      type: "object",
      required: ["type", "status", "lastTransitionTime", "reason", "message"],
      properties: {
        type: { type: "string", maxLength: 316 },
        status: { type: "string", enum: ["True", "False", "Unknown"] },
        reason: { type: "string", minLength: 1, maxLength: 1024, pattern: "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$" },
        message: { type: "string", maxLength: 32768 },
        observedGeneration: { type: "integer", format: "int64", minimum: 0 },
        lastTransitionTime: { type: "string", format: "date-time" },
      },
    },
  },
};

const column = (name: string, jsonPath: string, type: string, description: string, priority = 0): Json => ({
  name,
  type,
  jsonPath,
  description,
  ...(priority === 0 ? {} : { priority }),
});

const COLUMNS = [
  column("Phase", ".status.phase", "string", "One word for all"),
  column("Desired", ".status.desired", "integer", "How many are wanted"),
  column("Serving", ".status.serving", "integer", "How many get traffic"),
  column("Mode", ".status.mode", "string", "What is done when capacity goes"),
  column("Reason", ".status.reason", "string", "Why it is in this phase"),
  column("Age", ".metadata.creationTimestamp", "date", "Since when it is there"),
  column("Draining", ".status.draining", "integer", "How many finish their work", 1),
  column("Standby", ".status.standby", "integer", "How many are warm", 1),
  column("Backlog", ".status.demand.backlog", "number", "How much waits for its workers", 1),
  column("Configured", ".status.capacity.configured", "integer", "How many somebody allows", 1),
  column("Proven", ".status.capacity.proven", "integer", "How many a load test has shown", 1),
  column("Message", ".status.message", "string", "Why, as a sentence", 1),
];

export function poolDefinition(): Json {
  const { group, version, kind, plural } = POOLS;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase(), categories: ["relevo"] },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: COLUMNS,
          schema: { openAPIV3Schema: poolSchemaOfServer() },
        },
      ],
    },
  };
}

function poolSchemaOfServer(): Json {
  const about: Annotated = { descriptions: DESCRIPTIONS, rules: RULES };
  const spec = structural(z.toJSONSchema(poolSpecSchema, { io: "input", unrepresentable: "any" }) as Json, "spec", about);
  return {
    type: "object",
    description: "A Pool is the desired instances of one service, with a driver and policies.",
    required: ["spec"],
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
      spec,
      status: { type: "object", description: "Written by the controller that owns the pool; never read back.", properties: STATUS },
    },
    "x-kubernetes-validations": [
      {
        rule: "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$')",
        message: "metadata.name must be lower-case letters, digits and dashes, at most 40 characters",
      },
    ],
  };
}
