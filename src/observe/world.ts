/**
 * What is read of a cluster, kept by list and watch: the objects of instances, the nodes under them, and who owns the nodes. One read model for all pools,
 * so that a pass over a pool costs no list at all (D15).
 */
import type { KubeApi } from "../kube/api.ts";
import { createInformer, type Informer, type InformerLog } from "../kube/informer.ts";
import { DEPLOYMENTS, NODE_CLAIMS, NODE_POOLS, NODES, PODS, REPLICA_SETS, STATEFUL_SETS } from "../kube/resources.ts";
import {
  INSTANCE_LABEL,
  type KubeNode,
  type KubePod,
  type KubeWorkload,
  type NodeClaim,
  type NodePool,
  parseDeployment,
  parseNode,
  parseNodeClaim,
  parseNodePool,
  parsePod,
  parseReplicaSet,
  parseStatefulSet,
  POD_INDEXES,
} from "../kube/types.ts";
import { machineIdOf } from "../notices/machine.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";

export interface World {
  readonly nodes: Informer<KubeNode>;
  readonly nodeClaims: Informer<NodeClaim>;
  /** What could be had; nobody waits for it, and nothing is judged by it. */
  readonly nodePools: Informer<NodePool>;
  readonly pods: Informer<KubePod>;
  readonly replicaSets: Informer<KubeWorkload>;
  readonly deployments: Informer<KubeWorkload>;
  readonly statefulSets: Informer<KubeWorkload>;
  start(): void;
  stop(): void;
  whenSynced(): Promise<void>;
  /** Why what is read may be old; undefined while all of it is in step with the server. */
  trouble(): string | undefined;
  /** The same of the objects that own nodes: without them no node is judged, and nothing else is kept. */
  ownersTrouble(): string | undefined;
  /** Calls back after anything of an instance, or a node under it, changed. */
  onChange(listener: (instance: string) => void): void;
}

export interface WorldOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: InformerLog;
}

export function createWorld(options: WorldOptions): World {
  const common = { ...options, labelSelector: INSTANCE_LABEL };
  const nodes = createInformer({
    ...options,
    type: NODES,
    parse: parseNode,
    indexes: { machine: (node) => machineOf(node.spec.providerID), uid: (node) => [node.metadata.uid] },
  });
  // A cluster without Karpenter has no such kind.
  const nodeClaims = createInformer({
    ...options,
    type: NODE_CLAIMS,
    parse: parseNodeClaim,
    indexes: { node: nodeOfClaim, machine: (claim) => machineOf(claim.status.providerID) },
    reflector: { optional: true },
  });
  const nodePools = createInformer({ ...options, type: NODE_POOLS, parse: parseNodePool, reflector: { optional: true } });
  const pods = createInformer({ ...common, type: PODS, parse: parsePod, indexes: POD_INDEXES });
  const replicaSets = createInformer({ ...common, type: REPLICA_SETS, parse: parseReplicaSet });
  const deployments = createInformer({ ...common, type: DEPLOYMENTS, parse: parseDeployment });
  const statefulSets = createInformer({ ...common, type: STATEFUL_SETS, parse: parseStatefulSet });
  const all = [nodes, nodeClaims, pods, replicaSets, deployments, statefulSets];

  return {
    nodes,
    nodeClaims,
    nodePools,
    pods,
    replicaSets,
    deployments,
    statefulSets,
    start: () => [...all, nodePools].forEach((informer) => informer.start()),
    stop: () => [...all, nodePools].forEach((informer) => informer.stop()),
    // Who may not read the provisioner's objects judges no node by them, and the rest goes on.
    whenSynced: async () =>
      void (await Promise.all([nodeClaims.whenAnswered(), ...all.filter((each) => each !== nodeClaims).map((each) => each.whenSynced())])),
    trouble: () => troubleOf(all.filter((each) => each !== nodeClaims)),
    ownersTrouble: () => troubleOf([nodeClaims]),
    onChange: (listener) => {
      const tellOf = (labels: Readonly<Record<string, string>> | undefined): void => {
        const instance = labels?.[INSTANCE_LABEL];
        if (instance !== undefined) listener(instance);
      };
      // A node matters to what runs on it; what comes to run there is seen as a change of a pod.
      const tellOfNode = (name: string): void => pods.byIndex("node", name).forEach(({ metadata }) => tellOf(metadata.labels));
      nodes.onChange(({ name }) => tellOfNode(name));
      nodeClaims.onChange(({ before, after }) => {
        for (const name of new Set([before, after].flatMap((claim) => (claim ? nodeOfClaim(claim) : [])))) tellOfNode(name);
      });
      for (const informer of [pods, replicaSets, deployments, statefulSets]) {
        informer.onChange(({ before, after }) => tellOf((after ?? before)?.metadata.labels));
      }
    },
  };
}

function machineOf(providerID: string): readonly string[] {
  const machine = machineIdOf(providerID);
  return machine === undefined ? [] : [machine];
}

function troubleOf(informers: readonly Pick<Informer<unknown>, "state" | "type" | "synced">[]): string | undefined {
  for (const informer of informers) {
    const { failing } = informer.state();
    const { plural } = informer.type;
    if (failing !== undefined) return `${plural}: ${failing}`;
    if (!informer.synced()) return `${plural}: not_listed_yet`;
  }
  return undefined;
}

function nodeOfClaim({ status }: NodeClaim): readonly string[] {
  return status.nodeName === "" ? [] : [status.nodeName];
}
