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

interface Kept {
  readonly claims: readonly NodeClaim[];
  readonly view: NodeSnapshot;
}

/**
 * The last view of each node: it is given again as long as the node and its claims are the same objects and the same is found, so that whoever joins something
 * with it can tell that nothing changed. Findings are looked for each time: some depend on the time, and notices come from elsewhere.
 */
const last = new WeakMap<KubeNode, Kept>();

function viewNode(node: KubeNode, claims: readonly NodeClaim[], noticed: readonly NodeFinding[], now: Instant): NodeSnapshot {
  const known = last.get(node);
  const isKnown = known !== undefined && known.claims.length === claims.length && known.claims.every((claim, at) => claim === claims[at]);
  const view = lookAt(node, claims, noticed, now);
  if (isKnown && areSameFindings(known.view.findings, view.findings)) return known.view;
  last.set(node, { claims, view });
  return view;
}

function areSameFindings(a: readonly NodeFinding[], b: readonly NodeFinding[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ reason, loss, deadline, noticeId }, at) => {
      const other = b[at];
      return reason === other?.reason && loss === other.loss && deadline === other.deadline && noticeId === other.noticeId;
    })
  );
}

function lookAt(node: KubeNode, claims: readonly NodeClaim[], noticed: readonly NodeFinding[], now: Instant): NodeSnapshot {
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
