/**
 * What each part of Relevo may do in a cluster, and why: the one table. The manifests in `deploy/` are generated from it, `relevo doctor` asks the API
 * server about each row, and a test compares it with what a controller really calls.
 *
 * 1. Nothing here deletes a node, evicts a pod, reads a Secret or writes roles: no part of Relevo does (I8). Pods are deleted by themselves in one case (`members`).
 * 2. What a blueprint makes is made by a ServiceAccount of the Pool's own namespace, which the controller impersonates: the controller itself may not make
 *    workloads anywhere.
 * 3. A namespace without the binding of `pool_namespace` rows is a namespace in which Relevo can change nothing.
 */
import type { ResourceType } from "./api.ts";
import {
  CONFIG_MAPS,
  CUSTOM_RESOURCE_DEFINITIONS,
  DAEMON_SETS,
  DEPLOYMENTS,
  EVENTS,
  HORIZONTAL_POD_AUTOSCALERS,
  LEASES,
  NAMESPACES,
  NODE_CLAIMS,
  NODE_POOLS,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  POOLS,
  REPLICA_SETS,
  SCALED_OBJECTS,
  SERVICE_ACCOUNTS,
  SERVICES,
  STATEFUL_SETS,
} from "./resources.ts";

/** A capability is switched on or off as a whole; without its rows the rest goes on. */
export const CAPABILITIES = [
  "base",
  "instances",
  "disruption",
  "karpenter",
  "events",
  "apply",
  "election",
  "access_review",
  "calls",
  "agent",
  "freeze",
  "doctor",
  "scaling",
  "external_metrics",
  "members",
] as const;
export type Capability = (typeof CAPABILITIES)[number];

/** Who acts. The gateway, and an instance by itself, call no Kubernetes API at all: a gateway has a right for the controller to ask about. */
export const IDENTITIES = ["controller", "instances", "gateway", "agent"] as const;
export type Identity = (typeof IDENTITIES)[number];

/**
 * Where a row is granted: in the whole cluster; in the namespace that Relevo runs in; in each namespace that holds Pools, by a binding of its own.
 */
export type GrantPlace = "cluster" | "own_namespace" | "pool_namespace";

export type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "impersonate" | "route" | "notify";

export interface Permission {
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly verbs: readonly Verb[];
  /** Granted by a Role; a ClusterRole otherwise. */
  readonly namespaced: boolean;
  readonly place: GrantPlace;
  readonly as: Identity;
  /** Only objects of these names. */
  readonly names?: readonly string[];
  readonly why: string;
}

/** Who makes the objects of a Pool that names no other account, in the Pool's namespace. */
export const INSTANCES_ACCOUNT = "relevo-instances";

/** Of this name, in any namespace: a freeze that is said by kubectl alone. */
const FREEZE_CONFIG_MAP = "relevo-freeze";

interface Grant {
  readonly verbs: readonly Verb[];
  readonly why: string;
  readonly place?: GrantPlace;
  readonly as?: Identity;
  readonly subresource?: string;
  readonly names?: readonly string[];
}

function may(
  { group, plural }: Pick<ResourceType, "group" | "plural">,
  { place = "cluster", as = "controller", ...grant }: Grant,
): Permission {
  return { group, resource: plural, namespaced: place !== "cluster", place, as, ...grant };
}

/** No such kind is served: the controller asks the API server whether its callers may do this to it. */
const CONTROLLERS = { group: "relevo.dev", plural: "controllers" } as const;
const WATCH = ["list", "watch"] as const;
const READ = ["get", ...WATCH] as const;
const OF_BLUEPRINT = [DEPLOYMENTS, STATEFUL_SETS, SERVICES, CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS];
const MAKE = {
  place: "pool_namespace",
  as: "instances",
  verbs: ["get", "list", "create", "delete"],
  why: "the objects of an instance are made, found again by name and label, and deleted by UID",
} as const;

const OF_TARGET = { place: "pool_namespace", as: "instances" } as const;
const OWNER_VERBS = ["get", "list", "delete"] as const;

