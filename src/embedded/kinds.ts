/**
 * Every kind that the embedded cluster serves, in one table: names, subresources, columns of `kubectl get`, selectable fields, and what the API server
 * does on its own at a write. Behaviour elsewhere asks this table and never a kind's name.
 */
import type { ResourceType } from "../kube/api.ts";
import * as types from "../kube/resources.ts";
import { column, columnsOf, type PrinterColumn, wide } from "./columns.ts";

export type Subresource = "status" | "scale" | "eviction" | "binding" | "log" | "finalize";

export interface KindSpec extends ResourceType {
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly subresources: readonly Subresource[];
  readonly columns: readonly PrinterColumn[];
  /** Custom resources take no strategic merge patch, and their list items carry kind and apiVersion. */
  readonly custom: boolean;
  /** `metadata.generation` rises with every change outside metadata and status. */
  readonly hasGeneration: boolean;
  /** What a create makes of a status that came with it. */
  readonly statusOnCreate: "drop" | "keep";
  /** A write of `/status` takes labels and annotations too. */
  readonly statusTakesLabels: boolean;
  /** Beside metadata.name and metadata.namespace. */
  readonly selectableFields: readonly string[];
  /** Top-level fields; absent when the kind takes any. */
  readonly fields?: readonly string[];
  /** Known fields of spec, for `fieldValidation=Strict`; absent when not known here. */
  readonly specFields?: readonly string[];
  /** At most so many objects: beyond it the oldest goes, as old events do. */
  readonly keepNewest?: number;
  /** Of an object that went at once, DELETE answers the object and not a Status. */
  readonly deleteTellsObject?: boolean;
  /** A PUT of what is not there makes it. */
  readonly createsOnUpdate?: boolean;
  /** Its name is not looked at. */
  readonly anyName?: boolean;
  /** It has a generation, and that never rises. */
  readonly generationStays?: boolean;
  /** What `kubectl explain` says. */
  readonly description: string;
}

type Row = Partial<Omit<KindSpec, keyof ResourceType | "columns">> & {
  readonly columns?: readonly PrinterColumn[];
  readonly description: string;
};

function kind(type: ResourceType, row: Row): KindSpec {
  return {
    singular: type.kind.toLowerCase(),
    shortNames: [],
    categories: [],
    subresources: [],
    custom: false,
    hasGeneration: row.subresources?.includes("status") ?? false,
    statusOnCreate: "drop",
    statusTakesLabels: false,
    selectableFields: [],
    ...type,
    ...row,
    columns: columnsOf(row.columns ?? []),
  };
}

const ready = (condition: string): string => `=condition:${condition}`;

const EVENT_FIELDS =
  "action count eventTime firstTimestamp involvedObject lastTimestamp message reason related reportingComponent reportingInstance series source type".split(
    " ",
  );
const WORKLOAD_FIELDS = ["spec", "status"];
const POD_SPEC_FIELDS =
  "activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy enableServiceLinks ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride imagePullSecrets initContainers nodeName nodeSelector os overhead preemptionPolicy priority priorityClassName readinessGates resourceClaims resources restartPolicy runtimeClassName schedulerName schedulingGates securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes workloadRef".split(
    " ",
  );

const PERSISTENT_VOLUMES: ResourceType = {
  group: "",
  version: "v1",
  kind: "PersistentVolume",
  plural: "persistentvolumes",
  namespaced: false,
};
const STORAGE_CLASSES: ResourceType = {
  group: "storage.k8s.io",
  version: "v1",
  kind: "StorageClass",
  plural: "storageclasses",
  namespaced: false,
};
export const ENDPOINT_SLICES: ResourceType = {
  group: "discovery.k8s.io",
  version: "v1",
  kind: "EndpointSlice",
  plural: "endpointslices",
  namespaced: true,
};

