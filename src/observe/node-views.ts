/**
 * What is known of each node: its own state, who owns it, and every sign that it will go: from its NodeClaim, from itself, and from notices that name its
 * machine. Order has no meaning (I17); what is malformed is no sign (D9).
 */
import type { Instant } from "../kernel/clock.ts";
import type { KubeNode, NodeClaim } from "../kube/types.ts";
import { conditionOf } from "../kube/types.ts";
import { ANNOTATIONS } from "../model/marks.ts";
import { findingsOfNode, ownerOfNode } from "../notices/karpenter/findings.ts";
import type { NodeFinding, NodeSnapshot } from "../plan/snapshot.ts";
import { spotOfNode } from "./spots.ts";
import type { World } from "./world.ts";

export interface NodeViewInput {
  readonly world: Pick<World, "nodes" | "nodeClaims">;
  /** By node UID. */
  readonly noticed: ReadonlyMap<string, readonly NodeFinding[]>;
  readonly now: Instant;
}

/** A look-up that computes each node once; make a new one for each pass. */
export function nodeViews({ world, noticed, now }: NodeViewInput): (name: string) => NodeSnapshot | undefined {
  const seen = new Map<string, NodeSnapshot | undefined>();
  return (name) => {
    if (!seen.has(name)) {
      const node = world.nodes.get(undefined, name);
      seen.set(name, node && viewNode(node, world.nodeClaims.byIndex("node", name), noticed.get(node.metadata.uid) ?? [], now));
    }
    return seen.get(name);
  };
}

function viewNode(node: KubeNode, claims: readonly NodeClaim[], noticed: readonly NodeFinding[], now: Instant): NodeSnapshot {
  const owner = ownerOfNode(node, claims);
  const claim = claims.find(({ metadata }) => metadata.uid === owner?.uid) ?? null;
  const { findings } = findingsOfNode(node, claim, now);
  return {
    name: node.metadata.name,
    uid: node.metadata.uid,
    ready: conditionOf(node.status.conditions, "Ready")?.status === "True",
    unschedulable: node.spec.unschedulable,
    cordonedBy: node.metadata.annotations[ANNOTATIONS.cordonedBy] ?? null,
    deleting: node.metadata.deletionTimestamp !== null,
    owner,
    spot: spotOfNode(node),
    findings: [...findings, ...noticed],
  };
}
