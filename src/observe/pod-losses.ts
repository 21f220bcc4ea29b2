/**
 * Counts the pods of instances that were lost, by cause (T9). From what the cluster shows and programs may match on: the pod's condition `DisruptionTarget`, its
 * `status.reason`, how its containers ended, and what is known of its node. A pod that goes because its instance leaves is no loss.
 *
 * 1. Each pod counts once; a container that ended for want of memory counts each time.
 * 2. Counts are of this process and begin with it; what is remembered of pods is bounded by the pods that are there.
 */
import type { EvidenceReason } from "../model/evidence.ts";
import { NO_POD_LOSSES, type PodLossCause, type PodLossCounts } from "../model/pod-loss.ts";
import { conditionOf, INSTANCE_LABEL, type KubeNode, type KubePod } from "../kube/types.ts";
import type { World } from "./world.ts";

export interface PodLossesOptions {
  readonly world: Pick<World, "pods" | "nodes">;
  /** What is known against a node, by its name, also of one that has just gone. */
  readonly findingsOf: (node: string, instance: string) => readonly EvidenceReason[];
  /** Undefined for an instance that is nobody's. */
  readonly poolOf: (instance: string) => string | undefined;
  /** It leaves, and its pods go with it. */
  readonly isLeaving: (instance: string) => boolean;
  readonly onLoss: (pool: string, cause: PodLossCause) => void;
}

export class PodLosses {
  readonly #options: PodLossesOptions;
  readonly #counts = new Map<string, Record<PodLossCause, number>>();
  /** UIDs of pods that are there and counted. */
  readonly #counted = new Set<string>();

  constructor(options: PodLossesOptions) {
    this.#options = options;
    options.world.pods.onChange(({ before, after, gone, uid }) => {
      if (before !== undefined && after !== undefined) this.#ofContainers(before, after);
      if (after !== undefined && isLost(after)) this.#count(after);
      if (before === undefined || after !== undefined) return;
      if (gone) this.#count(before);
      this.#counted.delete(uid);
    });
  }

  of(pool: string): PodLossCounts {
    return this.#counts.get(pool) ?? NO_POD_LOSSES;
  }

  /** The pool is another's. */
  forget(pool: string): void {
    this.#counts.delete(pool);
  }

  #count(pod: KubePod): void {
    const { uid } = pod.metadata;
    if (this.#counted.has(uid)) return;
    this.#counted.add(uid);
    if (pod.status.phase === "Succeeded") return;
    const name = pod.spec.nodeName;
    const node = name === null ? undefined : this.#options.world.nodes.get(undefined, name);
    const findings = name === null ? [] : this.#options.findingsOf(name, pod.metadata.labels[INSTANCE_LABEL] ?? "");
    this.#add(pod, causeOf(pod, node, findings));
  }

  #ofContainers(before: KubePod, after: KubePod): void {
    if (this.#counted.has(after.metadata.uid)) return;
    for (const status of after.status.containerStatuses) {
      const former = before.status.containerStatuses.find(({ name }) => name === status.name);
      if (former !== undefined && former.restartCount < status.restartCount && status.lastState.terminated?.reason === OOM_KILLED)
        this.#add(after, "out_of_memory");
    }
  }

  #add({ metadata }: KubePod, cause: PodLossCause): void {
    const instance = metadata.labels[INSTANCE_LABEL] ?? "";
    const pool = this.#options.poolOf(instance);
    if (pool === undefined || this.#options.isLeaving(instance)) return;
    const counts = this.#counts.get(pool) ?? { ...NO_POD_LOSSES };
    counts[cause] += 1;
    this.#counts.set(pool, counts);
    this.#options.onLoss(pool, cause);
  }
}

const OOM_KILLED = "OOMKilled";

/** Its end is certain, though its object is still there. */
function isLost({ status }: KubePod): boolean {
  return status.phase === "Failed" || conditionOf(status.conditions, "DisruptionTarget")?.status === "True";
}

const SPOT: ReadonlySet<EvidenceReason> = new Set(["spot_interruption", "instance_state_change", "machine_taken"]);
const ANNOUNCED: ReadonlySet<EvidenceReason> = new Set([
  "node_drifted",
  "node_deleting",
  "node_rebalance",
  "node_terminating_at",
  "operator_drain",
]);

/** What is known of the node outweighs who carried it out: an eviction ahead of a spot interruption is the interruption's. */
export function causeOf(pod: KubePod, node: KubeNode | undefined, findings: readonly EvidenceReason[]): PodLossCause {
  const { status } = pod;
  const target = conditionOf(status.conditions, "DisruptionTarget");
  const reason = target?.status === "True" ? target.reason : "";
  if (status.containerStatuses.some(({ state }) => state.terminated?.reason === OOM_KILLED)) return "out_of_memory";
  const isByKubelet = status.reason === "Evicted" || reason === "TerminationByKubelet";
  if (isByKubelet && wasMemoryShort(pod, node)) return "memory_pressure";
  if (findings.some((each) => SPOT.has(each))) return "spot";
  if (reason === "EvictionByEvictionAPI" || findings.some((each) => ANNOUNCED.has(each))) return "voluntary";
  return "other";
}

/** The kubelet says it in a sentence alone; the node's condition may already be better. */
function wasMemoryShort({ status }: KubePod, node: KubeNode | undefined): boolean {
  return (
    conditionOf(node?.status.conditions ?? [], "MemoryPressure")?.status === "True" || /\blow on resource: memory\b/.test(status.message)
  );
}
