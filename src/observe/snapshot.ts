/**
 * Builds what the planner sees of one pool: the store's rows, joined with the cluster's objects, the checks and the gateways' reports. Pure but for reading
 * the read models; it interprets and never decides.
 */
import type { Instant } from "../kernel/clock.ts";
import type { KubePod } from "../kube/types.ts";
import type { GatewayReport, MemberReport } from "../model/membership.ts";
import type { Evidence } from "../model/evidence.ts";
import type { Incarnation, InstanceRecord } from "../model/instance.ts";
import { LEASE_LAPSED } from "../model/protocol.ts";
import type { Phase } from "../model/phase.ts";
import type { Placement } from "../model/placement.ts";
import type { DemandView } from "../model/demand.ts";
import type { TargetView } from "../model/scale-owner.ts";
import type { InstanceSlots, PoolSlots } from "../model/slots.ts";
import type { Recommendation } from "../plan/scaling/types.ts";
import type { MadeCluster, PoolDocument } from "../model/pool.ts";
import { hasRoute, poolKey, routeOf } from "../model/pool.ts";
import { inventoryOf } from "../plan/inventory.ts";
import { failingFrom, isLeadThere, lostAfter } from "../plan/lost-after.ts";
import type {
  GatewayState,
  HealthState,
  InstanceSnapshot,
  LeaseState,
  MemberStateSeen,
  NodeSnapshot,
  OtherOwner,
  PoolSnapshot,
  Proofs,
  Stranger,
} from "../plan/snapshot.ts";
import { type PoolRows, standingFreeze } from "../store/port.ts";
import { objectsOf } from "./instance-objects.ts";
import type { NamedReads } from "./named-reads.ts";
import { strangersOf } from "./strangers.ts";
import { Reports } from "./reports.ts";
import type { World } from "./world.ts";

/** A gateway replica that is registered, as it is known now. */
export interface GatewayView {
  readonly replica: string;
  readonly silent: boolean;
  /** When it was given up: it knows of nothing that was made since. Null: it was not. */
  readonly lostAt: Instant | null;
  /** Its last report since it registered here; null before. */
  readonly report: GatewayReport | null;
  /** Its stream is open. */
  readonly connected: boolean;
  readonly lastSeen: Instant;
}

export interface SnapshotInput {
  readonly document: PoolDocument;
  readonly isDeleting: boolean;
  readonly blueprintHash: string;
  readonly rows: PoolRows;
  readonly world: World;
  readonly gateways: readonly GatewayView[];
  /** By node name; what correlation and the node's own objects say. */
  readonly nodeView: (name: string) => NodeSnapshot | undefined;
  readonly health: (instance: string, incarnation: number) => HealthState;
  readonly ownObligations: (instance: string, incarnation: number) => number | null;
  readonly lease: (instance: string, incarnation: number) => LeaseState;
  /** Whether a named read said so too: see `named-reads.ts`. */
  readonly confirm: NamedReads["confirm"];
  readonly placement: Placement;
  /** By pod UID, of pods that have a place: see `placements.ts`. */
  readonly placedSince: (podUid: string) => Instant;
  readonly settledAt: Instant;
  readonly rewound: PoolSnapshot["rewound"];
  readonly witnessesAwaitedUntil: Instant | null;
  readonly recoveredAt: PoolSnapshot["recoveredAt"];
  /** Instances that are not among the rows and whose objects are there; true: the store says that it was deleted. */
  readonly leftovers: ReadonlyMap<string, boolean>;
  /** Null: nobody asks for it. */
  readonly demand: DemandView | null;
  readonly slots: (instance: string, incarnation: number) => InstanceSlots | null;
  readonly isSlotsAwaited: (instance: string, incarnation: number) => boolean;
  readonly slotsTogether: (serving: readonly InstanceSlots[], finishing: readonly InstanceSlots[]) => PoolSlots | null;
  readonly recommended: readonly Recommendation[];
  /** Of a pool with a target; absent: nobody looks at it. */
  readonly target?: TargetView | null;
  readonly scaleOwners?: readonly OtherOwner[];
  /** Of a Trino cluster, as it was made; undefined of anything else. */
  readonly cluster?: (record: InstanceRecord) => MadeCluster | undefined;
  /** By pod UID, of members with evidence; undefined: nobody has asked it yet. */
  readonly memberState?: (podUid: string) => MemberStateSeen | undefined;
  readonly proofs?: Proofs | null;
  readonly now: Instant;
}

