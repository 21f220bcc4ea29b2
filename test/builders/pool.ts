/** Builders for snapshots that say only what matters to the case. Ids and UIDs are derived from names, so that expectations can be literal. */
import { EPOCH_ZERO, epoch } from "../../src/kernel/epoch.ts";
import type { Instant } from "../../src/kernel/clock.ts";
import { EVIDENCE_REASONS, type Evidence, type EvidenceReason } from "../../src/model/evidence.ts";
import type { InstanceRecord } from "../../src/model/instance.ts";
import type { Phase } from "../../src/model/phase.ts";
import { ANYWHERE } from "../../src/model/placement.ts";
import { type PoolSpec, poolSpecSchema } from "../../src/model/pool.ts";
import type { StepRecord } from "../../src/model/step.ts";
import { reason } from "../../src/model/reasons.ts";
import type { InstanceSnapshot, NodeFinding, NodeSnapshot, PodSnapshot, PoolSnapshot } from "../../src/plan/snapshot.ts";

export const NOON: Instant = Date.UTC(2026, 10, 30, 12, 0, 0);

/** `HH:MM:SS` of the day of `NOON`. */
export function at(time: string): Instant {
  return Date.parse(`2026-11-30T${time}Z`);
}

type SpecInput = {
  readonly desired?: number;
  readonly floor?: number;
  readonly max?: number;
  readonly disruption?: Record<string, unknown>;
  readonly spec?: Record<string, unknown>;
};