export const PERMISSIONS: Readonly<Record<Capability, readonly Permission[]>> = {
  base: [
    may(POOLS, { verbs: READ, why: "which fleets are wanted" }),
    may(POOLS, { verbs: ["patch"], why: "the finalizer that lets a deleted Pool end by its deletion policy" }),
    may(CUSTOM_RESOURCE_DEFINITIONS, {
      verbs: ["get"],
      names: [`${POOLS.plural}.${POOLS.group}`],
      why: "a Pool that is deleted because its CRD goes is orphaned, not drained",
    }),
    may(NAMESPACES, { verbs: ["get"], why: "a Pool that is deleted because its namespace goes is orphaned, not drained" }),
    may(POOLS, { subresource: "status", verbs: ["patch"], why: "conditions and counts of a Pool" }),
    may(NODES, { verbs: READ, why: "what is under the instances, and what is known of it" }),
    may(PODS, { verbs: READ, why: "which process stands for an instance, and on which node" }),
    may(REPLICA_SETS, { verbs: READ, why: "a pod's owners, compared by UID" }),
    may(DEPLOYMENTS, { verbs: READ, why: "the lead of an instance; objects of ours that the store does not know" }),
    may(STATEFUL_SETS, { verbs: READ, why: "the lead of an instance; objects of ours that the store does not know" }),
  ],
  instances: [
    may(SERVICE_ACCOUNTS, {
      place: "pool_namespace",
      verbs: ["impersonate"],
      names: [INSTANCES_ACCOUNT],
      why: "what a Pool makes is bounded by what an account of its own namespace may make",
    }),
    ...OF_BLUEPRINT.map((type) => may(type, MAKE)),
  ],
  disruption: [
    may(NODES, { verbs: ["patch"], why: "the cordon of a node that will go, and its removal by an operator's command" }),
    may(PODS, { place: "pool_namespace", verbs: ["patch"], why: "the marks that keep a voluntary disruption away from a pod of ours" }),
  ],
  karpenter: [
    may(NODE_CLAIMS, { verbs: READ, why: "drift, expiry and interruption, and who owns a node" }),
    may(NODE_POOLS, { verbs: WATCH, why: "what capacity could be had, and what is said about disruption" }),
  ],
  events: [
    may(EVENTS, { verbs: ["create"], why: "each transition is an Event on its Pool" }),
    may(EVENTS, { verbs: ["list"], why: "why a pod that waits finds no place" }),
  ],
  apply: [may(POOLS, { verbs: ["get", "create", "update"], why: "`relevo apply` through the HTTP API" })],
  election: [
    may(LEASES, {
      place: "own_namespace",
      verbs: ["list", "watch", "create", "patch", "delete"],
      why: "which replicas of the controller live, and where they are reached",
    }),
  ],
  access_review: [
    may({ group: "authentication.k8s.io", plural: "tokenreviews" }, { verbs: ["create"], why: "who a caller of the HTTP API is" }),
    may(
      { group: "authorization.k8s.io", plural: "subjectaccessreviews" },
      { verbs: ["create"], why: "what a caller of the HTTP API may do" },
    ),
  ],
  calls: [
    may(CONTROLLERS, { as: "gateway", verbs: ["route"], why: "be a gateway to the controller, and nothing else" }),
    may(CONTROLLERS, { as: "agent", verbs: ["notify"], why: "tell the controller of its own node, and nothing else" }),
  ],
  freeze: [may(CONFIG_MAPS, { verbs: WATCH, names: [FREEZE_CONFIG_MAP], why: "a freeze that needs neither the store nor Relevo's API" })],
  doctor: [
    may(DAEMON_SETS, { verbs: ["list"], why: "who else acts on nodes" }),
    may(HORIZONTAL_POD_AUTOSCALERS, { verbs: ["list"], why: "who else sets the size of an instance" }),
    may(SCALED_OBJECTS, { verbs: ["list"], why: "who else sets the size of an instance" }),
  ],
  scaling: [
    may(HORIZONTAL_POD_AUTOSCALERS, { verbs: WATCH, why: "a replica count has one owner: who else sets it" }),
    may(SCALED_OBJECTS, { verbs: WATCH, why: "a replica count has one owner: who else sets it" }),
    ...[DEPLOYMENTS, STATEFUL_SETS].map((type) =>
      may(type, { ...OF_TARGET, subresource: "scale", verbs: ["patch"], why: "the replicas of a workload that a Pool has adopted" }),
    ),
    may(HORIZONTAL_POD_AUTOSCALERS, {
      ...OF_TARGET,
      verbs: OWNER_VERBS,
      why: "read before each write; removed only when relevo adopt names it and its UID",
    }),
    may(SCALED_OBJECTS, {
      ...OF_TARGET,
      verbs: OWNER_VERBS,
      why: "read before each write; removed only when relevo adopt names it and its UID",
    }),
  ],
  external_metrics: [
    may(
      { group: "external.metrics.k8s.io", plural: "*" },
      {
        place: "pool_namespace",
        verbs: ["list"],
        why: "the demand of Pools whose signal is a metric of KEDA or of another metrics server",
      },
    ),
    may(
      { group: "apiregistration.k8s.io", plural: "apiservices" },
      { verbs: ["get"], names: ["v1beta1.external.metrics.k8s.io"], why: "whether such a server is there, and why it does not answer" },
    ),
  ],
  members: [
    may(PODS, {
      place: "pool_namespace",
      as: "instances",
      verbs: ["delete"],
      why: "a worker of a Trino cluster whose node goes is deleted by its UID, so that its own workload makes the next one elsewhere",
    }),
  ],
  agent: [may(PODS, { as: "agent", verbs: ["list"], why: "which instances are on its node, to tell them while the controller is away" })],
};

/** One question to the API server: a SelfSubjectAccessReview's `resourceAttributes`, and what it is for. */
export interface PermissionQuestion {
  readonly capability: Capability;
  readonly as: Identity;
  readonly why: string;
  /** Absent: in all namespaces, or of a kind that has none. */
  readonly namespace?: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly verb: Verb;
  readonly name?: string;
}

/** Every row of the capabilities, one question for each verb, name and namespace. */
export function questionsOf(
  capabilities: readonly Capability[],
  where: { readonly ownNamespace: string; readonly poolNamespaces: readonly string[] },
): readonly PermissionQuestion[] {
  return capabilities.flatMap((capability) =>
    PERMISSIONS[capability].flatMap(({ group, resource, subresource, verbs, place, as, names, why }) =>
      namespacesOf(place, where).flatMap((namespace) =>
        verbs.flatMap((verb) =>
          (names ?? [undefined]).map((name) => ({
            capability,
            as,
            why,
            ...(namespace === undefined ? {} : { namespace }),
            group,
            resource,
            ...(subresource === undefined ? {} : { subresource }),
            verb,
            ...(name === undefined ? {} : { name }),
          })),
        ),
      ),
    ),
  );
}

function namespacesOf(
  place: GrantPlace,
  where: { readonly ownNamespace: string; readonly poolNamespaces: readonly string[] },
): readonly (string | undefined)[] {
  switch (place) {
    case "cluster":
      return [undefined];
    case "own_namespace":
      return [where.ownNamespace];
    case "pool_namespace":
      return where.poolNamespaces;
    default:
      return place satisfies never;
  }
}
