/** Records → the JSON of the API. */
import { formatInstant, type Instant } from "../kernel/clock.ts";
import type { RelevoError } from "../kernel/errors.ts";
import type { Evidence } from "../model/evidence.ts";
import { routeOf } from "../model/pool.ts";
import { type Reason, sentenceOf } from "../model/reasons.ts";
import type { SenderState } from "../model/sender.ts";
import type { StepRecord } from "../model/step.ts";
import type { Effect, Move } from "../plan/decision.ts";
import { HOT } from "../plan/evacuation/heat.ts";
import type { Witness } from "../model/witness.ts";
import type { Freeze, NoticeRecord } from "../store/port.ts";
import { renderScale, renderScaleExplained } from "./scale-render.ts";
import type {
  CapacityState,
  CordonState,
  Explanation,
  ControllerState,
  ForcedSeal,
  GatewayReplicaState,
  InstanceState,
  JournalEntry,
  NodeState,
  PlanResult,
  PoolState,
  StoreState,
  WorkloadState,
} from "./control-plane.ts";
import type {
  CapacityViewJson,
  CordonView,
  ErrorView,
  ForcedSealView,
  EvidenceView,
  ExplanationView,
  ControllerView,
  GatewayView,
  InstanceView,
  JournalView,
  NodeView,
  NoticeView,
  SenderView,
  PlanView,
  PoolView,
  StandingReasonView,
  StepView,
  StoreView,
  WorkloadView,
} from "./views.ts";

const maybe = (at: Instant | null | undefined): string | null => (at === null || at === undefined ? null : formatInstant(at));

export function renderReason(reason: Reason): { code: string; sentence: string } {
  return { code: reason.code, sentence: sentenceOf(reason) };
}

function renderStanding({ subject, reason, since }: { subject: string; reason: Reason; since: Instant | null }): StandingReasonView {
  return { ...renderReason(reason), subject, since: maybe(since) };
}

export function renderPool(state: PoolState): PoolView {
  const { document, freeze } = state;
  return {
    pool: state.pool,
    namespace: document.metadata.namespace,
    name: document.metadata.name,
    driver: document.spec.driver,
    mode: document.spec.disruption.mode,
    priority: document.spec.priority,
    desired: state.desired,
    floor: document.spec.size.floor,
    max: document.spec.size.max,
    serving: state.serving,
    standby: { wanted: document.spec.standby.count, ready: state.standby },
    phases: { ...state.phases },
    route: routeOf(document),
    provisioners: [...document.spec.disruption.provisioners],
    generation: state.generation,
    authorityEpoch: state.authorityEpoch,
    owner: state.owner,
    resourceVersion: state.resourceVersion,
    freeze: freeze && renderFreeze(freeze),
    heldSteps: state.heldSteps,
    reasons: state.reasons.map(renderStanding),
    losses: state.losses.map((loss) => ({ ...loss })),
    ...(state.podLosses === null ? {} : { podLosses: { ...state.podLosses } }),
    traffic: state.traffic && { ...state.traffic },
    ...(state.scale === null ? {} : { scale: renderScale(state.scale) }),
  };
}

export function renderFreeze({ until, why, by }: Freeze): { until: string; why: string; by: string } {
  return { until: formatInstant(until), why, by };
}

export function renderForcedSeal({ at, until, ...seal }: ForcedSeal): ForcedSealView {
  return { ...seal, at: formatInstant(at), until: formatInstant(until) };
}

export function renderInstance({ record, obligations, health }: InstanceState): InstanceView {
  const { incarnation } = record;
  return {
    id: record.id,
    pool: record.pool,
    ordinal: record.ordinal,
    purpose: record.purpose,
    replaces: record.replaces,
    phase: record.phase,
    phaseSince: formatInstant(record.phaseSince),
    createdAt: formatInstant(record.createdAt),
    trust: record.trust,
    health,
    incarnation: incarnation.number,
    pod: incarnation.podName,
    node: incarnation.nodeName,
    address: incarnation.host === null || incarnation.port === null ? null : `${incarnation.host}:${incarnation.port}`,
    requests: obligations?.requests ?? null,
    sessions: obligations?.sessions ?? null,
    drain: record.drainLoss && { loss: record.drainLoss, since: maybe(record.drainSince), deadline: maybe(record.drainDeadline) },
    seal: record.seal,
    failure: record.failure,
  };
}

