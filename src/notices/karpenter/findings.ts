/**
 * What Kubernetes objects say about the end of a node: Karpenter's conditions, and the marks of the termination handlers of the clouds. Pure; the order of
 * conditions and taints has no meaning.
 *
 * What is malformed gives no finding and is named as a problem (D9). A deletion that is proven stays proven when only its deadline is malformed.
 */
import { formatInstant, type Instant } from "../../kernel/clock.ts";
import { instantSchema, conditionOf, type Condition, type KubeNode, type NodeClaim, type Taint } from "../../kube/types.ts";
import { EVIDENCE_REASONS, type EvidenceReason } from "../../model/evidence.ts";
import type { NodeFinding } from "../../plan/snapshot.ts";
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
  const findings = [
    ...ofDrift(nodeClaim, problems),
    ...ofDeletion(node, nodeClaim, problems),
    ...ofTaints(node, now),
    ...ofConditions(node, now, problems),
  ];
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
  const isChosen = node.spec.taints.some((taint) => taint.key === DISRUPTED_TAINT);
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

interface Mark {
  readonly reason: EvidenceReason;
  /** From the mark to the end, where its cloud promises one. */
  readonly leadMs?: number;
}

const TAINTS: Readonly<Record<string, Mark>> = {
  "aws-node-termination-handler/spot-itn": { reason: "spot_interruption", leadMs: 120_000 },
  "aws-node-termination-handler/scheduled-maintenance": { reason: "scheduled_maintenance" },
  "aws-node-termination-handler/asg-lifecycle-termination": { reason: "instance_state_change" },
  "aws-node-termination-handler/rebalance-recommendation": { reason: "node_rebalance" },
  "cloud.google.com/impending-node-termination": { reason: "spot_interruption", leadMs: 30_000 },
  ToBeDeletedByClusterAutoscaler: { reason: "node_deleting" },
};

const CONDITIONS: Readonly<Record<string, Mark>> = {
  PreemptionScheduled: { reason: "spot_interruption", leadMs: 30_000 },
  VMEventScheduled: { reason: "scheduled_maintenance" },
};

function ofTaints(node: KubeNode, now: Instant): readonly NodeFinding[] {
  return node.spec.taints.flatMap((taint: Taint) => {
    const mark = Object.hasOwn(TAINTS, taint.key) ? TAINTS[taint.key] : undefined;
    return mark === undefined ? [] : [ofMark(mark, taint.timeAdded, now)];
  });
}

function ofConditions(node: KubeNode, now: Instant, problems: string[]): readonly NodeFinding[] {
  return Object.entries(CONDITIONS).flatMap(([type, mark]) => {
    const condition = conditionOf(node.status.conditions, type);
    return isTrue(condition, `Node ${node.metadata.name}`, problems) ? [ofMark(mark, condition?.lastTransitionTime ?? null, now)] : [];
  });
}

/** Without a time of its own the mark is as new as this look, at the most: the first look is the one that is recorded. */
function ofMark({ reason, leadMs }: Mark, since: Instant | null, now: Instant): NodeFinding {
  return finding(reason, leadMs === undefined ? null : Math.min(since ?? now, now) + leadMs);
}

function isTrue(condition: Condition | undefined, of: string, problems: string[]): boolean {
  if (condition === undefined || condition.status === "False" || condition.status === "Unknown") return false;
  if (condition.status === "True") return true;
  problems.push(`${of}: condition ${condition.type} has no valid status: ${excerpt(condition.status)}`);
  return false;
}

function finding(reason: EvidenceReason, deadline: Instant | null = null): NodeFinding {
  return { reason, loss: EVIDENCE_REASONS[reason], deadline, noticeId: null };
}

function distinct(findings: readonly NodeFinding[]): readonly NodeFinding[] {
  const byKey = new Map(findings.map((each) => [`${each.reason} ${each.deadline === null ? "" : formatInstant(each.deadline)}`, each]));
  return [...byKey].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
}