/** Told by the evacuation desk, which looks at the snapshots of all pools. */
const NO_GRANTS: PoolSnapshot["evacuation"] = new Map();
const NO_LEASE: LeaseState = { state: "none" };

/** With what is looked up for each instance, by instance. */
interface Look extends SnapshotInput {
  readonly reports: Reports;
  readonly evidenceOf: ReadonlyMap<string, readonly Evidence[]>;
  /** Why what is read of the cluster may be old. */
  readonly trouble: string | undefined;
}

function byInstance(evidence: readonly Evidence[]): ReadonlyMap<string, readonly Evidence[]> {
  const found = new Map<string, Evidence[]>();
  for (const each of evidence) {
    const known = found.get(each.instance);
    if (known === undefined) found.set(each.instance, [each]);
    else known.push(each);
  }
  return found;
}

/** All but what the brakes make of it, which look at all pools. */
export type SeenPool = Omit<PoolSnapshot, "brake" | "leaseBrake">;

export function snapshotPool(input: SnapshotInput): SeenPool {
  const { document, rows } = input;
  const look: Look = {
    ...input,
    reports: new Reports(input.gateways.filter(({ silent }) => !silent).map(({ report }) => report)),
    evidenceOf: byInstance(rows.evidence),
    trouble: input.world.trouble(),
  };
  const instances = rows.instances.map((record) => viewInstance(look, record));
  return {
    pool: poolKey(document.metadata.namespace, document.metadata.name),
    namespace: document.metadata.namespace,
    name: document.metadata.name,
    spec: document.spec,
    blueprintHash: input.blueprintHash,
    deleting: input.isDeleting,
    authorityEpoch: rows.authorityEpoch,
    generation: rows.generation,
    freeze: standingFreeze(rows.freeze, input.now),
    instances,
    openSteps: rows.openSteps,
    failures: rows.failures,
    reasons: rows.reasons,
    inventory: inventoryOf({ objects: look.trouble, owners: input.world.ownersTrouble() }, instances),
    placement: input.placement,
    evacuation: NO_GRANTS,
    makesRoom: 0,
    gateways: input.gateways.map((gateway) => gatewayState(gateway, routeOf(document))),
    settledAt: input.settledAt,
    workloads: rows.workloads,
    rewound: input.rewound,
    witnessesAwaitedUntil: input.witnessesAwaitedUntil,
    recoveredAt: input.recoveredAt,
    demand: demandOf(input, instances),
    slots: input.slotsTogether(slotsIn(instances, "serving"), slotsIn(instances, "draining")),
    scale: rows.scale,
    proven: rows.proven,
    recommended: input.recommended,
    ...(input.target === undefined ? {} : { target: input.target }),
    ...(input.scaleOwners === undefined ? {} : { scaleOwners: input.scaleOwners }),
    strangers: strangersSeen(input),
    ...(input.proofs === undefined ? {} : { proofs: input.proofs }),
  };
}

function slotsIn(instances: readonly InstanceSnapshot[], phase: Phase): readonly InstanceSlots[] {
  return instances.flatMap(({ record, slots }) => (record.phase === phase && slots !== null ? [slots] : []));
}

