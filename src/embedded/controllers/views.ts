/**
 * The fields of built-in kinds that the embedded cluster's controllers read. The object store has checked the shape on the way in, so these are views, not
 * parses; whatever may be absent in a valid object is optional here.
 */
import type { KubeObject, ObjectMeta, ObjectRef, OwnerReference, ResourceType } from "../../kube/api.ts";
import type { SelectorRequirement } from "../../kube/scheduling.ts";
import type { LabelSelector } from "../store/selectors.ts";

export interface Condition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
  /** Of a Node's conditions. */
  readonly lastHeartbeatTime?: string;
  readonly observedGeneration?: number;
}

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
  readonly timeAdded?: string;
}

export interface Toleration {
  readonly key?: string;
  readonly operator?: "Exists" | "Equal";
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number;
}

export interface HttpGetAction {
  readonly path?: string;
  readonly port: number | string;
  readonly host?: string;
  readonly httpHeaders?: readonly { readonly name: string; readonly value: string }[];
}

export interface ActionSpec {
  readonly httpGet?: HttpGetAction;
  readonly tcpSocket?: { readonly port: number | string; readonly host?: string };
  readonly exec?: { readonly command?: readonly string[] };
  readonly sleep?: { readonly seconds: number };
}

export interface ProbeSpec extends ActionSpec {
  readonly initialDelaySeconds?: number;
  readonly periodSeconds?: number;
  readonly timeoutSeconds?: number;
  readonly successThreshold?: number;
  readonly failureThreshold?: number;
}

export interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string };
    readonly configMapKeyRef?: KeyRef;
    readonly secretKeyRef?: KeyRef;
    readonly resourceFieldRef?: { readonly resource: string };
  };
}

export interface KeyRef {
  readonly name: string;
  readonly key: string;
  readonly optional?: boolean;
}

export interface ContainerSpec {
  readonly name: string;
  readonly image?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly workingDir?: string;
  readonly env?: readonly EnvVar[];
  readonly envFrom?: readonly {
    readonly prefix?: string;
    readonly configMapRef?: { readonly name: string; readonly optional?: boolean };
    readonly secretRef?: { readonly name: string; readonly optional?: boolean };
  }[];
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
  readonly resources?: {
    readonly requests?: Readonly<Record<string, string | number>>;
    readonly limits?: Readonly<Record<string, string | number>>;
  };
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly readinessProbe?: ProbeSpec;
  readonly livenessProbe?: ProbeSpec;
  readonly startupProbe?: ProbeSpec;
  readonly lifecycle?: { readonly preStop?: ActionSpec; readonly postStart?: ActionSpec };
}

export interface VolumeSpec {
  readonly name: string;
  readonly emptyDir?: object;
  readonly configMap?: {
    readonly name: string;
    readonly optional?: boolean;
    readonly items?: readonly { readonly key: string; readonly path: string }[];
  };
  readonly secret?: { readonly secretName: string; readonly optional?: boolean };
}

export interface NodeSelectorTerm {
  readonly matchExpressions?: readonly SelectorRequirement[];
  readonly matchFields?: readonly SelectorRequirement[];
}

export interface PodAffinityTerm {
  readonly labelSelector?: LabelSelector;
  readonly topologyKey: string;
  readonly namespaces?: readonly string[];
}

export interface TopologySpreadConstraint {
  readonly maxSkew: number;
  readonly topologyKey: string;
  readonly whenUnsatisfiable: "DoNotSchedule" | "ScheduleAnyway";
  readonly labelSelector?: LabelSelector;
}

