/**
 * Where a pod goes. Pure: the same pod, nodes and pods give the same answer. A node must pass every filter; among those that do, the one wins that
 * spreads pods of the same kind best over nodes and zones, then the emptiest, then the first by name.
 */
import { parseQuantity } from "../../kernel/units.ts";
import { matchesRequirement, tolerates } from "../../kube/scheduling.ts";
import { UNSCHEDULABLE_TAINT } from "../controllers/node-lifecycle.ts";
import {
  controllerOf,
  isReady,
  isTerminal,
  type PodAffinityTerm,
  type NodeSelectorTerm,
  type NodeView,
  type PodSpec,
  type PodView,
  type Taint,
  type TopologySpreadConstraint,
} from "../controllers/views.ts";
import { matchesLabelSelector } from "../store/selectors.ts";

export const ZONE_LABEL = "topology.kubernetes.io/zone";
export const HOSTNAME_LABEL = "kubernetes.io/hostname";

const UNSCHEDULABLE: Taint = { key: UNSCHEDULABLE_TAINT, effect: "NoSchedule" };

export type Placement =
  | { readonly kind: "node"; readonly node: NodeView }
  /** `reasons` counts the nodes that each reason excludes; `message` is what Kubernetes would say. */
  | { readonly kind: "unschedulable"; readonly reasons: ReadonlyMap<string, number>; readonly message: string };

export interface Resources {
  readonly cpu: number;
  readonly memory: number;
  readonly pods: number;
}

/** Objects of the store never change: what one asks for is read once. */
const requests = new WeakMap<PodSpec, Resources>();

/** What a pod asks for: the sum of its containers, or its largest init container when that is more. */
export function requestsOf(spec: PodSpec): Resources {
  const known = requests.get(spec);
  if (known !== undefined) return known;
  const read = readRequests(spec);
  requests.set(spec, read);
  return read;
}

function readRequests(spec: PodSpec): Resources {
  const read = (
    container: { readonly resources?: { readonly requests?: Readonly<Record<string, string | number>> } },
    name: string,
  ): number => parseQuantity(container.resources?.requests?.[name] ?? "0") ?? 0;
  const need = (name: string): number =>
    Math.max(
      spec.containers.reduce((sum, container) => sum + read(container, name), 0),
      ...(spec.initContainers ?? []).map((container) => read(container, name)),
    );
  return { cpu: need("cpu"), memory: need("memory"), pods: 1 };
}

/** Of its PriorityClass; 0 without one. */
export function priorityOf(pod: PodView | undefined): number {
  return pod?.spec.priority ?? 0;
}

export function chooseNode(pod: PodView, nodes: readonly NodeView[], podsOnNodes: readonly PodView[]): Placement {
  const alive = podsOnNodes.filter((other) => !isTerminal(other));
  const byNode = Map.groupBy(alive, (other) => other.spec.nodeName ?? "");
  const context: Context = { pod, nodes, byNode, ...countKin(pod, nodes, byNode), usedOn: new Map(), counted: new Map() };
  const reasons = new Map<string, number>();
  const fitting = nodes.filter((node) => {
    const reason = whyNot(context, node);
    if (reason !== undefined) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    return reason === undefined;
  });
  const [best] = fitting
    .map((node) => ({ node, penalty: penaltyOf(context, node) }))
    .toSorted((a, b) => compareLists(a.penalty, b.penalty) || (a.node.metadata.name < b.node.metadata.name ? -1 : 1));
  if (best !== undefined) return { kind: "node", node: best.node };
  return { kind: "unschedulable", reasons, message: unschedulableMessage(nodes.length, reasons) };
}

interface Context {
  readonly pod: PodView;
  readonly nodes: readonly NodeView[];
  readonly byNode: ReadonlyMap<string, readonly PodView[]>;
  /** Pods of the pod's kind, by node and by zone. */
  readonly kinOnNode: ReadonlyMap<string, number>;
  readonly kinInZone: ReadonlyMap<string, number>;
  /** What was counted once for this choice is the same for every node: by node, and by the constraint or term that it was counted for. */
  readonly usedOn: Map<string, Resources>;
  readonly counted: Map<object, ReadonlyMap<string, number>>;
}

function once<K, V>(known: Map<K, V>, key: K, make: () => V): V {
  const found = known.get(key);
  if (found !== undefined) return found;
  const made = make();
  known.set(key, made);
  return made;
}

