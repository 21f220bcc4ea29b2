/** Binds pods that have no node, and says of the others why they have none. */
import { NODES, PODS } from "../../kube/resources.ts";
import type { ClusterAccess } from "../controllers/access.ts";
import type { EventRecorder } from "../controllers/events.ts";
import { ControllerLoop } from "../controllers/loop.ts";
import { conditionOf, isTerminal, refOf, withCondition, type NodeView, type PodView } from "../controllers/views.ts";
import { chooseNode, priorityOf, ZONE_LABEL } from "./choose-node.ts";

export const SCHEDULER_NAME = "default-scheduler";
const REGION_LABEL = "topology.kubernetes.io/region";

export function scheduler(access: ClusterAccess, events: EventRecorder): ControllerLoop {
  const nodes = access.informer(NODES);
  const pods = access.informer(PODS);
  const waiting = new Set<string>();
  const loop = new ControllerLoop({ name: "scheduler", clock: access.clock, log: access.log, signal: access.signal, reconcile });
  pods.addIndex("bound", (pod) => (needsNode(pod as PodView) ? [] : ["yes"]));
  pods.onChange(({ key, before, after }) => {
    if (after !== undefined && needsNode(after as PodView)) loop.enqueue(key);
    else waiting.delete(key);
    if (before !== undefined && freesRoom(before as PodView, after as PodView | undefined)) retryWaiting();
  });
  nodes.onChange(retryWaiting);

  /** Room may have come from anywhere: every waiting pod looks again, each once, the more important first. */
  function retryWaiting(): void {
    for (const key of byImportance([...waiting])) loop.enqueue(key);
  }

  function byImportance(keys: readonly string[]): readonly string[] {
    return keys
      .map((key) => ({ key, priority: priorityOf(pods.get(key) as PodView | undefined) }))
      .toSorted((a, b) => b.priority - a.priority)
      .map(({ key }) => key);
  }

  async function reconcile(key: string): Promise<void> {
    const pod = pods.get(key) as PodView | undefined;
    if (pod === undefined || !needsNode(pod)) return void waiting.delete(key);
    const placement = chooseNode(pod, nodes.values() as readonly NodeView[], pods.byIndex("bound", "yes") as readonly PodView[]);
    if (placement.kind === "node") {
      await bind(pod, placement.node);
      waiting.delete(key);
    } else {
      waiting.add(key);
      await refuse(pod, placement.message);
    }
  }

  async function bind(pod: PodView, node: NodeView): Promise<void> {
    const { uid, resourceVersion } = pod.metadata;
    const copied = [ZONE_LABEL, REGION_LABEL].flatMap((label) => {
      const value = node.metadata.labels?.[label];
      return value === undefined ? [] : [[label, value] as const];
    });
    const metadata = { uid, resourceVersion, ...(copied.length === 0 ? {} : { labels: Object.fromEntries(copied) }) };
    const bound = (await access.patch(refOf(PODS, pod), { metadata, spec: { nodeName: node.metadata.name } })) as PodView;
    const conditions = withCondition(bound.status?.conditions, { type: "PodScheduled", status: "True" }, access.stamp());
    await access.patchStatus(refOf(PODS, pod), {
      metadata: { uid, resourceVersion: bound.metadata.resourceVersion },
      status: { conditions },
    });
    events.record(bound, "Normal", "Scheduled", `Successfully assigned ${key(pod)} to ${node.metadata.name}`);
  }

  async function refuse(pod: PodView, message: string): Promise<void> {
    const before = conditionOf(pod.status?.conditions, "PodScheduled");
    if (before?.status === "False" && before.message === message) return;
    const conditions = withCondition(
      pod.status?.conditions,
      { type: "PodScheduled", status: "False", reason: "Unschedulable", message },
      access.stamp(),
    );
    await access.patchStatus(refOf(PODS, pod), { metadata: { uid: pod.metadata.uid }, status: { conditions } });
    events.record(pod, "Warning", "FailedScheduling", message);
  }

  return loop;
}

function needsNode(pod: PodView): boolean {
  return (
    (pod.spec.nodeName ?? "") === "" &&
    pod.metadata.deletionTimestamp === undefined &&
    !isTerminal(pod) &&
    (pod.spec.schedulerName ?? SCHEDULER_NAME) === SCHEDULER_NAME
  );
}

function freesRoom(before: PodView, after: PodView | undefined): boolean {
  return (before.spec.nodeName ?? "") !== "" && (after === undefined || (isTerminal(after) && !isTerminal(before)));
}

function key(pod: PodView): string {
  return `${pod.metadata.namespace}/${pod.metadata.name}`;
}
