/** What the examination of a cluster asks of a running controller. */
import { type Members, otherVersions } from "../../control/members.ts";
import type { PoolEntry } from "../../control/pool-informer.ts";
import type { Informer } from "../../kube/informer.ts";
import { poolKey } from "../../model/pool.ts";
import { LABELS } from "../../model/marks.ts";
import { ownerOfNode } from "../../notices/karpenter/findings.ts";
import type { World } from "../../observe/world.ts";
import type { ClusterFacts, InspectedNode } from "../../proof/cluster/facts.ts";

export interface ClusterFactsParts extends Pick<ClusterFacts, "kube" | "clock" | "store" | "capabilities" | "ownNamespace"> {
  readonly world: World;
  readonly pools: Informer<PoolEntry>;
  readonly members: Members;
}

export function clusterFacts({ world, pools, members, kube, clock, store, capabilities, ownNamespace }: ClusterFactsParts): ClusterFacts {
  return {
    kube,
    clock,
    store,
    capabilities,
    ownNamespace,
    isShared: members.isShared,
    pools: () => pools.list(),
    otherVersions: () => otherVersions(members),
    nodes: () => inspectedNodes(world),
  };
}

function inspectedNodes(world: World): readonly InspectedNode[] {
  return world.nodes.list().map((node) => {
    const { name, labels } = node.metadata;
    const pools = world.pods.byIndex("node", name).flatMap(({ metadata }) => {
      const pool = metadata.labels[LABELS.pool];
      return pool === undefined ? [] : [poolKey(metadata.namespace, pool)];
    });
    return {
      name,
      labels,
      taints: node.spec.taints,
      provisioner: ownerOfNode(node, world.nodeClaims.byIndex("node", name))?.provisioner ?? null,
      pools: [...new Set(pools)].toSorted(),
    };
  });
}