export interface PodSpec {
  readonly nodeName?: string;
  readonly schedulerName?: string;
  readonly containers: readonly ContainerSpec[];
  readonly initContainers?: readonly ContainerSpec[];
  readonly volumes?: readonly VolumeSpec[];
  readonly restartPolicy?: "Always" | "OnFailure" | "Never";
  readonly terminationGracePeriodSeconds?: number;
  readonly hostname?: string;
  readonly serviceAccountName?: string;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly Toleration[];
  readonly priority?: number;
  readonly affinity?: {
    readonly nodeAffinity?: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: { readonly nodeSelectorTerms: readonly NodeSelectorTerm[] };
    };
    readonly podAntiAffinity?: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodAffinityTerm[];
      readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly {
        readonly weight: number;
        readonly podAffinityTerm: PodAffinityTerm;
      }[];
    };
  };
  readonly topologySpreadConstraints?: readonly TopologySpreadConstraint[];
}

export interface ContainerStatus {
  readonly name: string;
  readonly state: ContainerState;
  readonly lastState: ContainerState;
  readonly ready: boolean;
  readonly started: boolean;
  readonly restartCount: number;
  readonly image: string;
  readonly imageID: string;
  readonly containerID?: string;
}

export interface ContainerState {
  readonly waiting?: { readonly reason: string; readonly message?: string };
  readonly running?: { readonly startedAt: string };
  readonly terminated?: {
    readonly exitCode: number;
    readonly signal?: number;
    readonly reason: string;
    readonly startedAt: string;
    readonly finishedAt: string;
    readonly containerID: string;
  };
}

export interface PodStatus {
  readonly phase?: "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";
  readonly reason?: string;
  readonly message?: string;
  readonly conditions?: readonly Condition[];
  readonly qosClass?: string;
  readonly podIP?: string;
  readonly hostIP?: string;
  readonly startTime?: string;
  readonly containerStatuses?: readonly ContainerStatus[];
  readonly initContainerStatuses?: readonly ContainerStatus[];
}

export interface PodView extends KubeObject {
  readonly spec: PodSpec;
  readonly status?: PodStatus;
}

export interface PodTemplate {
  readonly metadata?: Partial<ObjectMeta>;
  readonly spec: PodSpec;
}

export interface NodeView extends KubeObject {
  readonly spec: { readonly providerID?: string; readonly unschedulable?: boolean; readonly taints?: readonly Taint[] };
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly capacity?: Readonly<Record<string, string>>;
    readonly allocatable?: Readonly<Record<string, string>>;
  };
}

