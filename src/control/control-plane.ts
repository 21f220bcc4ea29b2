/** What the HTTP API asks of the controller: reads from the store and the last passes, commands as evidence, steps and freezes. */
import { draftUncordon } from "../act/draft-step.ts";
import type { Executor } from "../act/executor.ts";
import type { Clock, Instant } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import type { KubeApi } from "../kube/api.ts";
import type { Informer } from "../kube/informer.ts";
import { NODES } from "../kube/resources.ts";
import type { Finding } from "../model/finding.ts";
import { ANNOTATIONS } from "../model/marks.ts";
import type { GatewayReport, RouteCounts } from "../model/membership.ts";
import { isLeaving, type Phase } from "../model/phase.ts";
import { hasRoute, routeOf } from "../model/pool.ts";
import type { Workload } from "../model/writer.ts";
import type { CapacityMonitor } from "../observe/capacity.ts";
import type { EvacuationDesk } from "./evacuation-desk.ts";
import type { NoticeDesk } from "../observe/notice-desk.ts";
import type { HeartbeatRegistry } from "../observe/source-heartbeats.ts";
import type { PodLosses } from "../observe/pod-losses.ts";
import type { World } from "../observe/world.ts";
import { sizeOf } from "../plan/scaling/size-of.ts";
import type { JobOutcome } from "../model/slots.ts";
import type { InstanceSnapshot } from "../plan/snapshot.ts";
import type {
  ControlPlane,
  DrainCommand,
  GatewayReplicaState,
  InstanceState,
  PlanResult,
  PoolState,
  RecordQuery,
  Subject,
  WorkloadState,
} from "../server/control-plane.ts";
import { type Authority, type Freeze, type PoolRows, standingFreeze, type StandingReason, type Store } from "../store/port.ts";
import { adopt, releaseTarget } from "./adopt-desk.ts";
import { resume, statusOf, suspend } from "./suspension.ts";
import { workOf } from "./work-under-way.ts";
import { applyPool } from "./apply-pool.ts";
import type { Controller } from "./controller.ts";
import { readinessOf } from "./readiness.ts";
import { explain } from "./explain.ts";
import { type FreezeSource, joinFreezes } from "./freeze-config.ts";
import { forceSeal, openForcedSeals, release } from "./operator-desk.ts";
import type { Pass } from "./pass.ts";
import type { GatewayRegistry } from "./gateways.ts";
import type { Journal } from "./journal.ts";
import type { Leases } from "./leases.ts";
import type { Members } from "./members.ts";
import type { Preflight } from "./preflight-gate.ts";
import type { ProveEffect } from "./prove-effect.ts";
import { protectionOf } from "./protection.ts";
import { findWitnesses, listCordons, listNodes } from "./node-desk.ts";
import type { PoolEntry } from "./pool-informer.ts";
import { listControllers, ownerElsewhere } from "./replicas-desk.ts";
import { finishFollowUp, listScaleChanges, recordException, recordProven } from "./scale-desk.ts";
import { scaleReportOf } from "./scale-report.ts";
import type { Witnesses } from "./rewound.ts";
import { servingCountOf } from "./scale-owner-report.ts";
import { checkStore, recoverStore, refuseRewound } from "./store-desk.ts";

/** How long a command waits for its effect before it says that it is still to come. */
const UNCORDON_WITHIN_MS = 10_000;

export interface ControlPlaneParts {
  readonly controller: Controller;
  readonly executor: Executor;
  readonly store: Store;
  readonly kube: KubeApi;
  readonly world: World;
  readonly pools: Informer<PoolEntry>;
  readonly gateways: GatewayRegistry;
  readonly witnesses: Witnesses;
  readonly leases: Leases;
  readonly notices: NoticeDesk;
  readonly heartbeats: HeartbeatRegistry;
  readonly capacity: CapacityMonitor;
  readonly evacuation: EvacuationDesk;
  readonly journal: Journal;
  readonly members: Members;
  /** Absent: nobody counts them. */
  readonly podLosses?: Pick<PodLosses, "of"> | undefined;
  /** Of a pool: how its jobs ended since this controller began. */
  readonly jobs?: (pool: string) => Readonly<Record<JobOutcome, number>> | null;
  /** What is frozen beside the store. */
  readonly freezes?: FreezeSource | undefined;
  /** Looks at what is under this controller; absent: nobody does. */
  readonly examine?: (() => Promise<readonly Finding[]>) | undefined;
  /** Looks at what a pool's size would follow; absent: nobody does. */
  readonly preflight?: Preflight | undefined;
  /** Proves the configuration of a pool's instances by its effect; absent: nobody does. */
  readonly proveEffect?: ProveEffect | undefined;
  readonly clock: Clock & { notBefore?(stamp: Instant): void };
  readonly ids: Ids;
}