/** Workers that take from another flow than their pool says make its signal another flow's (K1). */
function demandOf({ demand, document, now }: SnapshotInput, instances: readonly InstanceSnapshot[]): DemandView | null {
  const { flow } = document.spec.worker;
  if (demand === null || flow === undefined || demand.trouble?.code === "other_flow") return demand;
  const other = instances.find(
    ({ record, slots }) => record.phase === "serving" && slots !== null && slots.flow !== null && slots.flow !== flow,
  );
  if (other === undefined) return demand;
  const detail = `instance ${other.record.id} takes from ${other.slots?.flow ?? "?"}, and worker.flow is ${flow}`;
  return { ...demand, trouble: { code: "other_flow", detail, since: demand.trouble?.since ?? demand.readAt ?? now } };
}

/** Before any recovery only what was found now and then: the look is over all objects. */
function strangersSeen({ world, document, rows, recoveredAt, leftovers }: SnapshotInput): readonly Stranger[] {
  if (recoveredAt === null && leftovers.size === 0) return [];
  return strangersOf({ world, ...document.metadata, known: idsOf(rows) })
    .filter(({ instance }) => recoveredAt !== null || leftovers.has(instance))
    .map((stranger) => ({ ...stranger, outlived: leftovers.get(stranger.instance) ?? false }));
}

function idsOf({ instances }: PoolRows): ReadonlySet<string> {
  return new Set(instances.map(({ id }) => id));
}

/** Who holds a lease is what the store says; how it stands, what the judge has seen. */
function leaseOf({ lease, rows }: SnapshotInput, { id, ordinal, incarnation }: InstanceRecord): LeaseState {
  if (rows.workloads.length === 0) return NO_LEASE;
  const holder = workloadAt(rows, ordinal)?.holder;
  if (holder?.instance !== id || holder.incarnation !== incarnation.number) return NO_LEASE;
  const seen = lease(id, incarnation.number);
  return seen.state === "none" ? { state: "unwatched" } : seen;
}

/** They are in the order of their places, and places have few gaps: looked for where it should be first. */
function workloadAt({ workloads }: PoolRows, ordinal: number): PoolRows["workloads"][number] | undefined {
  const guess = workloads[ordinal];
  return guess?.ordinal === ordinal ? guess : workloads.find((each) => each.ordinal === ordinal);
}

function gatewayState({ replica, silent, lostAt, report }: GatewayView, route: string): GatewayState {
  return { replica, silent, lostAt, applied: report?.routes.find((each) => each.route === route)?.applied ?? null };
}

function viewInstance(input: Look, record: InstanceRecord): InstanceSnapshot {
  const health = input.health(record.id, record.incarnation.number);
  const { pods, leads, wanted, newIncarnation, gone } = objectsOf(input, record, health.state === "passing" ? health.bootId : null);
  const reports = reportsOf(input, record);
  const lease = leaseOf(input, record);
  const slots = input.slots(record.id, record.incarnation.number);
  return {
    record,
    ...evidenceOf(input, record),
    ...clusterOf(input, record),
    pods,
    podsWanted: wanted,
    newIncarnation: isConfirmed(input, record, newIncarnation) ? newIncarnation : null,
    health,
    witnessed: reports.some((report) => report?.health === "failing"),
    unreached: reports.some((report) => report?.health === "failing" && report.healthReason !== "status_503"),
    lease,
    lost: lossOf(input, record, leads, { health, lease, renewal: newIncarnation }),
    obligations: hasRoute(input.document) ? input.reports.obligationsOf(record.id, record.incarnation.number) : null,
    ownObligations: input.ownObligations(record.id, record.incarnation.number),
    appliedEverywhere: record.admittedGeneration !== null && appliedBy(input, record, record.admittedGeneration) && passEverywhere(reports),
    slots,
    ...(slots === null && input.isSlotsAwaited(record.id, record.incarnation.number) ? { slotsAwaited: true as const } : {}),
    drainAppliedEverywhere: record.drainGeneration !== null && appliedBy(input, record, record.drainGeneration),
    objectsGone: gone === true ? input.confirm(record, "objects") : gone,
  };
}