export function specOf({ desired = 1, floor, max, disruption = {}, spec = {} }: SpecInput = {}): PoolSpec {
  return poolSpecSchema.parse({
    driver: "service",
    size: { desired, ...(floor === undefined ? {} : { floor }), ...(max === undefined ? {} : { max }) },
    blueprint: { objects: [{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" } }] },
    disruption: { mode: "Act", ...disruption },
    ...spec,
  });
}

export function poolOf(spec: SpecInput, instances: readonly InstanceSnapshot[], rest: Partial<PoolSnapshot> = {}): PoolSnapshot {
  return {
    pool: "default/orders",
    namespace: "default",
    name: "orders",
    spec: specOf(spec),
    blueprintHash: "b1",
    deleting: false,
    authorityEpoch: epoch(0, 1),
    generation: epoch(0, 10),
    freeze: null,
    instances,
    openSteps: [],
    failures: [],
    reasons: [],
    inventory: { state: "complete" },
    placement: ANYWHERE,
    evacuation: new Map(),
    makesRoom: 0,
    gateways: [{ replica: "gw-1", applied: epoch(0, 10), silent: false, lostAt: null }],
    settledAt: NOON - 60_000,
    brake: null,
    workloads: [],
    leaseBrake: null,
    rewound: null,
    witnessesAwaitedUntil: null,
    recoveredAt: null,
    strangers: [],
    demand: null,
    slots: null,
    scale: null,
    proven: null,
    recommended: [],
    ...rest,
  };
}

export interface NodeInput extends Partial<NodeSnapshot> {
  readonly drifted?: boolean;
  readonly cordoned?: "by_us" | "by_other";
  readonly owned?: boolean;
}

export function node(name: string, { drifted = false, cordoned, owned = true, ...rest }: NodeInput = {}): NodeSnapshot {
  return {
    name,
    uid: `uid-${name}`,
    ready: true,
    unschedulable: cordoned !== undefined,
    cordonedBy: cordoned === "by_us" ? "cordon/x" : null,
    deleting: false,
    spot: { site: "local", zone: "zone-a", instanceType: "local.xlarge", capacityType: "spot" },
    owner: owned ? { provisioner: "karpenter", name: `claim-${name}`, uid: `uid-claim-${name}` } : null,
    findings: drifted ? [finding("node_drifted")] : [],
    ...rest,
  };
}

export function finding(why: EvidenceReason, deadline: Instant | null = null, noticeId: string | null = null): NodeFinding {
  return { reason: why, loss: EVIDENCE_REASONS[why], deadline, noticeId };
}

export function pod(name: string, on: NodeSnapshot | null, rest: Partial<PodSnapshot> = {}): PodSnapshot {
  return {
    name,
    uid: `uid-${name}`,
    lead: true,
    ready: on !== null,
    deleting: false,
    owned: true,
    foreign: false,
    protectedByUs: true,
    placement: null,
    scheduledAt: on === null ? null : NOON - 60_000,
    node: on,
    ...rest,
  };
}

export interface InstanceInput extends Partial<Omit<InstanceSnapshot, "record" | "evidence" | "pods">> {
  readonly id?: string;
  readonly on?: readonly NodeSnapshot[];
  readonly pods?: readonly PodSnapshot[];
  readonly record?: Partial<InstanceRecord>;
  readonly evidence?: readonly (EvidenceReason | Evidence)[];
  readonly deadline?: Instant | null;
}

export function instance(phase: Phase, input: InstanceInput = {}): InstanceSnapshot {
  const { id = "orders-a", on = [node("n1")], record = {}, evidence = [], deadline = null, ...rest } = input;
  const pods = input.pods ?? on.map((each, index) => pod(`${id}-${index}`, each, { lead: index === 0 }));
  const lead = pods[0];
  const full: InstanceRecord = {
    id,
    pool: "default/orders",
    ordinal: 0,
    purpose: "fill",
    replaces: null,
    phase,
    phaseSince: NOON - 60_000,
    createdAt: NOON - 120_000,
    trust: "ok",
    incarnation: {
      number: 1,
      podName: lead?.name ?? null,
      podUid: lead?.uid ?? null,
      containerId: "c1",
      bootId: "boot-1",
      nodeName: lead?.node?.name ?? null,
      nodeUid: lead?.node?.uid ?? null,
      host: "127.0.0.2",
      port: 8080,
    },
    blueprintHash: "b1",
    objects: [{ apiVersion: "apps/v1", kind: "Deployment", namespace: "default", name: id, uid: `uid-deploy-${id}` }],
    admittedGeneration: epoch(0, 5),
    drainGeneration: phase === "draining" ? epoch(0, 9) : null,
    drainLoss: phase === "draining" ? "voluntary" : null,
    drainSince: phase === "draining" ? NOON - 10_000 : null,
    drainDeadline: null,
    seal: null,
    failure: null,
    failedAt: null,
    ...record,
  };
  return {
    record: full,
    evidence: evidence.map((each) => (typeof each === "string" ? evidenceOf(full, each, lead?.node ?? null, deadline) : each)),
    pods,
    podsWanted: 1,
    newIncarnation: null,
    health: { state: "passing", since: NOON - 30_000, bootId: "boot-1" },
    witnessed: false,
    unreached: false,
    lease: { state: "none" },
    lost: null,
    obligations: { requests: 0, sessions: 0 },
    ownObligations: 0,
    appliedEverywhere: true,
    drainAppliedEverywhere: true,
    slots: null,
    objectsGone: false,
    ...rest,
  };
}

export const serving = (input: InstanceInput = {}): InstanceSnapshot => instance("serving", input);
export const draining = (input: InstanceInput = {}): InstanceSnapshot => instance("draining", input);

export function evidenceOf(
  record: InstanceRecord,
  why: EvidenceReason,
  on: NodeSnapshot | null,
  deadline: Instant | null = null,
): Evidence {
  return {
    id: `evidence-${record.id}-${why}`,
    pool: record.pool,
    instance: record.id,
    incarnation: record.incarnation.number,
    loss: EVIDENCE_REASONS[why],
    reason: why,
    podName: record.incarnation.podName,
    podUid: record.incarnation.podUid,
    nodeName: on?.name ?? null,
    nodeUid: on?.uid ?? null,
    nodeClaimName: on?.owner?.name ?? null,
    nodeClaimUid: on?.owner?.uid ?? null,
    deadline: EVIDENCE_REASONS[why] === "deadline" ? deadline : null,
    noticeId: null,
    firstSeen: NOON - 5_000,
    authorityEpoch: EPOCH_ZERO,
  };
}

export function openStepOf(kind: string, instanceId: string, rest: Partial<StepRecord> = {}): StepRecord {
  return {
    id: `${kind}/${instanceId}`,
    operation: "op",
    pool: "default/orders",
    instance: instanceId,
    kind: `${kind}/1`,
    payload: {},
    reason: reason("created"),
    state: "unknown",
    attempts: 1,
    notBefore: NOON,
    recordedAt: NOON,
    endedAt: null,
    outcome: null,
    result: null,
    authorityEpoch: EPOCH_ZERO,
    ...rest,
  };
}