export function createControlPlane(parts: ControlPlaneParts): ControlPlane {
  const { controller, store, gateways, notices, journal } = parts;
  return {
    listPools: async () => Promise.all(parts.pools.list().map((entry) => poolState(parts, entry))),
    findPool: async (pool) => {
      const entry = entryOf(parts, pool);
      return entry && poolState(parts, entry);
    },
    listInstances: async (query) =>
      (await fromPools(parts, query, (pool) => store.listInstances(pool, query.limit))).map((record) => instanceState(parts, record)),
    listEvidence: (query) => fromPools(parts, query, (pool) => store.listEvidence(pool, query.limit)),
    listSteps: (query) => fromPools(parts, query, (pool) => store.listSteps(pool, query.limit)),
    witnessesOf: (evidence) => findWitnesses(parts, evidence),
    listSenders: () => parts.heartbeats.senders(),
    receiveHeartbeat: ({ source, from, everyMs, trouble }) => parts.heartbeats.heard(source, from, everyMs, trouble),
    listScaleChanges: (query) => listScaleChanges(parts, query),
    listExceptions: ({ pool, limit }) => store.listExceptions(pool ?? null, limit),
    recordProven: async (pool, proof, by) => recordProven(parts, getEntry(parts, pool), parts.controller.lastPass(pool), proof, by),
    recordException: async (pool, draft, by) => recordException(parts, getEntry(parts, pool), draft, by),
    finishFollowUp: (exception, index) => finishFollowUp(parts, exception, index),
    listEvents: async (query) => journal.recent(query),
    listNotices: (limit) => store.listNotices(limit),
    listWorkloads: async (query) =>
      fromPools(parts, query, async (pool) =>
        ((await store.readPool(pool))?.workloads ?? []).map((workload) => workloadState(parts, workload)),
      ),
    renewLease: (renewal) => parts.leases.renew(renewal),
    listCordons: async () => listCordons(parts),
    listNodes: async () => listNodes(parts),
    listGateways: () => listGateways(parts),
    listControllers: () => listControllers(parts),
    ...(parts.members.isShared
      ? { elsewhere: (subject: Subject) => ownerElsewhere({ ...parts, findInstance: (id) => findInstance(parts, id) }, subject) }
      : {}),
    capacity: async () => ({ view: parts.capacity.view(), evacuation: parts.evacuation.overview(parts.clock.now()) }),
    plan: (pool) => plan(parts, pool),
    release: (command) => release(parts, command),
    forceSeal: (command) => forceSeal(parts, command),
    listForcedSeals: () => openForcedSeals(parts),
    explain: async (subject) => {
      const instance = entryOf(parts, subject) ? undefined : await findInstance(parts, subject);
      const pool = instance?.pool ?? (entryOf(parts, subject) ? subject : undefined);
      return explain(parts, { subject, pool, instance: instance && instanceState(parts, instance) });
    },
    apply: (document, parsed, options) => applyPool(parts, document, parsed, options.dryRun),
    drain: (command) => drain(parts, command),
    suspension: async ({ pool, deed, drain }) => {
      const entry = getEntry(parts, pool);
      const desk = { kube: parts.kube, work: () => workOf(parts, entry) };
      if (deed === "suspend") return suspend(desk, entry, { drain });
      return deed === "resume" ? resume(desk, entry) : statusOf(desk, entry);
    },
    adopt: async (command) => adopt(parts, getEntry(parts, command.pool), command),
    releaseTarget: async (pool, by) => releaseTarget(parts, getEntry(parts, pool), by),
    uncordon: (node, by) => uncordon(parts, node, by),
    freeze: (pool, freeze) => setFreeze(parts, pool, freeze),
    unfreeze: (pool) => setFreeze(parts, pool, null),
    receiveNotice: ({ source, node, ...message }) => notices.receive(source, message, node),
    subscribe: (listener) => journal.subscribe(listener),
    connectGateway: async (replica, send, predecessor) => {
      const close = await gateways.join(replica, send, predecessor);
      journal.tell({ at: parts.clock.now(), kind: "gateway", pool: null, subject: replica, code: "registered", from: null, reason: null });
      return { close };
    },
    receiveReport: async (report: GatewayReport) => {
      if (gateways.take(report)) return report.leaving ? gateways.leave(report.replica) : undefined;
      throw new RelevoError("replica_unknown", `gateway replica ${report.replica} is not registered`, {
        class: "conflict",
        todo: "open its stream first",
      });
    },
    checkStore: () => checkStore(parts),
    recoverStore: (command) => recoverStore(parts, command),
    readiness: () => readinessOf(parts),
    protection: async (pool) => {
      getEntry(parts, pool);
      const pass = await controller.planNow(pool);
      if (!pass) throw poolNotReady(pool);
      return protectionOf(parts.world, pass);
    },
    examine: async () => (await parts.examine?.()) ?? [],
    specOf: async (pool) => getEntry(parts, pool).document.spec,
    preflight: async (subject) => {
      const document = typeof subject === "string" ? getEntry(parts, subject).document : subject;
      return (await parts.preflight?.(document)) ?? [];
    },
    proveEffect: async (pool) => {
      const { document, blueprintHash } = getEntry(parts, pool);
      const site = document.spec.sites[0] ?? "local";
      const living = ((await store.readPool(pool))?.instances ?? []).filter(
        ({ phase, objects }) => !isLeaving(phase) && objects.length > 0,
      );
      const instances = living.map((record) => ({ id: record.id, blueprintHash: record.blueprintHash, site }));
      return (await parts.proveEffect?.({ document, blueprintHash, instances })) ?? { rows: [], notes: [] };
    },
  };
}

