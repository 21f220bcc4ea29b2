/**
 * What must be written down as evidence now (D3, D9, D10).
 *
 * 1. One row per instance and class of loss, for ever: a class that is recorded is not looked at again (I3).
 * 2. Within a class the finding is chosen by the registry's order of reasons, then by node UID: the order in which nodes are seen has no meaning (I17).
 * 3. Evidence needs only the one node that proves it: an incomplete inventory, an unrelated cordon or an error elsewhere does not take it away (D9).
 *    A pod that only bears our label proves nothing: its owners must lead to the instance by UID (D2).
 * 4. With `disruption.mode` Off nothing that is seen of nodes is recorded (D1, I26). A process that is lost is recorded all the same: repairs are no
 *    disruption (D12).
 * 5. A deadline of a node under a member of a cluster is evidence about that member alone; the instance has none of it.
 */
import { formatInstant, type Instant } from "../kernel/clock.ts";
import { EVIDENCE_REASONS, type EvidenceDraft, type EvidenceReason } from "../model/evidence.ts";
import { isLeaving, LOSSES, type Loss } from "../model/phase.ts";
import { reason } from "../model/reasons.ts";
import { isMember, podsOfInstance } from "./cluster.ts";
import type { Draft } from "./draft.ts";
import { failingFrom, lostAfter } from "./lost-after.ts";
import type { InstanceSnapshot, NodeFinding, NodeSnapshot, PodSnapshot, PoolSnapshot } from "./snapshot.ts";
import { compareText, idOf, leadPod } from "./view.ts";

const REASON_ORDER = Object.keys(EVIDENCE_REASONS) as readonly EvidenceReason[];

/** A lost process that nobody announced is believed only after the observer has settled and while the brake is off. */
export function planEvidence(pool: PoolSnapshot, now: Instant, draft: Draft): void {
  for (const instance of pool.instances) {
    if (isLeaving(instance.record.phase) && instance.record.phase !== "draining") continue;
    for (const loss of LOSSES) {
      if (instance.evidence.some((evidence) => evidence.loss === loss)) continue;
      const found = loss === "forced" ? lostProcess(pool, instance, now, draft) : lossOfNode(pool, instance, loss);
      if (found)
        draft.decide({
          kind: "record_evidence",
          evidence: found,
          reason: reason("replace_condemned", { instance: idOf(instance), evidence: found.reason }),
        });
    }
    recordLossesOfMembers(pool, instance, draft);
  }
}

function lossOfNode(pool: PoolSnapshot, instance: InstanceSnapshot, loss: Loss): EvidenceDraft | undefined {
  if (pool.spec.disruption.mode === "Off") return undefined;
  // At a deadline a cluster outlives its members; whatever else is known of a node under any of its pods replaces it (decision 0018).
  const first = gravestOn(loss === "deadline" ? podsOfInstance(pool, instance) : instance.pods, loss);
  return first && toDraft(instance, first.pod, first.node, first.finding);
}

/** Of each pod beside a cluster's lead whose node goes at a time: of this one alone, once. */
function recordLossesOfMembers(pool: PoolSnapshot, instance: InstanceSnapshot, draft: Draft): void {
  if (pool.spec.disruption.mode === "Off") return;
  for (const pod of instance.pods) {
    if (!isMember(pool, pod) || pod.deleting) continue;
    if (instance.memberEvidence?.some(({ podUid }) => podUid === pod.uid)) continue;
    const found = gravestOn([pod], "deadline");
    if (found === undefined) continue;
    const evidence: EvidenceDraft = { ...toDraft(instance, pod, found.node, found.finding), isOfMember: true };
    const facts = { instance: idOf(instance), pod: pod.name, evidence: evidence.reason };
    draft.decide({ kind: "record_evidence", evidence, reason: reason("member_condemned", facts) });
  }
}

function gravestOn(pods: readonly PodSnapshot[], loss: Loss): Candidate | undefined {
  const candidates = pods.flatMap((pod) =>
    pod.node && pod.owned
      ? pod.node.findings.filter((finding) => finding.loss === loss).map((finding) => ({ pod, node: pod.node as NodeSnapshot, finding }))
      : [],
  );
  return candidates.toSorted((a, b) => compareFindings(a, b))[0];
}

interface Candidate {
  readonly pod: PodSnapshot;
  readonly node: NodeSnapshot;
  readonly finding: NodeFinding;
}

function compareFindings(a: Candidate, b: Candidate): number {
  return (
    (a.finding.deadline ?? Infinity) - (b.finding.deadline ?? Infinity) ||
    REASON_ORDER.indexOf(a.finding.reason) - REASON_ORDER.indexOf(b.finding.reason) ||
    compareText(a.node.uid, b.node.uid) ||
    compareText(a.pod.uid, b.pod.uid)
  );
}

function toDraft(instance: InstanceSnapshot, pod: PodSnapshot, node: NodeSnapshot, finding: NodeFinding): EvidenceDraft {
  return {
    instance: idOf(instance),
    incarnation: instance.record.incarnation.number,
    loss: finding.loss,
    reason: finding.reason,
    podName: pod.name,
    podUid: pod.uid,
    nodeName: node.name,
    nodeUid: node.uid,
    nodeClaimName: node.owner?.name ?? null,
    nodeClaimUid: node.owner?.uid ?? null,
    deadline: finding.deadline,
    noticeId: finding.noticeId,
  };
}

function lostProcess(pool: PoolSnapshot, instance: InstanceSnapshot, now: Instant, draft: Draft): EvidenceDraft | undefined {
  const { record, health, lease } = instance;
  if (record.incarnation.number === 0) return undefined;
  const lost = instance.lost ?? (lease.state === "expired" ? "lease_expired" : record.trust === "fenced" ? "writer_fenced" : null);
  if (lost === null) {
    // Time alone makes a silent process a lost one: not the next periodic pass, which may come seconds later.
    const lostAt = health.state === "failing" ? failingFrom(record, health) + lostAfter(pool.spec, health) : now;
    if (lostAt > now) draft.lookAgainAt(lostAt);
    return undefined;
  }
  if (now < pool.settledAt) {
    draft.hold(idOf(instance), reason("observer_new", { until: formatInstant(pool.settledAt) }), pool.settledAt);
    return undefined;
  }
  // The API server is the second witness of a lost node or pod; only our own failing check may be our own fault.
  if (pool.brake && lost === "process_unreachable") return undefined;
  if (pool.leaseBrake && lost === "lease_expired") return undefined;
  const pod = leadPod(instance);
  return {
    instance: idOf(instance),
    incarnation: record.incarnation.number,
    loss: "forced",
    reason: lost,
    podName: record.incarnation.podName,
    podUid: record.incarnation.podUid,
    nodeName: record.incarnation.nodeName,
    nodeUid: record.incarnation.nodeUid,
    nodeClaimName: pod?.node?.owner?.name ?? null,
    nodeClaimUid: pod?.node?.owner?.uid ?? null,
    deadline: null,
    noticeId: null,
  };
}
