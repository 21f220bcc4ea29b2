/**
 * What becomes of a node that is not heard of: Ready goes Unknown when its lease runs out, taints follow its conditions, its pods count as not ready at once
 * and are deleted when they bear the taint no longer.
 */
import type { KubeObject } from "../../kube/api.ts";
import { LEASES, NODES, PODS } from "../../kube/resources.ts";
import { tolerates } from "../../kube/scheduling.ts";
import type { ClusterAccess } from "./access.ts";
import type { EventRecorder } from "./events.ts";
import { ControllerLoop, type ReconcileResult } from "./loop.ts";
import {
  conditionOf,
  isReady,
  isTerminal,
  refOf,
  withCondition,
  type LeaseView,
  type NodeView,
  type PodView,
  type Taint,
} from "./views.ts";

export interface NodeLifecycleOptions {
  /** Without a renewal for this long a node's state is unknown. Kubernetes: 50 s. */
  readonly leaseGraceMs: number;
}

export const NODE_LEASE_NAMESPACE = "kube-node-lease";
export const NOT_READY_TAINT = "node.kubernetes.io/not-ready";
export const UNREACHABLE_TAINT = "node.kubernetes.io/unreachable";
export const UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable";
const OURS: readonly string[] = [NOT_READY_TAINT, UNREACHABLE_TAINT, UNSCHEDULABLE_TAINT];

export function nodeLifecycleController(access: ClusterAccess, events: EventRecorder, options: NodeLifecycleOptions): ControllerLoop {
  const nodes = access.informer(NODES);
  const leases = access.informer(LEASES);
  const pods = access.informer(PODS);
  /** When each lease was last seen to change, by our own monotonic clock: foreign time stamps are not compared. */
  const renewals = new Map<string, { readonly stamp: string; readonly seenAt: number }>();
  /** When each node was to be looked at again. */
  const dueAt = new Map<string, number>();
  const loop = new ControllerLoop({ name: "node-lifecycle", clock: access.clock, log: access.log, signal: access.signal, reconcile });
  nodes.onChange(({ key, before, after }) => {
    if (after === undefined || before?.metadata.uid !== after.metadata.uid) renewals.delete(key);
    loop.enqueue(key);
  });
  leases.onChange(({ after }) => {
    if (after === undefined || after.metadata.namespace !== NODE_LEASE_NAMESPACE) return;
    const stamp = (after as LeaseView).spec?.renewTime ?? "";
    if (renewals.get(after.metadata.name)?.stamp === stamp) return;
    renewals.set(after.metadata.name, { stamp, seenAt: access.clock.monotonic() });
    const node = nodes.get(after.metadata.name) as NodeView | undefined;
    if (node !== undefined && conditionOf(node.status?.conditions, "Ready")?.status === "Unknown") loop.enqueue(after.metadata.name);
  });
  pods.onChange(({ after }) => {
    const nodeName = (after as PodView | undefined)?.spec.nodeName;
    const node = nodeName === undefined ? undefined : (nodes.get(nodeName) as NodeView | undefined);
    if (node?.spec.taints?.some((taint) => taint.effect === "NoExecute") === true) loop.enqueue(node.metadata.name);
  });

  async function reconcile(name: string): Promise<ReconcileResult | void> {
    const node = nodes.get(name) as NodeView | undefined;
    if (node === undefined) return void dueAt.delete(name);
    noticeOwnGap(name);
    const silentMs = silence(name);
    const seen = silentMs >= options.leaseGraceMs ? await markUnknown(node) : node;
    const tainted = await taint(seen);
    if (!isReady(tainted)) await markPodsNotReady(name);
    const evictAgainMs = await evictIntolerant(tainted);
    const nextCheckMs = silentMs >= options.leaseGraceMs ? undefined : options.leaseGraceMs - silentMs;
    const requeueAfterMs = earliest(nextCheckMs, evictAgainMs);
    if (requeueAfterMs === undefined) dueAt.delete(name);
    else dueAt.set(name, access.clock.monotonic() + requeueAfterMs);
    return { requeueAfterMs };
  }

  /** Called much later than planned: this process stood still, and saw no renewal because it saw nothing. Every node gets its full time anew. */
  function noticeOwnGap(name: string): void {
    const now = access.clock.monotonic();
    if (now - (dueAt.get(name) ?? now) < options.leaseGraceMs / 2) return;
    access.log("warn", "the node lifecycle stood still; no node is judged by that time", { lateMs: now - (dueAt.get(name) ?? now) });
    dueAt.clear();
    for (const [node, { stamp }] of renewals) renewals.set(node, { stamp, seenAt: now });
  }

  /** A node that has never had a lease counts from when it was first seen. */
  function silence(name: string): number {
    const now = access.clock.monotonic();
    const renewal = renewals.get(name) ?? { stamp: "", seenAt: now };
    renewals.set(name, renewal);
    return now - renewal.seenAt;
  }

  async function markUnknown(node: NodeView): Promise<NodeView> {
    if (conditionOf(node.status?.conditions, "Ready")?.status === "Unknown") return node;
    const now = access.stamp();
    let conditions = node.status?.conditions ?? [];
    for (const type of ["Ready", ...conditions.map((condition) => condition.type).filter((type) => type !== "Ready")]) {
      conditions = withCondition(
        conditions,
        { type, status: "Unknown", reason: "NodeStatusUnknown", message: "Kubelet stopped posting node status." },
        now,
      );
    }
    const { uid, resourceVersion } = node.metadata;
    const marked = await access.patchStatus(refOf(NODES, node), { metadata: { uid, resourceVersion }, status: { conditions } });
    events.record(node, "Normal", "NodeNotReady", `Node ${node.metadata.name} status is now: NodeNotReady`);
    return marked as NodeView;
  }

  async function taint(node: NodeView): Promise<NodeView> {
    const present = node.spec.taints ?? [];
    const wanted = wantedTaints(node);
    const isRight = (candidate: Taint): boolean => wanted.some((other) => isSame(candidate, other));
    const missing = wanted.filter((other) => !present.some((candidate) => isSame(candidate, other)));
    const kept = present.filter((candidate) => !OURS.includes(candidate.key) || isRight(candidate));
    if (missing.length === 0 && kept.length === present.length) return node;
    const timeAdded = access.stamp();
    const taints = [...kept, ...missing.map((other) => (other.effect === "NoExecute" ? { ...other, timeAdded } : other))];
    const { uid, resourceVersion } = node.metadata;
    return (await access.patch(refOf(NODES, node), {
      metadata: { uid, resourceVersion },
      spec: { taints: taints.length === 0 ? null : taints },
    })) as NodeView;
  }

  async function markPodsNotReady(name: string): Promise<void> {
    const now = access.stamp();
    for (const pod of pods.byIndex("node", name) as readonly PodView[]) {
      if (isTerminal(pod) || !isReady(pod)) continue;
      const conditions = withCondition(pod.status?.conditions, { type: "Ready", status: "False", reason: "NodeNotReady" }, now);
      const { uid, resourceVersion } = pod.metadata;
      await access.patchStatus(refOf(PODS, pod), { metadata: { uid, resourceVersion }, status: { conditions } });
      events.record(pod, "Warning", "NodeNotReady", "Node is not ready");
    }
  }

  /** Deletes pods whose patience with a NoExecute taint is over; says when the next one's ends. */
  async function evictIntolerant(node: NodeView): Promise<number | undefined> {
    const taints = (node.spec.taints ?? []).filter((candidate) => candidate.effect === "NoExecute");
    let next: number | undefined;
    for (const pod of taints.length === 0 ? [] : (pods.byIndex("node", node.metadata.name) as readonly PodView[])) {
      if (pod.metadata.deletionTimestamp !== undefined || isTerminal(pod)) continue;
      const leftMs = Math.min(...taints.map((candidate) => patienceMs(pod, candidate, access.clock.now())));
      if (leftMs > 0) {
        next = earliest(next, Number.isFinite(leftMs) ? leftMs : undefined);
        continue;
      }
      await access.delete(refOf(PODS, pod), pod.metadata.uid);
      events.record(
        pod as KubeObject,
        "Normal",
        "TaintManagerEviction",
        `Marking for deletion Pod ${pod.metadata.namespace}/${pod.metadata.name}`,
      );
    }
    return next;
  }

  return loop;
}