function entryOf({ pools }: ControlPlaneParts, pool: string): PoolEntry | undefined {
  return pools.list().find(({ key }) => key === pool);
}

function getEntry(parts: ControlPlaneParts, pool: string): PoolEntry {
  const entry = entryOf(parts, pool);
  if (entry) return entry;
  const known = parts.pools.list().map(({ key }) => key);
  throw new RelevoError("pool_not_found", `there is no pool ${pool}`, {
    found: pool,
    allowed: known.length > 0 ? known.join(", ") : "no pool yet: apply one first",
  });
}

async function fromPools<T>(
  parts: ControlPlaneParts,
  query: RecordQuery,
  read: (pool: string) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  const pools = query.pool === undefined ? await parts.store.listPools() : [query.pool];
  return (await Promise.all(pools.map(read))).flat().slice(0, query.limit);
}

async function poolState(parts: ControlPlaneParts, entry: PoolEntry): Promise<PoolState> {
  const rows = await parts.store.readPool(entry.key);
  const losses = await parts.store.countLosses(entry.key);
  const phases: Partial<Record<Phase, number>> = {};
  for (const { phase } of rows?.instances ?? []) phases[phase] = (phases[phase] ?? 0) + 1;
  return {
    pool: entry.key,
    document: entry.document,
    resourceVersion: entry.resourceVersion,
    authorityEpoch: rows?.authorityEpoch ?? ("0.0" as PoolRows["authorityEpoch"]),
    owner: rows?.owner ?? null,
    generation: rows?.generation ?? ("0.0" as PoolRows["generation"]),
    serving: servingOf(parts, entry) ?? phases.serving ?? 0,
    standby: rows?.instances.filter(({ phase, purpose }) => phase === "standby" && purpose === "standby").length ?? 0,
    phases,
    freeze: freezeOf(parts, entry.key, rows),
    reasons: reasonsOf(parts, entry.key, rows),
    losses,
    podLosses: parts.podLosses?.of(entry.key) ?? null,
    heldSteps: rows?.openSteps.filter(({ state }) => state === "held").length ?? 0,
    traffic: hasRoute(entry.document) ? trafficOf(parts, routeOf(entry.document)) : null,
    desired: sizeOf({ spec: entry.document.spec, scale: rows?.scale ?? null }),
    scale: scaleOf(parts, entry.key),
  };
}

/** Of a target, as it was seen last. */
function servingOf({ controller }: ControlPlaneParts, { key, document }: PoolEntry): number | undefined {
  const pass = document.spec.target === undefined ? undefined : controller.lastPass(key);
  return pass && servingCountOf(pass.snapshot);
}

function scaleOf({ controller }: ControlPlaneParts, pool: string): PoolState["scale"] {
  const pass = controller.lastPass(pool);
  return (pass && scaleReportOf(pass)) ?? null;
}

