/** Keeps one pod of a DaemonSet on every node that the pod could run on. */
import { isDeepStrictEqual } from "node:util";
import { DAEMON_SETS, NODES, PODS } from "../../kube/resources.ts";
import { chooseNode, HOSTNAME_LABEL } from "../scheduler/choose-node.ts";
import { controllerKey, type ClusterAccess } from "./access.ts";
import type { EventRecorder } from "./events.ts";
import { ControllerLoop } from "./loop.ts";
import { NOT_READY_TAINT, UNREACHABLE_TAINT, UNSCHEDULABLE_TAINT } from "./node-lifecycle.ts";
import { ownerReference } from "./replica-set.ts";
import { templateHash } from "./template-hash.ts";
import {
  isActive,
  isReady,
  isTerminal,
  refOf,
  type DaemonSetView,
  type NodeView,
  type PodSpec,
  type PodView,
  type Toleration,
} from "./views.ts";

const REVISION_LABEL = "controller-revision-hash";
/** As Kubernetes adds them: a daemon outlives what drives other pods away. */
const TOLERATIONS: readonly Toleration[] = [
  { key: NOT_READY_TAINT, operator: "Exists", effect: "NoExecute" },
  { key: UNREACHABLE_TAINT, operator: "Exists", effect: "NoExecute" },
  { key: UNSCHEDULABLE_TAINT, operator: "Exists", effect: "NoSchedule" },
];

export function daemonSetController(access: ClusterAccess, events: EventRecorder): ControllerLoop {
  const sets = access.informer(DAEMON_SETS);
  const nodes = access.informer(NODES);
  const pods = access.informer(PODS);
  const loop = new ControllerLoop({ name: "daemon-set", clock: access.clock, log: access.log, signal: access.signal, reconcile });
  sets.onChange(({ key }) => loop.enqueue(key));
  nodes.onChange(() => {
    for (const set of sets.values()) loop.enqueue(`${set.metadata.namespace}/${set.metadata.name}`);
  });
  pods.onChange(({ before, after }) => {
    for (const pod of [before, after]) {
      const owner = pod === undefined ? undefined : controllerKey(pod, "DaemonSet");
      if (owner !== undefined) loop.enqueue(owner);
    }
  });

  async function reconcile(key: string): Promise<void> {
    const set = sets.get(key) as DaemonSetView | undefined;
    if (set === undefined || set.metadata.deletionTimestamp !== undefined) return;
    const revision = templateHash(set.spec.template);
    const owned = pods.byIndex("owner", set.metadata.uid) as readonly PodView[];
    const byNode = Map.groupBy(owned, targetOf);
    const wanted = (nodes.values() as readonly NodeView[]).filter((node) => mayRun(set, node)).map((node) => node.metadata.name);
    for (const name of wanted) if ((byNode.get(name) ?? []).length === 0) await createPod(set, name, revision);
    for (const pod of owned) {
      if (pod.metadata.deletionTimestamp === undefined && (isTerminal(pod) || !wanted.includes(targetOf(pod)))) await deletePod(set, pod);
    }
    await update(set, owned, revision);
    await writeStatus(set, wanted, revision);
  }

  /** One pod at a time, and only while the others are ready. */
  async function update(set: DaemonSetView, owned: readonly PodView[], revision: string): Promise<void> {
    if (set.spec.updateStrategy?.type === "OnDelete") return;
    const old = owned.filter((pod) => isActive(pod) && pod.metadata.labels?.[REVISION_LABEL] !== revision);
    const [next] = old.toSorted((a, b) => Number(isReady(a)) - Number(isReady(b)));
    const isCalm = owned.every((pod) => isActive(pod) && isReady(pod));
    if (next !== undefined && (isCalm || !isReady(next))) await deletePod(set, next);
  }

  async function createPod(set: DaemonSetView, nodeName: string, revision: string): Promise<void> {
    const { metadata } = set.spec.template;
    const annotations = metadata?.annotations;
    const pod = await access.create(
      PODS,
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: {
          generateName: `${set.metadata.name}-`,
          labels: { ...metadata?.labels, [REVISION_LABEL]: revision },
          ...(annotations === undefined ? {} : { annotations }),
          ownerReferences: [ownerReference(set)],
        },
        spec: specFor(set, nodeName),
      },
      set.metadata.namespace,
    );
    events.record(set, "Normal", "SuccessfulCreate", `Created pod: ${pod.metadata.name}`);
  }

  async function deletePod(set: DaemonSetView, pod: PodView): Promise<void> {
    await access.delete(refOf(PODS, pod), pod.metadata.uid);
    events.record(set, "Normal", "SuccessfulDelete", `Deleted pod: ${pod.metadata.name}`);
  }

  async function writeStatus(set: DaemonSetView, wanted: readonly string[], revision: string): Promise<void> {
    const active = (pods.byIndex("owner", set.metadata.uid) as readonly PodView[]).filter(isActive);
    const here = active.filter((pod) => wanted.includes(targetOf(pod)));
    const numberReady = here.filter(isReady).length;
    const status = {
      observedGeneration: set.metadata.generation ?? 1,
      desiredNumberScheduled: wanted.length,
      currentNumberScheduled: here.length,
      updatedNumberScheduled: here.filter((pod) => pod.metadata.labels?.[REVISION_LABEL] === revision).length,
      numberMisscheduled: active.length - here.length,
      numberReady,
      numberAvailable: numberReady,
      numberUnavailable: wanted.length - numberReady,
    };
    if (isDeepStrictEqual(set["status"], status)) return;
    await access.patchStatus(refOf(DAEMON_SETS, set), { metadata: { uid: set.metadata.uid }, status });
  }

  return loop;
}

/** Bound by the scheduler, but to this node only. */
function specFor(set: DaemonSetView, nodeName: string): PodSpec {
  const { spec } = set.spec.template;
  const nodeSelectorTerms = [{ matchFields: [{ key: "metadata.name", operator: "In" as const, values: [nodeName] }] }];
  return {
    ...spec,
    tolerations: [...(spec.tolerations ?? []), ...TOLERATIONS],
    affinity: { ...spec.affinity, nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  };
}

function targetOf(pod: PodView): string {
  const terms = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return terms?.[0]?.matchFields?.[0]?.values?.[0] ?? pod.spec.nodeName ?? "";
}

/** By the scheduler's own rules on an otherwise empty node; that it is not ready does not count. */
function mayRun(set: DaemonSetView, node: NodeView): boolean {
  const { template } = set.spec;
  const pod: PodView = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...set.metadata, labels: template.metadata?.labels ?? {} },
    spec: {
      ...template.spec,
      tolerations: [
        ...(template.spec.tolerations ?? []),
        ...TOLERATIONS,
        { key: NOT_READY_TAINT, operator: "Exists" },
        { key: UNREACHABLE_TAINT, operator: "Exists" },
      ],
    },
  };
  const calm: NodeView = {
    ...node,
    spec: { ...node.spec, unschedulable: false },
    status: { ...node.status, conditions: [{ type: "Ready", status: "True" }] },
  };
  return chooseNode(pod, [calm], []).kind === "node" && node.metadata.labels?.[HOSTNAME_LABEL] !== undefined;
}