function wantedTaints(node: NodeView): readonly Taint[] {
  const wanted: Taint[] = [];
  const ready = conditionOf(node.status?.conditions, "Ready")?.status;
  if (ready === "Unknown") wanted.push(...both(UNREACHABLE_TAINT));
  // A node that registers brings its own not-ready taint; NoExecute comes only when a node that was ready says that it is not.
  if (ready === undefined) wanted.push({ key: NOT_READY_TAINT, effect: "NoSchedule" });
  if (ready === "False") wanted.push(...both(NOT_READY_TAINT));
  if (node.spec.unschedulable === true) wanted.push({ key: UNSCHEDULABLE_TAINT, effect: "NoSchedule" });
  return wanted;
}

function both(key: string): readonly Taint[] {
  return [
    { key, effect: "NoSchedule" },
    { key, effect: "NoExecute" },
  ];
}

function isSame(a: Taint, b: Taint): boolean {
  return a.key === b.key && a.effect === b.effect;
}

/** How much longer a pod bears a taint: 0 not at all, Infinity for ever. */
function patienceMs(pod: PodView, taint: Taint, now: number): number {
  const tolerations = (pod.spec.tolerations ?? []).filter((toleration) => tolerates(toleration, taint));
  if (tolerations.length === 0) return 0;
  const limits = tolerations.flatMap(({ tolerationSeconds }) => (tolerationSeconds === undefined ? [] : [tolerationSeconds]));
  if (limits.length === 0) return Number.POSITIVE_INFINITY;
  const since = taint.timeAdded === undefined ? now : Date.parse(taint.timeAdded);
  return Math.max(0, since + Math.max(0, Math.min(...limits)) * 1000 - now);
}

function earliest(...times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}