function freezeOf({ freezes, clock }: ControlPlaneParts, pool: string, rows: PoolRows | undefined): Freeze | null {
  const now = clock.now();
  return joinFreezes(standingFreeze(rows?.freeze ?? null, now), freezes?.freezeOf(pool, now) ?? null);
}

/** What is in a store that was rewound says nothing about now. */
function reasonsOf({ controller }: ControlPlaneParts, pool: string, rows: PoolRows | undefined): readonly StandingReason[] {
  const pass = controller.lastPass(pool);
  if (!pass?.snapshot.rewound) return rows?.reasons ?? [];
  return pass.plan.holds.map(({ subject, reason }) => ({ subject, reason, since: pass.at }));
}

function trafficOf({ gateways }: ControlPlaneParts, route: string): RouteCounts | null {
  const counts = gateways
    .views()
    .flatMap(({ report }) => report?.routes.filter((each) => each.route === route).map((each) => each.counts) ?? []);
  if (counts.length === 0) return null;
  const sum = (of: (each: RouteCounts) => number) => counts.reduce((total, each) => total + of(each), 0);
  return {
    accepted: sum((each) => each.accepted),
    completed: sum((each) => each.completed),
    inFlight: sum((each) => each.inFlight),
    queued: sum((each) => each.queued),
    rejected: sum((each) => each.rejected),
    cut: sum((each) => each.cut),
    retried: sum((each) => each.retried),
  };
}

function instanceState({ controller }: ControlPlaneParts, record: InstanceState["record"]): InstanceState {
  const seen = seenInstance(controller.lastPass(record.pool), record.id);
  return { record, obligations: seen?.obligations ?? jobsIn(seen), health: seen?.health.state ?? "unknown" };
}

/** Of a worker: each busy slot is one thing that it has not finished. */
function jobsIn(seen: InstanceSnapshot | undefined): InstanceState["obligations"] {
  const slots = seen?.slots ?? null;
  return slots && { requests: slots.progressing + slots.stuck, sessions: 0 };
}

function seenInstance(pass: Pass | undefined, instance: string): InstanceSnapshot | undefined {
  return pass?.snapshot.instances.find(({ record }) => record.id === instance);
}

function workloadState({ controller }: ControlPlaneParts, workload: Workload): WorkloadState {
  const seen = workload.holder === null ? undefined : seenInstance(controller.lastPass(workload.pool), workload.holder.instance);
  return { workload, lease: seen?.lease.state ?? "none" };
}

async function listGateways(parts: ControlPlaneParts): Promise<readonly GatewayReplicaState[]> {
  const registered = new Map((await parts.store.listGateways()).map((row) => [row.id, row.registeredAt]));
  const current = new Map(
    await Promise.all(
      parts.pools.list().map(async (entry) => [routeOf(entry.document), (await parts.store.readPool(entry.key))?.generation] as const),
    ),
  );
  return parts.gateways.views().map(({ replica, silent, report, connected, lastSeen }) => ({
    replica,
    registeredAt: registered.get(replica) ?? lastSeen,
    connected,
    lastReportAt: report ? lastSeen : null,
    silent,
    routes: (report?.routes ?? []).map(({ route, applied, counts }) => ({
      route,
      applied,
      current: current.get(route) ?? applied,
      counts,
    })),
  }));
}

async function plan(parts: ControlPlaneParts, pool: string): Promise<PlanResult> {
  getEntry(parts, pool);
  const pass = await parts.controller.planNow(pool);
  if (!pass) throw poolNotReady(pool);
  return { pool, at: pass.at, plan: pass.plan };
}

function poolNotReady(pool: string): RelevoError {
  return new RelevoError("pool_not_ready", `pool ${pool} has not been looked at yet`, {
    class: "retryable",
    todo: "try again in a second",
  });
}

async function findInstance(parts: ControlPlaneParts, id: string): Promise<InstanceState["record"] | undefined> {
  return (await fromPools(parts, { limit: 10_000 }, (pool) => parts.store.listInstances(pool, 10_000))).find((record) => record.id === id);
}