export function renderEvidence(evidence: Evidence, witnesses: readonly Witness[] = []): EvidenceView {
  const named = (name: string | null, uid: string | null) => (name === null ? null : { name, uid });
  return {
    id: evidence.id,
    pool: evidence.pool,
    instance: evidence.instance,
    incarnation: evidence.incarnation,
    loss: evidence.loss,
    reason: evidence.reason,
    firstSeen: formatInstant(evidence.firstSeen),
    deadline: maybe(evidence.deadline),
    node: named(evidence.nodeName, evidence.nodeUid),
    nodeClaim: named(evidence.nodeClaimName, evidence.nodeClaimUid),
    pod: named(evidence.podName, evidence.podUid),
    notice: evidence.noticeId,
    witnesses: witnesses.map(({ at, deadline, ...said }) => ({ ...said, at: maybe(at), deadline: maybe(deadline) })),
    authorityEpoch: evidence.authorityEpoch,
  };
}

export function renderStep(step: StepRecord): StepView {
  return {
    id: step.id,
    operation: step.operation,
    pool: step.pool,
    instance: step.instance,
    kind: step.kind,
    state: step.state,
    outcome: step.outcome,
    attempts: step.attempts,
    recordedAt: formatInstant(step.recordedAt),
    endedAt: maybe(step.endedAt),
    reason: renderReason(step.reason),
    authorityEpoch: step.authorityEpoch,
  };
}

export function renderNotice(notice: NoticeRecord): NoticeView {
  return {
    id: notice.id,
    source: notice.source,
    receivedAt: formatInstant(notice.receivedAt),
    outcome: notice.outcome,
    reason: notice.reason,
    machines: [...notice.machineIds],
    deadline: maybe(notice.deadline),
  };
}

export function renderSender({ source, from, lastHeardAt, everyMs, isSilent, trouble }: SenderState): SenderView {
  const state = lastHeardAt === null ? "never heard" : isSilent ? "silent" : "heard";
  return { source, from, state, lastHeardAt: maybe(lastHeardAt), everyMs, trouble };
}

export function renderCordon(cordon: CordonState): CordonView {
  return { ...cordon, at: maybe(cordon.at) };
}

export function renderNode(node: NodeState): NodeView {
  return {
    name: node.name,
    uid: node.uid,
    zone: node.zone,
    instanceType: node.instanceType,
    capacityType: node.capacityType,
    machine: node.machineId,
    ready: node.ready,
    unschedulable: node.unschedulable,
    cordonedByUs: node.cordonedByUs,
    deleting: node.deleting,
    owner: node.owner && { ...node.owner },
    findings: node.findings.map((finding) => ({ ...finding, deadline: maybe(finding.deadline) })),
    instances: [...node.instances],
  };
}

export function renderGateway(gateway: GatewayReplicaState): GatewayView {
  return {
    replica: gateway.replica,
    registeredAt: formatInstant(gateway.registeredAt),
    connected: gateway.connected,
    silent: gateway.silent,
    lastReportAt: maybe(gateway.lastReportAt),
    routes: gateway.routes.map((route) => ({ ...route, counts: { ...route.counts } })),
  };
}

export function renderController({ id, api, isSelf, isLive, pools }: ControllerState): ControllerView {
  return { controller: id, api, here: isSelf, live: isLive, pools: [...pools] };
}

export function renderCapacity({ view, evacuation }: CapacityState): CapacityViewJson {
  const { spots, placement, quotas, readyInMs } = view;
  const { supplies, absorption, prediction } = evacuation;
  return {
    at: formatInstant(view.at),
    spots: spots.map(({ spot, heat, lastLossAt, lastFailureAt, ...counts }) => ({
      ...spot,
      heat: Math.round(heat * 1_000) / 1_000,
      hot: heat >= HOT,
      ...counts,
      lastLossAt: maybe(lastLossAt),
      lastFailureAt: maybe(lastFailureAt),
    })),
    placement: {
      avoid: { zones: [...placement.avoid.zones], instanceTypes: [...placement.avoid.instanceTypes], nodes: [...placement.avoid.nodes] },
      capacityType: placement.capacityType,
    },
    quotas: quotas.map(({ nodePool, limit, machines }) => ({ nodePool, limit, machines })),
    readyInMs: Math.round(readyInMs),
    supplies: supplies.map(({ supply: { id, kind, pool, free, preemptible, readyInMs: ready, boundBy }, reserved }) => ({
      id,
      kind,
      pool,
      free,
      reserved,
      preemptible: preemptible?.count ?? 0,
      readyInMs: Math.round(ready),
      boundBy: boundBy ?? null,
    })),
    absorption: { ...absorption },
    prediction: prediction && {
      withinMs: prediction.withinMs,
      within: prediction.within,
      beforeDeadline: prediction.beforeDeadline,
      of: prediction.of,
      attainable: prediction.attainable,
      bottleneck: prediction.bottleneck,
    },
  };
}