export interface DeploymentView extends KubeObject {
  readonly spec: {
    readonly replicas?: number;
    readonly selector: LabelSelector;
    readonly template: PodTemplate;
    readonly paused?: boolean;
    readonly minReadySeconds?: number;
    readonly revisionHistoryLimit?: number;
    readonly progressDeadlineSeconds?: number;
    readonly strategy?: {
      readonly type?: "RollingUpdate" | "Recreate";
      readonly rollingUpdate?: { readonly maxSurge?: number | string; readonly maxUnavailable?: number | string };
    };
  };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

export interface ReplicaSetView extends KubeObject {
  readonly spec: {
    readonly replicas?: number;
    readonly selector: LabelSelector;
    readonly template: PodTemplate;
    readonly minReadySeconds?: number;
  };
  readonly status?: { readonly replicas?: number; readonly readyReplicas?: number; readonly availableReplicas?: number };
}

export interface StatefulSetView extends KubeObject {
  readonly spec: {
    readonly replicas?: number;
    readonly selector: LabelSelector;
    readonly template: PodTemplate;
    readonly serviceName?: string;
    readonly podManagementPolicy?: "OrderedReady" | "Parallel";
    readonly updateStrategy?: { readonly type?: "RollingUpdate" | "OnDelete" };
    readonly minReadySeconds?: number;
  };
}

export interface DaemonSetView extends KubeObject {
  readonly spec: {
    readonly selector: LabelSelector;
    readonly template: PodTemplate;
    readonly updateStrategy?: { readonly type?: "RollingUpdate" | "OnDelete" };
  };
}

export interface DisruptionBudgetView extends KubeObject {
  readonly spec: { readonly selector?: LabelSelector; readonly minAvailable?: number | string; readonly maxUnavailable?: number | string };
  readonly status?: { readonly disruptedPods?: Readonly<Record<string, string>>; readonly conditions?: readonly Condition[] };
}

export interface LeaseView extends KubeObject {
  readonly spec?: { readonly holderIdentity?: string; readonly renewTime?: string; readonly leaseDurationSeconds?: number };
}

export interface NodeClaimView extends KubeObject {
  readonly spec: { readonly terminationGracePeriod?: string };
  readonly status?: { readonly conditions?: readonly Condition[]; readonly nodeName?: string; readonly providerID?: string };
}

export interface NodePoolView extends KubeObject {
  readonly spec: {
    readonly template: {
      readonly metadata?: { readonly labels?: Readonly<Record<string, string>>; readonly annotations?: Readonly<Record<string, string>> };
      readonly spec: {
        readonly taints?: readonly Taint[];
        readonly terminationGracePeriod?: string;
        readonly expireAfter?: string;
        readonly nodeClassRef?: { readonly group: string; readonly kind: string; readonly name: string };
        readonly requirements?: readonly SelectorRequirement[];
      };
    };
    readonly disruption?: {
      readonly budgets?: readonly { readonly nodes: string }[];
      readonly consolidateAfter?: string;
    };
  };
}

/** `namespace/name`, or the name alone for cluster-scoped kinds. */
export function keyOf(object: { readonly metadata: { readonly namespace?: string; readonly name: string } }): string {
  const { namespace, name } = object.metadata;
  return namespace === undefined ? name : `${namespace}/${name}`;
}

export function refOf(type: ResourceType, object: KubeObject): ObjectRef {
  return { type, namespace: type.namespaced ? object.metadata.namespace : undefined, name: object.metadata.name };
}

export function refFromKey(type: ResourceType, key: string): ObjectRef {
  const slash = key.indexOf("/");
  return slash < 0 ? { type, name: key } : { type, namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller === true);
}

export function conditionOf(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/** Replaces or adds one condition; its transition time moves only when its status does. */
export function withCondition(conditions: readonly Condition[] | undefined, next: Condition, now: string): readonly Condition[] {
  const before = conditionOf(conditions, next.type);
  const lastTransitionTime = before?.status === next.status ? (before.lastTransitionTime ?? now) : now;
  const merged: Condition = { ...next, lastTransitionTime };
  return before === undefined
    ? [...(conditions ?? []), merged]
    : (conditions ?? []).map((condition) => (condition.type === next.type ? merged : condition));
}

export function isTerminal(pod: PodView): boolean {
  return pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
}

/** Neither ended nor being deleted. */
export function isActive(pod: PodView): boolean {
  return !isTerminal(pod) && pod.metadata.deletionTimestamp === undefined;
}

export function isReady(object: { readonly status?: { readonly conditions?: readonly Condition[] } }): boolean {
  return conditionOf(object.status?.conditions, "Ready")?.status === "True";
}

/** Milliseconds until a ready pod counts as available; 0 when it does, undefined when it is not ready. */
export function availableInMs(pod: PodView, minReadySeconds: number, now: number): number | undefined {
  const ready = conditionOf(pod.status?.conditions, "Ready");
  if (ready?.status !== "True") return undefined;
  const since = ready.lastTransitionTime === undefined ? now : Date.parse(ready.lastTransitionTime);
  return minReadySeconds === 0 ? 0 : Math.max(0, since + minReadySeconds * 1000 - now);
}

/** A number, or a percentage of `total`. */
export function resolveIntOrPercent(value: number | string, total: number, round: "up" | "down"): number {
  if (typeof value === "number") return value;
  const percent = Number.parseInt(value, 10);
  const exact = (percent * total) / 100;
  return value.endsWith("%") ? (round === "up" ? Math.ceil(exact) : Math.floor(exact)) : percent;
}
