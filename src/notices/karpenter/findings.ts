/**
 * What Kubernetes objects say about the end of a node: Karpenter's conditions, and the marks of others (`kubernetes/marks.ts`). Pure; the order of
 * conditions and taints has no meaning.
 *
 * What is malformed gives no finding and is named as a problem (D9). A deletion that is proven stays proven when only its deadline is malformed.
 */
import { formatInstant, type Instant } from "../../kernel/clock.ts";
import { instantSchema, conditionOf, type KubeNode, type NodeClaim } from "../../kube/types.ts";
import { EVIDENCE_REASONS, type EvidenceReason } from "../../model/evidence.ts";
import type { NodeFinding } from "../../plan/snapshot.ts";
import { findingsOfMarks, isTrue } from "../kubernetes/marks.ts";
import { excerpt } from "../notice.ts";

export { ownerOfNode } from "./owner.ts";

export const TERMINATION_TIMESTAMP = "karpenter.sh/nodeclaim-termination-timestamp";
export const DISRUPTED_TAINT = "karpenter.sh/disrupted";

export interface Findings {
  readonly findings: readonly NodeFinding[];
  /** One sentence each, for logs. */
  readonly problems: readonly string[];
}

/** `nodeClaim` is the one that owns the node (`nodeClaimOf`), null when there is none. `now` counts where a mark has no time of its own. */
export function findingsOfNode(node: KubeNode, nodeClaim: NodeClaim | null, now: Instant): Findings {
  const problems: string[] = [];
  const findings = [...ofDrift(nodeClaim, problems), ...ofDeletion(node, nodeClaim, problems), ...findingsOfMarks(node, now, problems)];
  return { findings: distinct(findings), problems: problems.toSorted() };
}

function ofDrift(nodeClaim: NodeClaim | null, problems: string[]): readonly NodeFinding[] {
  if (nodeClaim === null) return [];
  const drifted = conditionOf(nodeClaim.status.conditions, "Drifted");
  return isTrue(drifted, `NodeClaim ${nodeClaim.metadata.name}`, problems) ? [finding("node_drifted")] : [];
}

/** A deletion with a termination timestamp has an end, and what still runs then is killed past its budgets. */
function ofDeletion(node: KubeNode, nodeClaim: NodeClaim | null, problems: string[]): readonly NodeFinding[] {
  const isDeleted = node.metadata.deletionTimestamp !== null || (nodeClaim !== null && nodeClaim.metadata.deletionTimestamp !== null);
  const isChosen = node.spec.taints.some(({ key }) => key === DISRUPTED_TAINT);
  if (!isDeleted) return isChosen ? [finding("node_deleting")] : [];
  const deadlines = [nodeClaim?.metadata, node.metadata].flatMap((meta) => {
    const text = meta?.annotations[TERMINATION_TIMESTAMP];
    if (text === undefined) return [];
    const parsed = instantSchema.safeParse(text);
    if (!parsed.success) problems.push(`${meta?.name}: annotation ${TERMINATION_TIMESTAMP} is no RFC 3339 time: ${excerpt(text)}`);
    return parsed.success ? [parsed.data] : [];
  });
  return [deadlines.length === 0 ? finding("node_deleting") : finding("node_terminating_at", Math.min(...deadlines))];
}

function finding(reason: EvidenceReason, deadline: Instant | null = null): NodeFinding {
  return { reason, loss: EVIDENCE_REASONS[reason], deadline, noticeId: null };
}

function distinct(findings: readonly NodeFinding[]): readonly NodeFinding[] {
  const byKey = new Map(findings.map((each) => [`${each.reason} ${each.deadline === null ? "" : formatInstant(each.deadline)}`, each]));
  return [...byKey].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
}