export const KINDS: readonly KindSpec[] = [
  kind(types.NAMESPACES, {
    description: "A Namespace holds named objects.",
    shortNames: ["ns"],
    subresources: ["status", "finalize"],
    hasGeneration: false,
    columns: [column("Status", "status.phase")],
    selectableFields: ["status.phase"],
    fields: ["spec", "status"],
    specFields: ["finalizers"],
  }),
  kind(types.NODES, {
    description: "A Node is a machine that runs pods.",
    shortNames: ["no"],
    subresources: ["status"],
    hasGeneration: false,
    statusOnCreate: "keep",
    statusTakesLabels: true,
    columns: [
      column("Status", "=node-status"),
      column("Roles", "=node-roles"),
      column("Version", "status.nodeInfo.kubeletVersion"),
      wide("Zone", "=label:topology.kubernetes.io/zone"),
      wide("Internal-IP", "=node-address:InternalIP"),
      wide("Provider-ID", "spec.providerID"),
    ],
    selectableFields: ["spec.unschedulable"],
    fields: ["spec", "status"],
    specFields: ["configSource", "externalID", "podCIDR", "podCIDRs", "providerID", "taints", "unschedulable"],
  }),
  kind(types.PODS, {
    description: "A Pod is one or more containers that run together on one node.",
    shortNames: ["po"],
    categories: ["all"],
    subresources: ["status", "eviction", "binding", "log"],
    deleteTellsObject: true,
    statusTakesLabels: true,
    columns: [
      column("Ready", "=pod-ready"),
      column("Status", "=pod-status"),
      column("Restarts", "=pod-restarts"),
      wide("IP", "status.podIP"),
      wide("Node", "spec.nodeName"),
      wide("Nominated Node", "status.nominatedNodeName"),
    ],
    selectableFields: [
      "spec.nodeName",
      "spec.restartPolicy",
      "spec.schedulerName",
      "spec.serviceAccountName",
      "spec.hostNetwork",
      "status.phase",
      "status.podIP",
      "status.nominatedNodeName",
    ],
    fields: ["spec", "status"],
    specFields: POD_SPEC_FIELDS,
  }),
  kind(types.SERVICES, {
    description: "A Service is a named set of pods and their ports.",
    shortNames: ["svc"],
    deleteTellsObject: true,
    createsOnUpdate: true,
    categories: ["all"],
    subresources: ["status"],
    hasGeneration: false,
    columns: [
      column("Type", "spec.type"),
      column("Cluster-IP", "spec.clusterIP"),
      column("External-IP", "=list:spec.externalIPs"),
      column("Port(s)", "=service-ports"),
      wide("Selector", "=map:spec.selector"),
    ],
    selectableFields: ["spec.clusterIP", "spec.type"],
    fields: ["spec", "status"],
  }),
  kind(types.CONFIG_MAPS, {
    description: "A ConfigMap holds configuration for pods.",
    shortNames: ["cm"],
    columns: [column("Data", "=count:data,binaryData")],
    fields: ["data", "binaryData", "immutable"],
  }),
  kind(types.SECRETS, {
    description: "A Secret holds what only some may read.",
    columns: [column("Type", "type"), column("Data", "=count:data")],
    selectableFields: ["type"],
    fields: ["data", "stringData", "type", "immutable"],
  }),
  kind(types.SERVICE_ACCOUNTS, {
    description: "A ServiceAccount names who a pod acts as.",
    shortNames: ["sa"],
    deleteTellsObject: true,
    fields: ["secrets", "imagePullSecrets", "automountServiceAccountToken"],
  }),
  kind(types.PERSISTENT_VOLUME_CLAIMS, {
    description: "A PersistentVolumeClaim asks for a volume.",
    shortNames: ["pvc"],
    subresources: ["status"],
    hasGeneration: false,
    columns: [
      column("Status", "status.phase"),
      column("Volume", "spec.volumeName"),
      column("Capacity", "status.capacity.storage"),
      column("Access Modes", "=list:spec.accessModes"),
      column("StorageClass", "spec.storageClassName"),
    ],
    fields: ["spec", "status"],
  }),
  kind(PERSISTENT_VOLUMES, {
    description: "A PersistentVolume is a volume of the cluster.",
    shortNames: ["pv"],
    subresources: ["status"],
    hasGeneration: false,
    columns: [column("Capacity", "spec.capacity.storage"), column("Status", "status.phase")],
    fields: ["spec", "status"],
  }),
  kind(types.EVENTS, {
    description: "An Event tells what happened to an object.",
    shortNames: ["ev"],
    createsOnUpdate: true,
    anyName: true,
    fields: EVENT_FIELDS,
    keepNewest: 5_000,
    columns: [
      column("Last Seen", "=event-last-seen"),
      column("Type", "type"),
      column("Reason", "reason"),
      column("Object", "=event-object"),
      wide("Source", "source.component"),
      column("Message", "message"),
      wide("Count", "count", "integer"),
      wide("Name", "metadata.name"),
    ],
    selectableFields: [
      "involvedObject.kind",
      "involvedObject.namespace",
      "involvedObject.name",
      "involvedObject.uid",
      "involvedObject.apiVersion",
      "involvedObject.resourceVersion",
      "involvedObject.fieldPath",
      "reason",
      "reportingComponent",
      "source",
      "type",
    ],
  }),
  kind(types.DEPLOYMENTS, {
    description: "A Deployment keeps replicas of a pod and rolls out changes.",
    shortNames: ["deploy"],
    categories: ["all"],
    subresources: ["status", "scale"],
    columns: [
      column("Ready", "=ready-of-desired"),
      column("Up-to-date", "=number:status.updatedReplicas"),
      column("Available", "=number:status.availableReplicas"),
      wide("Containers", "=container-names"),
      wide("Images", "=container-images"),
      wide("Selector", "=selector"),
    ],
    fields: WORKLOAD_FIELDS,
    specFields: [
      "minReadySeconds",
      "paused",
      "progressDeadlineSeconds",
      "replicas",
      "revisionHistoryLimit",
      "selector",
      "strategy",
      "template",
    ],
  }),
  kind(types.REPLICA_SETS, {
    description: "A ReplicaSet keeps replicas of a pod.",
    shortNames: ["rs"],
    categories: ["all"],
    subresources: ["status", "scale"],
    columns: [
      column("Desired", "=number:spec.replicas", "integer"),
      column("Current", "=number:status.replicas", "integer"),
      column("Ready", "=number:status.readyReplicas", "integer"),
      wide("Containers", "=container-names"),
      wide("Images", "=container-images"),
      wide("Selector", "=selector"),
    ],
    selectableFields: ["status.replicas"],
    fields: WORKLOAD_FIELDS,
    specFields: ["minReadySeconds", "replicas", "selector", "template"],
  }),
  kind(types.STATEFUL_SETS, {
    description: "A StatefulSet keeps replicas of a pod that have names of their own.",
    shortNames: ["sts"],
    categories: ["all"],
    subresources: ["status", "scale"],
    columns: [column("Ready", "=ready-of-desired"), wide("Containers", "=container-names"), wide("Images", "=container-images")],
    fields: WORKLOAD_FIELDS,
    specFields: [
      "minReadySeconds",
      "ordinals",
      "persistentVolumeClaimRetentionPolicy",
      "podManagementPolicy",
      "replicas",
      "revisionHistoryLimit",
      "selector",
      "serviceName",
      "template",
      "updateStrategy",
      "volumeClaimTemplates",
    ],
  }),
  kind(types.DAEMON_SETS, {
    description: "A DaemonSet keeps one pod on every node.",
    shortNames: ["ds"],
    categories: ["all"],
    subresources: ["status"],
    columns: [
      column("Desired", "=number:status.desiredNumberScheduled", "integer"),
      column("Current", "=number:status.currentNumberScheduled", "integer"),
      column("Ready", "=number:status.numberReady", "integer"),
      column("Node Selector", "=map:spec.template.spec.nodeSelector"),
    ],
    fields: WORKLOAD_FIELDS,
    specFields: ["minReadySeconds", "revisionHistoryLimit", "selector", "template", "updateStrategy"],
  }),
  kind(types.POD_DISRUPTION_BUDGETS, {
    description: "A PodDisruptionBudget bounds how many pods may be evicted at once.",
    shortNames: ["pdb"],
    anyName: true,
    subresources: ["status"],
    columns: [
      column("Min Available", "=or-na:spec.minAvailable"),
      column("Max Unavailable", "=or-na:spec.maxUnavailable"),
      column("Allowed Disruptions", "=number:status.disruptionsAllowed", "integer"),
    ],
    fields: WORKLOAD_FIELDS,
    specFields: ["maxUnavailable", "minAvailable", "selector", "unhealthyPodEvictionPolicy"],
  }),
  kind(types.LEASES, {
    description: "A Lease is held by one at a time and has to be renewed.",
    createsOnUpdate: true,
    columns: [column("Holder", "spec.holderIdentity")],
    fields: ["spec"],
    specFields: ["acquireTime", "holderIdentity", "leaseDurationSeconds", "leaseTransitions", "preferredHolder", "renewTime", "strategy"],
  }),
  kind(types.PRIORITY_CLASSES, {
    description: "A PriorityClass gives pods a priority.",
    shortNames: ["pc"],
    hasGeneration: true,
    generationStays: true,
    columns: [column("Value", "value", "integer"), column("Global-Default", "=flag:globalDefault", "boolean")],
    fields: ["value", "globalDefault", "description", "preemptionPolicy"],
  }),
  kind(STORAGE_CLASSES, {
    description: "A StorageClass names how volumes are made.",
    shortNames: ["sc"],
    columns: [column("Provisioner", "provisioner"), column("ReclaimPolicy", "reclaimPolicy")],
  }),
  kind(ENDPOINT_SLICES, {
    description: "An EndpointSlice lists the addresses behind a service.",
    columns: [column("AddressType", "addressType"), column("Ports", "=list:ports.port"), column("Endpoints", "=list:endpoints.addresses")],
    hasGeneration: true,
    fields: ["addressType", "endpoints", "ports"],
  }),
  kind(types.CUSTOM_RESOURCE_DEFINITIONS, {
    description: "A CustomResourceDefinition adds a kind.",
    shortNames: ["crd", "crds"],
    categories: ["api-extensions"],
    subresources: ["status"],
    columns: [column("Created At", "metadata.creationTimestamp")],
    fields: ["spec", "status"],
  }),
  kind(types.NODE_CLAIMS, {
    description: "A NodeClaim asks the provisioner for a node.",
    custom: true,
    categories: ["karpenter"],
    subresources: ["status"],
    columns: [
      column("Type", "=label:node.kubernetes.io/instance-type"),
      column("Capacity", "=label:karpenter.sh/capacity-type"),
      column("Zone", "=label:topology.kubernetes.io/zone"),
      column("Node", "status.nodeName"),
      column("Ready", ready("Ready")),
      wide("Drifted", ready("Drifted")),
      wide("ID", "status.providerID"),
      wide("NodePool", "=label:karpenter.sh/nodepool"),
    ],
    fields: ["spec", "status"],
    specFields: ["expireAfter", "nodeClassRef", "requirements", "resources", "startupTaints", "taints", "terminationGracePeriod"],
  }),
  kind(types.NODE_POOLS, {
    description: "A NodePool says which nodes the provisioner may make.",
    custom: true,
    categories: ["karpenter"],
    subresources: ["status"],
    columns: [
      column("NodeClass", "spec.template.spec.nodeClassRef.name"),
      column("Nodes", "status.nodes"),
      column("Ready", ready("Ready")),
      wide("Weight", "spec.weight", "integer"),
    ],
    fields: ["spec", "status"],
    specFields: ["disruption", "limits", "replicas", "template", "weight"],
  }),
  kind(types.POOLS, {
    description: "A Pool is the desired instances of one service, with a driver and policies.",
    custom: true,
    categories: ["relevo"],
    subresources: ["status"],
    columns: [
      column("Phase", "status.phase"),
      column("Desired", "status.desired", "integer"),
      column("Serving", "=number:status.serving", "integer"),
      column("Mode", "status.mode"),
      column("Reason", "status.reason"),
      wide("Draining", "status.draining", "integer"),
      wide("Standby", "status.standby", "integer"),
      wide("Backlog", "status.demand.backlog", "number"),
      wide("Configured", "status.capacity.configured", "integer"),
      wide("Proven", "status.capacity.proven", "integer"),
      wide("Message", "status.message"),
    ],
    fields: ["spec", "status"],
  }),
  kind(types.SITES, {
    description: "A Site is a cluster with a place, a provider and credentials.",
    custom: true,
    categories: ["relevo"],
    subresources: ["status"],
    columns: [column("Provider", "spec.provider"), column("Ready", ready("Ready"))],
    fields: ["spec", "status"],
  }),
];