/** An operator's word is evidence like any other: recorded once, and acted upon to the end. */
async function drain(parts: ControlPlaneParts, { instance }: DrainCommand): Promise<{ readonly evidence: string }> {
  const { controller, store, ids, clock } = parts;
  const record = await findInstance(parts, instance);
  if (!record || record.phase === "deleted")
    throw new RelevoError("instance_not_found", `there is no instance ${instance}`, { found: instance, todo: "see relevo get instances" });
  if (isLeaving(record.phase))
    throw new RelevoError("instance_leaving", `${instance} is leaving already`, {
      class: "conflict",
      found: record.phase,
      allowed: "an instance that is not leaving",
    });
  refuseRewound(controller, record.pool);
  const authority = controller.authorityOf(record.pool);
  if (!authority)
    throw new RelevoError("pool_not_ready", `pool ${record.pool} has not been looked at yet`, {
      class: "retryable",
      todo: "try again in a second",
    });
  const { number, podName, podUid, nodeName, nodeUid } = record.incarnation;
  const id = ids.next("evidence");
  const evidence = {
    instance,
    incarnation: number,
    loss: "voluntary",
    reason: "operator_drain",
    podName,
    podUid,
    nodeName,
    nodeUid,
    nodeClaimName: null,
    nodeClaimUid: null,
    deadline: null,
    noticeId: null,
  } as const;
  await store.commit(authority, [{ kind: "record_evidence", id, evidence }], clock.now());
  controller.wake(record.pool);
  const kept = (await store.readPool(record.pool))?.evidence.find((each) => each.instance === instance && each.loss === "voluntary");
  // Of one class the first evidence stays (I3): without mode Act that one is not acted upon, and the operator must hear it.
  const mode = entryOf(parts, record.pool)?.document.spec.disruption.mode;
  if (kept && kept.reason !== "operator_drain" && mode !== "Act")
    throw new RelevoError(
      "drain_not_acted_upon",
      `${instance} carries evidence already (${kept.reason}), which mode ${mode} does not act upon`,
      {
        class: "conflict",
        found: mode,
        allowed: "Act",
        todo: "set spec.disruption.mode of its pool to Act",
      },
    );
  return { evidence: kept?.id ?? id };
}

async function uncordon(parts: ControlPlaneParts, name: string, by: string): Promise<void> {
  const node = parts.world.nodes.get(undefined, name);
  if (!node) throw new RelevoError("node_not_found", `there is no node ${name}`, { found: name, todo: "see relevo get nodes" });
  const cordonedBy = node.metadata.annotations[ANNOTATIONS.cordonedBy];
  if (cordonedBy === undefined || !node.spec.unschedulable) {
    throw new RelevoError("not_our_cordon", `${name} was not cordoned by Relevo`, {
      class: "conflict",
      allowed: "nodes that relevo get cordons lists",
      todo: "a cordon of somebody else is theirs to lift: kubectl uncordon",
    });
  }
  const authority = anyAuthority(parts);
  if (!authority)
    throw new RelevoError("pool_not_ready", "no pool is owned here yet", { class: "retryable", todo: "try again in a second" });
  refuseRewound(parts.controller, authority.pool);
  const draft = draftUncordon({ pool: authority.pool, node: { name, uid: node.metadata.uid }, cordonedBy, by });
  await Promise.race([parts.executor.start(authority, draft), parts.clock.sleep(UNCORDON_WITHIN_MS)]);
  // The step's end is not the proof: the node is.
  const { metadata } = await parts.kube.get({ type: NODES, name });
  if (metadata.uid !== node.metadata.uid || metadata.annotations?.[ANNOTATIONS.cordonedBy] === undefined) return;
  throw new RelevoError("uncordon_pending", `${name} is not uncordoned yet`, {
    class: "retryable",
    todo: "the step goes on: see relevo get steps",
  });
}

/** Any pool's journal may carry an operator's step; the first owned one, by name, so that the same command makes the same step. */
function anyAuthority({ controller, pools }: ControlPlaneParts): Authority | undefined {
  const keys = pools.list().map(({ key }) => key);
  return keys.toSorted().flatMap((key) => controller.authorityOf(key) ?? [])[0];
}

async function setFreeze(parts: ControlPlaneParts, pool: string | null, freeze: Freeze | null): Promise<readonly string[]> {
  const pools = pool === null ? parts.pools.list().map(({ key }) => key) : [getEntry(parts, pool).key];
  for (const each of pools) {
    await parts.store.setFreeze(each, freeze);
    parts.journal.tell({
      at: parts.clock.now(),
      kind: "freeze",
      pool: each,
      subject: each,
      code: freeze ? "frozen" : "unfrozen",
      from: null,
      reason: null,
    });
    parts.controller.wake(each);
  }
  return pools;
}