function countKin(pod: PodView, nodes: readonly NodeView[], byNode: Context["byNode"]): Pick<Context, "kinOnNode" | "kinInZone"> {
  const isKin = isKinOf(pod);
  const kinOnNode = new Map<string, number>();
  const kinInZone = new Map<string, number>();
  for (const node of nodes) {
    const zone = node.metadata.labels?.[ZONE_LABEL] ?? "";
    const count = (byNode.get(node.metadata.name) ?? []).filter(isKin).length;
    kinOnNode.set(node.metadata.name, count);
    kinInZone.set(zone, (kinInZone.get(zone) ?? 0) + count);
  }
  return { kinOnNode, kinInZone };
}

function whyNot(context: Context, node: NodeView): string | undefined {
  const { spec } = context.pod;
  if (node.metadata.deletionTimestamp !== undefined) return "node(s) were being deleted";
  if (node.spec.unschedulable === true && !spec.tolerations?.some((toleration) => tolerates(toleration, UNSCHEDULABLE)))
    return "node(s) were unschedulable";
  const taint = (node.spec.taints ?? []).find(
    (candidate) =>
      candidate.effect !== "PreferNoSchedule" && !(spec.tolerations ?? []).some((toleration) => tolerates(toleration, candidate)),
  );
  if (taint !== undefined) return `node(s) had untolerated taint {${taint.key}: ${taint.value ?? ""}}`;
  if (!isReady(node)) return "node(s) were not ready";
  if (!matchesNode(spec, node)) return "node(s) didn't match Pod's node affinity/selector";
  return lackingResource(context, node) ?? violatedSpread(context, node) ?? violatedAntiAffinity(context, node);
}

function matchesNode(spec: PodSpec, node: NodeView): boolean {
  const labels = node.metadata.labels ?? {};
  if (Object.entries(spec.nodeSelector ?? {}).some(([key, value]) => labels[key] !== value)) return false;
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return terms === undefined || terms.some((term) => matchesTerm(term, node));
}

function matchesTerm(term: NodeSelectorTerm, node: NodeView): boolean {
  const expressions = term.matchExpressions ?? [];
  const fields = term.matchFields ?? [];
  if (expressions.length === 0 && fields.length === 0) return false; // an empty term matches nothing
  return (
    expressions.every((requirement) => matchesRequirement(requirement, node.metadata.labels)) &&
    fields.every((requirement) => matchesRequirement(requirement, { "metadata.name": node.metadata.name }))
  );
}

function lackingResource(context: Context, node: NodeView): string | undefined {
  const need = requestsOf(context.pod.spec);
  const used = usage(context, node.metadata.name);
  const allocatable = node.status?.allocatable ?? {};
  const free = (name: keyof Resources): number => (parseQuantity(allocatable[name] ?? "0") ?? 0) - used[name];
  if (need.pods > free("pods")) return "Too many pods";
  if (need.cpu > free("cpu") + 1e-9) return "Insufficient cpu";
  return need.memory > free("memory") ? "Insufficient memory" : undefined;
}

function usage({ byNode, usedOn }: Context, node: string): Resources {
  return once(usedOn, node, () => {
    const pods = byNode.get(node) ?? [];
    let cpu = 0;
    let memory = 0;
    for (const pod of pods) {
      const need = requestsOf(pod.spec);
      cpu += need.cpu;
      memory += need.memory;
    }
    return { cpu, memory, pods: pods.length };
  });
}

function violatedSpread(context: Context, node: NodeView): string | undefined {
  for (const constraint of context.pod.spec.topologySpreadConstraints ?? []) {
    if (constraint.whenUnsatisfiable !== "DoNotSchedule") continue;
    const domain = node.metadata.labels?.[constraint.topologyKey];
    if (domain === undefined) return "node(s) didn't match pod topology spread constraints (missing required label)";
    const counts = countByDomain(context, constraint);
    if ((counts.get(domain) ?? 0) + 1 - Math.min(...counts.values()) > constraint.maxSkew)
      return "node(s) didn't match pod topology spread constraints";
  }
  return undefined;
}