function evidenceOf(input: Look, { id }: InstanceRecord): Pick<InstanceSnapshot, "evidence" | "memberEvidence" | "memberStates"> {
  const all = input.evidenceOf.get(id) ?? [];
  const memberEvidence = all.filter(({ isOfMember }) => isOfMember);
  if (memberEvidence.length === 0) return { evidence: all };
  const memberStates = new Map(
    memberEvidence.flatMap(({ podUid }) => {
      const seen = podUid === null ? undefined : input.memberState?.(podUid);
      return podUid === null || seen === undefined ? [] : [[podUid, seen] as const];
    }),
  );
  return { evidence: all.filter(({ isOfMember }) => !isOfMember), memberEvidence, memberStates };
}

function clusterOf(input: Look, record: InstanceRecord): Pick<InstanceSnapshot, "cluster"> {
  const cluster = input.cluster?.(record);
  return cluster === undefined ? {} : { cluster };
}

/** That another process runs is seen; that the recorded one does not may be old news of it, unless it is its own answer that says so. */
function isConfirmed(input: Look, record: InstanceRecord, renewal: Incarnation | null): boolean {
  const { containerId, podUid } = record.incarnation;
  if (renewal === null || containerId === null) return true;
  const isSameProcess = renewal.podUid === podUid && renewal.containerId === containerId;
  return isSameProcess || input.confirm(record, "process");
}

function lossOf(
  input: Look,
  record: InstanceRecord,
  leads: readonly KubePod[],
  { health, lease, renewal }: { readonly health: HealthState; readonly lease: LeaseState; readonly renewal: Incarnation | null },
): InstanceSnapshot["lost"] {
  const { incarnation, phase } = record;
  const hasProcess = phase === "validating" || phase === "standby" || phase === "admitted" || phase === "serving" || phase === "draining";
  if (!hasProcess || incarnation.number === 0 || renewal !== null || health.state === "passing") return null;
  // What is malformed counts as absent elsewhere; here absence would be a verdict, so it is none (D9).
  const isReadable = input.trouble === undefined && isWellFormed(input.world, incarnation);
  if (isReadable && incarnation.nodeName !== null) {
    const node = input.nodeView(incarnation.nodeName);
    const isGone = !node || (incarnation.nodeUid !== null && node.uid !== incarnation.nodeUid) || !node.ready;
    if (isGone && input.confirm(record, "node")) return "node_lost";
  }
  if (isReadable && leads.length === 0 && input.confirm(record, "pod")) return "pod_lost";
  if (health.state !== "failing") return null;
  // It is there and answers; whether its lease is over is judged by its renewals.
  if (health.code === LEASE_LAPSED && lease.state !== "none" && lease.state !== "unwatched") return null;
  // A pod that somebody deletes is told to refuse work and ends by itself, or by its grace.
  if (leads.some(({ metadata }) => metadata.uid === incarnation.podUid && metadata.deletionTimestamp !== null)) return null;
  const isLongAgo = input.now - failingFrom(record, health) >= lostAfter(input.document.spec, health);
  // Of a cluster that answers the gateways see the lead alone.
  const isSeenAlive = !isLeadThere(input.document.spec, health) && reportsOf(input, record).some((report) => report?.health === "passing");
  return isLongAgo && !isSeenAlive ? "process_unreachable" : null;
}

function isWellFormed({ nodes, pods }: World, { nodeName, podName }: Incarnation): boolean {
  return !nodes.problems().some(({ name }) => name === nodeName) && !pods.problems().some(({ name }) => name === podName);
}

function reportsOf({ reports, document }: Look, record: InstanceRecord): readonly (MemberReport | undefined)[] {
  return reports.of(routeOf(document), record.id, record.incarnation.number);
}

/** Its route, and every former name under which a replica still has the instance. */
function appliedBy({ reports, document }: Look, record: InstanceRecord, generation: PoolRows["generation"]): boolean {
  return reports.haveApplied(routeOf(document), record.id, generation);
}

function passEverywhere(reports: readonly (MemberReport | undefined)[]): boolean {
  return reports.length > 0 && reports.every((report) => report?.health === "passing");
}
