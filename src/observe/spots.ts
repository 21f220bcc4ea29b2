/** Which spots nodes, NodeClaims and NodePools speak of, by the labels of Kubernetes and Karpenter. Pure. */
import type { KubeNode, NodeClaim, NodePool } from "../kube/types.ts";
import type { Spot } from "../model/placement.ts";

export const ZONE_LABEL = "topology.kubernetes.io/zone";
export const INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type";
export const CAPACITY_TYPE_LABEL = "karpenter.sh/capacity-type";
export const NODE_POOL_LABEL = "karpenter.sh/nodepool";

/** Sites come later: all that is seen here is of one. */
export const SITE = "local";
/** A claim or a pool may leave many places open; more say nothing about any of them. */
const MAX_SPOTS = 64;

export function spotOfNode({ metadata }: KubeNode): Spot {
  return spotOfLabels(metadata.labels);
}

function spotOfLabels(labels: Readonly<Record<string, string>>): Spot {
  return {
    site: SITE,
    zone: labels[ZONE_LABEL] ?? "",
    instanceType: labels[INSTANCE_TYPE_LABEL] ?? "",
    capacityType: labels[CAPACITY_TYPE_LABEL] ?? "",
  };
}

/** One when its machine is known, else all that it asked for. */
export function spotsOfClaim({ metadata, spec }: NodeClaim): readonly Spot[] {
  return combine(metadata.labels, spec.requirements);
}

export function spotsOfPool({ spec }: NodePool): readonly Spot[] {
  return combine({}, spec.template.spec.requirements);
}

interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}

function combine(labels: Readonly<Record<string, string>>, requirements: readonly Requirement[]): readonly Spot[] {
  const values = (key: string): readonly string[] => {
    const label = labels[key];
    if (label !== undefined) return [label];
    const asked = requirements.find((each) => each.key === key && each.operator === "In" && each.values.length > 0);
    return asked?.values ?? [""];
  };
  const spots = values(ZONE_LABEL).flatMap((zone) =>
    values(INSTANCE_TYPE_LABEL).flatMap((instanceType) =>
      values(CAPACITY_TYPE_LABEL).map((capacityType) => ({ site: SITE, zone, instanceType, capacityType })),
    ),
  );
  return spots.slice(0, MAX_SPOTS);
}