/** Matching pods per domain; only domains whose nodes the pod could choose count, so that a cordoned one does not hold the rest back at zero. */
function countByDomain({ pod, nodes, byNode, counted }: Context, constraint: TopologySpreadConstraint): ReadonlyMap<string, number> {
  return once(counted, constraint, () => {
    const counts = new Map<string, number>();
    for (const node of nodes) {
      const domain = node.metadata.labels?.[constraint.topologyKey];
      if (domain === undefined || !matchesNode(pod.spec, node)) continue;
      const here = (byNode.get(node.metadata.name) ?? []).filter(
        (other) =>
          other.metadata.namespace === pod.metadata.namespace &&
          other.metadata.deletionTimestamp === undefined &&
          matchesLabelSelector(constraint.labelSelector, other.metadata.labels),
      );
      counts.set(domain, (counts.get(domain) ?? 0) + here.length);
    }
    return counts;
  });
}

function violatedAntiAffinity(context: Context, node: NodeView): string | undefined {
  const terms = context.pod.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  for (const term of terms) {
    const domain = node.metadata.labels?.[term.topologyKey];
    if (domain !== undefined && podsInDomain(context, term, domain) > 0) return "node(s) didn't match pod anti-affinity rules";
  }
  return undefined;
}

function podsInDomain({ pod, nodes, byNode, counted }: Context, term: PodAffinityTerm, domain: string): number {
  const counts = once(counted, term, () => {
    const found = new Map<string, number>();
    for (const node of nodes) {
      const at = node.metadata.labels?.[term.topologyKey];
      if (at === undefined) continue;
      const here = (byNode.get(node.metadata.name) ?? []).filter(
        (other) => other.metadata.namespace === pod.metadata.namespace && matchesLabelSelector(term.labelSelector, other.metadata.labels),
      );
      found.set(at, (found.get(at) ?? 0) + here.length);
    }
    return found;
  });
  return counts.get(domain) ?? 0;
}

/** Smaller is better, compared from the left: preferences of the pod, kin on the node, kin in the zone, taints to avoid, how full it is. */
function penaltyOf(context: Context, node: NodeView): readonly number[] {
  const { byNode, kinOnNode, kinInZone } = context;
  const { name, labels } = node.metadata;
  const here = byNode.get(name) ?? [];
  const used = usage(context, name);
  const share = (resource: "cpu" | "memory"): number =>
    used[resource] / Math.max(1e-9, parseQuantity(node.status?.allocatable?.[resource] ?? "0") ?? 0);
  return [
    preferencePenalty(context, node),
    kinOnNode.get(name) ?? 0,
    kinInZone.get(labels?.[ZONE_LABEL] ?? "") ?? 0,
    (node.spec.taints ?? []).filter((taint) => taint.effect === "PreferNoSchedule").length,
    Math.max(share("cpu"), share("memory")),
    here.length,
  ];
}

function preferencePenalty(context: Context, node: NodeView): number {
  let penalty = 0;
  for (const { weight, podAffinityTerm: term } of context.pod.spec.affinity?.podAntiAffinity
    ?.preferredDuringSchedulingIgnoredDuringExecution ?? []) {
    const domain = node.metadata.labels?.[term.topologyKey];
    if (domain !== undefined) penalty += weight * podsInDomain(context, term, domain);
  }
  for (const constraint of context.pod.spec.topologySpreadConstraints ?? []) {
    const domain = node.metadata.labels?.[constraint.topologyKey] ?? "";
    penalty += 10 * (countByDomain(context, constraint).get(domain) ?? 0);
  }
  return penalty;
}

/** Pods of the same owner, or with the same labels: losing a node should take as few of them as possible. */
function isKinOf(pod: PodView): (other: PodView) => boolean {
  const owner = controllerOf(pod)?.uid;
  const labels = Object.entries(pod.metadata.labels ?? {}).filter(([key]) => key !== "pod-template-hash");
  return (other) => {
    if (other.metadata.namespace !== pod.metadata.namespace || other.metadata.deletionTimestamp !== undefined) return false;
    if (owner !== undefined && controllerOf(other)?.uid === owner) return true;
    return labels.length > 0 && labels.every(([key, value]) => other.metadata.labels?.[key] === value);
  };
}

function compareLists(a: readonly number[], b: readonly number[]): number {
  for (const [index, value] of a.entries()) {
    const difference = value - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function unschedulableMessage(total: number, reasons: ReadonlyMap<string, number>): string {
  const parts = [...reasons].map(([reason, count]) => `${count} ${reason}`).toSorted();
  return total === 0 ? "no nodes available to schedule pods" : `0/${total} nodes are available: ${parts.join(", ")}.`;
}
