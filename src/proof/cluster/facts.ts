/** What the examination of a cluster is given: by whoever composes a controller. */
import type { Clock } from "../../kernel/clock.ts";
import type { KubeApi } from "../../kube/api.ts";
import type { Capability } from "../../kube/permissions.ts";
import type { Taint } from "../../kube/types.ts";
import type { PoolDocument } from "../../model/pool.ts";
import type { Store } from "../../store/port.ts";

export interface ClusterFacts {
  readonly kube: KubeApi;
  readonly clock: Clock;
  readonly store: Pick<Store, "describeStore">;
  /** By `namespace/name`. */
  pools(): readonly { readonly key: string; readonly document: PoolDocument }[];
  nodes(): readonly InspectedNode[];
  /** Switched on for this controller, whatever its pools want. */
  readonly capabilities: readonly Capability[];
  /** In which Relevo runs; null: outside of the cluster. */
  readonly ownNamespace: string | null;
  /** Several replicas may run, each with a Lease. */
  readonly isShared: boolean;
  /** Live replicas of another version than this one, `id (version)`. */
  otherVersions(): readonly string[];
}

export interface InspectedNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  /** `karpenter`, …; null: none is known. */
  readonly provisioner: string | null;
  /** Pools with instances there. */
  readonly pools: readonly string[];
}

/** Those that replace instances because of what happens to nodes. */
export function actingPools(facts: ClusterFacts): ReturnType<ClusterFacts["pools"]> {
  return facts.pools().filter(({ document }) => document.spec.disruption.mode === "Act");
}