export function renderPlan({ pool, at, plan }: PlanResult): PlanView {
  return {
    pool,
    at: formatInstant(at),
    decisions: plan.decisions.map((decision) => ({ kind: decision.kind, ...about(decision), reason: renderReason(decision.reason) })),
    holds: plan.holds.map((hold) => ({ subject: hold.subject, until: maybe(hold.until), reason: renderReason(hold.reason) })),
    nextLookAt: maybe(plan.nextLookAt),
  };
}

export function renderStore({ era, recovered, pools }: StoreState): StoreView {
  return {
    era,
    recovered: recovered === null ? null : { ...recovered, at: formatInstant(recovered.at) },
    pools: pools.map((pool) => ({ ...pool, strangers: [...pool.strangers] })),
  };
}

export function renderWorkload({ workload, lease }: WorkloadState): WorkloadView {
  const { pool, ordinal, holder, writerEpoch, minAcceptedEpoch, renewals } = workload;
  return {
    pool,
    ordinal,
    holder: holder?.instance ?? null,
    incarnation: holder?.incarnation ?? null,
    writerEpoch,
    minAccepted: minAcceptedEpoch,
    lease,
    renewals,
  };
}

/** Which object a decision is about, and what changes there. */
function about(decision: Effect | Move): { subject: string; detail: string | null } {
  switch (decision.kind) {
    case "cordon_node":
      return { subject: decision.node.name, detail: `for ${decision.instance}` };
    case "protect_pod":
    case "unprotect_pod":
      return { subject: decision.pod.name, detail: `of ${decision.instance}` };
    case "move":
      return { subject: decision.instance, detail: `${decision.from} → ${decision.to}` };
    case "add_instance":
      return { subject: "", detail: decision.replaces === null ? null : `replaces ${decision.replaces}` };
    case "take_standby":
      return { subject: decision.instance, detail: `takes over from ${decision.replaces}` };
    case "record_evidence":
      return { subject: decision.evidence.instance, detail: `${decision.evidence.reason} (${decision.evidence.loss})` };
    case "trust":
      return { subject: decision.instance, detail: `${decision.from} → ${decision.to}` };
    case "set_desired":
      return { subject: "", detail: `${decision.from} → ${decision.to}` };
    case "scale_target":
      return { subject: "", detail: `target ${decision.from} → ${decision.to}` };
    case "pass_writer":
      return { subject: decision.instance, detail: `workload ${decision.ordinal}` };
    default:
      return { subject: decision.instance, detail: null };
  }
}

export function renderExplanation(explanation: Explanation, witnesses: ReadonlyMap<string, readonly Witness[]>): ExplanationView {
  return {
    kind: explanation.kind,
    subject: explanation.subject,
    pool: explanation.pool,
    at: formatInstant(explanation.at),
    reasons: explanation.reasons.map(renderStanding),
    ...(explanation.podLosses === null ? {} : { podLosses: { ...explanation.podLosses } }),
    ...(explanation.scale === null ? {} : { scale: renderScaleExplained(explanation.scale) }),
    instance: explanation.instance && renderInstance(explanation.instance),
    evidence: explanation.evidence.map((evidence) => renderEvidence(evidence, witnesses.get(evidence.id))),
    steps: explanation.steps.map(renderStep),
  };
}

export function renderJournalEntry(entry: JournalEntry): JournalView {
  return { ...entry, type: "transition", at: formatInstant(entry.at), reason: entry.reason && renderReason(entry.reason) };
}

export function renderError(error: RelevoError): ErrorView {
  const { code, message, field, found, allowed, todo } = error;
  return {
    error: {
      code,
      message,
      ...(field === undefined ? {} : { field }),
      ...(found === undefined ? {} : { found }),
      ...(allowed === undefined ? {} : { allowed }),
      ...(todo === undefined ? {} : { todo }),
    },
  };
}
