/**
 * The marks that clouds, termination handlers and autoscalers put on a Node before its machine goes: taints and conditions. Data, one line for each; what is
 * not in it is no sign. docs/agent.md lists them for people.
 *
 * 1. "Perhaps" is no sign: `DeletionCandidateOfClusterAutoscaler` is put on a node and taken away again all day.
 * 2. A mark without a time of its own is as new as the look that found it: the first look is the one that is recorded.
 * 3. A condition whose status is none of Kubernetes' three is named as a problem, and no sign (D9).
 */
import type { Instant } from "../../kernel/clock.ts";
import { conditionOf, type Condition, type KubeNode } from "../../kube/types.ts";
import { EVIDENCE_REASONS, type EvidenceReason } from "../../model/evidence.ts";
import type { NodeFinding } from "../../plan/snapshot.ts";
import { excerpt } from "../notice.ts";

interface Mark {
  readonly reason: EvidenceReason;
  /** From the mark to the end, where its sender promises one; 0: the machine is going or gone when it is marked. */
  readonly leadMs?: number;
}

const TAINTS: Readonly<Record<string, Mark>> = {
  // AWS' node termination handler; the value is its event's id.
  "aws-node-termination-handler/spot-itn": { reason: "spot_interruption", leadMs: 120_000 },
  "aws-node-termination-handler/scheduled-maintenance": { reason: "scheduled_maintenance" },
  "aws-node-termination-handler/asg-lifecycle-termination": { reason: "instance_state_change" },
  "aws-node-termination-handler/rebalance-recommendation": { reason: "node_rebalance" },
  // GKE, when it ends a node in good order: spot, preemptible, and maintenance of the host.
  "cloud.google.com/impending-node-termination": { reason: "spot_interruption", leadMs: 30_000 },
  // AKS, before it drains a node for an event of its machine.
  "remediator.kubernetes.azure.com/unschedulable": { reason: "scheduled_maintenance" },
  // Any cloud's node controller: the machine exists, and is stopped.
  "node.cloudprovider.kubernetes.io/shutdown": { reason: "instance_state_change", leadMs: 0 },
  // A person: the machine is off and does not come back.
  "node.kubernetes.io/out-of-service": { reason: "instance_state_change", leadMs: 0 },
  // The cluster autoscaler has decided; the value is when, in seconds. It drains the node first.
  ToBeDeletedByClusterAutoscaler: { reason: "node_deleting" },
};

/** Undefined: what the condition says is no reason to go. */
type ConditionMark = (condition: Condition) => Mark | undefined;

const CONDITIONS: Readonly<Record<string, ConditionMark>> = {
  // AKS.
  PreemptionScheduled: () => ({ reason: "spot_interruption", leadMs: 30_000 }),
  VMEventScheduled: ofVmEvent,
};

/** Its reason is the kind of the event, where AKS says it: `PreemptScheduled`, `FreezeScheduled`, … */
function ofVmEvent({ reason }: Condition): Mark | undefined {
  if (/^preempt/i.test(reason)) return { reason: "spot_interruption", leadMs: 30_000 };
  if (/^terminate/i.test(reason)) return { reason: "instance_state_change" };
  // The machine stands still for seconds and goes on.
  return /^freeze/i.test(reason) ? undefined : { reason: "scheduled_maintenance" };
}

/** In any order, repeated or not; adds to `problems` one sentence for each mark that is malformed. */
export function findingsOfMarks(node: KubeNode, now: Instant, problems: string[]): readonly NodeFinding[] {
  const ofTaints = node.spec.taints.flatMap(({ key, timeAdded }) => {
    const mark = Object.hasOwn(TAINTS, key) ? TAINTS[key] : undefined;
    return mark === undefined ? [] : [ofMark(mark, timeAdded, now)];
  });
  const ofConditions = Object.entries(CONDITIONS).flatMap(([type, markOf]) => {
    const condition = conditionOf(node.status.conditions, type);
    if (condition === undefined || !isTrue(condition, `Node ${node.metadata.name}`, problems)) return [];
    const mark = markOf(condition);
    return mark === undefined ? [] : [ofMark(mark, condition.lastTransitionTime, now)];
  });
  return [...ofTaints, ...ofConditions];
}

function ofMark({ reason, leadMs }: Mark, since: Instant | null, now: Instant): NodeFinding {
  const deadline = leadMs === undefined ? null : Math.min(since ?? now, now) + leadMs;
  return { reason, loss: EVIDENCE_REASONS[reason], deadline, noticeId: null };
}

/** False for what is none of the three, which is named. */
export function isTrue(condition: Condition | undefined, of: string, problems: string[]): boolean {
  if (condition === undefined || condition.status === "False" || condition.status === "Unknown") return false;
  if (condition.status === "True") return true;
  problems.push(`${of}: condition ${condition.type} has no valid status: ${excerpt(condition.status)}`);
  return false;
}
