/** A `ControlPlane` of plain values: what a test says is there is there, what is asked for is written down. */
import type { Instant } from "../../kernel/clock.ts";
import { EPOCH_ZERO, epoch } from "../../kernel/epoch.ts";
import { RelevoError } from "../../kernel/errors.ts";
import type { Evidence } from "../../model/evidence.ts";
import type { Finding } from "../../model/finding.ts";
import type { EffectReport } from "../../model/effect.ts";
import type { PreflightRow } from "../../model/preflight.ts";
import type { InstanceRecord } from "../../model/instance.ts";
import type { ControllerLine, GatewayReport } from "../../model/membership.ts";
import { type PoolDocument, type PoolSpec, poolSchema } from "../../model/pool.ts";
import { reason } from "../../model/reasons.ts";
import type { PromotionException } from "../../model/promotion.ts";
import type { SenderState } from "../../model/sender.ts";
import type { StepRecord } from "../../model/step.ts";
import type { Witness } from "../../model/witness.ts";
import type { NoticeRecord } from "../../store/port.ts";
import type { PoolScaleChange } from "../scale-state.ts";
import type {
  ControlPlane,
  CapacityState,
  CordonState,
  Explanation,
  ControllerState,
  ForcedSeal,
  GatewayReplicaState,
  IncomingNotice,
  SourceHeartbeat,
  InstanceState,
  JournalEntry,
  RecordQuery,
  NodeState,
  PodProtection,
  PoolState,
  Readiness,
  StoreState,
  WorkloadState,
} from "../control-plane.ts";

export const NOON: Instant = Date.UTC(2030, 0, 1, 12);

export interface FakeState {
  pools: PoolState[];
  instances: InstanceState[];
  evidence: Evidence[];
  events: readonly JournalEntry[];
  steps: StepRecord[];
  notices: NoticeRecord[];
  senders: SenderState[];
  cordons: CordonState[];
  nodes: NodeState[];
  gateways: GatewayReplicaState[];
  workloads: WorkloadState[];
  forcedSeals: ForcedSeal[];
  scaleChanges: PoolScaleChange[];
  exceptions: PromotionException[];
  store: StoreState;
  capacity: CapacityState;
  readiness: Readiness;
  examined: readonly Finding[];
  preflight: readonly PreflightRow[];
  /** One a look; the last one from then on. */
  effects: readonly EffectReport[];
  spec: PoolSpec;
  protection: readonly PodProtection[];
  /** Thrown by every change when set. */
  failure: RelevoError | undefined;
}

export class FakeControlPlane implements ControlPlane {
  readonly state: FakeState;
  /** What was asked for, in order. */
  readonly calls: { readonly call: string; readonly with: unknown }[] = [];
  readonly listeners = new Set<(entry: JournalEntry) => void>();
  readonly gateways = new Map<string, (line: ControllerLine) => boolean>();
  readonly reports: GatewayReport[] = [];

  constructor(state: Partial<FakeState> = {}) {
    this.state = {
      pools: [],
      instances: [],
      evidence: [],
      events: [],
      steps: [],
      notices: [],
      senders: [],
      cordons: [],
      nodes: [],
      gateways: [],
      workloads: [],
      forcedSeals: [],
      scaleChanges: [],
      exceptions: [],
      store: { era: 0, recovered: null, pools: [] },
      capacity: aCapacity(),
      examined: [],
      preflight: [],
      effects: [],
      spec: poolSchema.parse(ORDERS_YAML_OBJECT).spec,
      protection: [],
      readiness: { ready: true, checks: [{ name: "store", ok: true, message: "writable" }] },
      failure: undefined,
      ...state,
    };
  }

  listPools = async () => this.state.pools;
  capacity = async () => this.state.capacity;
  findPool = async (pool: string) => this.state.pools.find((state) => state.pool === pool);
  listInstances = async ({ pool, limit }: { pool?: string | undefined; limit: number }) =>
    this.state.instances.filter(({ record }) => pool === undefined || record.pool === pool).slice(0, limit);
  listEvidence = async ({ pool, limit }: { pool?: string | undefined; limit: number }) =>
    this.state.evidence.filter((row) => pool === undefined || row.pool === pool).slice(0, limit);
  listSteps = async ({ limit }: { limit: number }) => this.state.steps.slice(0, limit);
  listWorkloads = async ({ pool, limit }: { pool?: string | undefined; limit: number }) =>
    this.state.workloads.filter(({ workload }) => pool === undefined || workload.pool === pool).slice(0, limit);
  witnessesOf = async () => new Map<string, readonly Witness[]>();
  listSenders = () => this.state.senders;
  receiveHeartbeat = (heartbeat: SourceHeartbeat): void => this.#record("receiveHeartbeat", heartbeat);
  listNotices = async (limit: number) => this.state.notices.slice(0, limit);
  listCordons = async () => this.state.cordons;
  listNodes = async () => this.state.nodes;
  listControllers = async (): Promise<readonly ControllerState[]> => [
    { id: "controller-1", api: null, isSelf: true, isLive: true, pools: this.state.pools.map(({ pool }) => pool) },
  ];
  listGateways = async () => this.state.gateways;
  readiness = async () => this.state.readiness;
  protection = async () => this.state.protection;
  examine = async () => this.state.examined;
  specOf: ControlPlane["specOf"] = async () => this.state.spec;
  preflight = async () => this.state.preflight;
  proveEffect = async (): Promise<EffectReport> => {
    const [first = { rows: [], notes: [] }, ...later] = this.state.effects;
    if (later.length > 0) this.state.effects = later;
    return first;
  };
  checkStore = async () => this.state.store;
  recoverStore: ControlPlane["recoverStore"] = async (command) => {
    this.#record("recoverStore", command);
    const { era, pools } = this.state.store;
    return {
      era: era + 1,
      recovered: { at: NOON, from: era, why: command.why, by: command.by },
      pools: pools.map((pool) => ({ ...pool, rewound: null })),
    };
  };

  async plan(pool: string) {
    if ((await this.findPool(pool)) === undefined) throw new RelevoError("pool_not_found", `There is no pool ${pool}.`, { found: pool });
    return {
      pool,
      at: NOON,
      plan: {
        decisions: [
          { kind: "create_instance" as const, instance: "orders-a", reason: reason("below_desired", { serving: 3, desired: 4 }) },
        ],
        holds: [{ kind: "hold" as const, subject: "orders-b", reason: reason("serving_not_above_desired", { serving: 4, desired: 4 }) }],
        nextLookAt: NOON + 5_000,
        recommendation: null,
      },
    };
  }

  async explain(subject: string): Promise<Explanation> {
    const instance = this.state.instances.find(({ record }) => record.id === subject);
    const pool = await this.findPool(subject);
    if (instance === undefined && pool === undefined)
      throw new RelevoError("subject_not_found", `There is neither a pool nor an instance ${subject}.`, { found: subject });
    return {
      kind: instance === undefined ? "pool" : "instance",
      subject,
      pool: instance?.record.pool ?? subject,
      at: NOON,
      reasons: [{ subject, reason: reason("nothing_condemned"), since: NOON - 1_000 }],
      instance: instance ?? null,
      evidence: this.state.evidence.filter((row) => row.instance === subject),
      podLosses: null,
      scale: null,
      steps: [],
    };
  }

  apply: ControlPlane["apply"] = async (document, parsed, { dryRun }) => {
    this.#record("apply", { document, dryRun });
    return { pool: `${parsed.metadata.namespace}/${parsed.metadata.name}`, result: "created" };
  };
  drain: ControlPlane["drain"] = async (command) => {
    this.#record("drain", command);
    if (!this.state.instances.some(({ record }) => record.id === command.instance))
      throw new RelevoError("instance_not_found", `There is no instance ${command.instance}.`, { found: command.instance });
    return { evidence: "ev-1" };
  };
  release: ControlPlane["release"] = async (command) => {
    this.#record("release", command);
    const held = this.state.steps.filter(
      ({ state, id, operation }) => state === "held" && (id === command.operation || operation === command.operation),
    );
    if (held.length === 0) throw new RelevoError("step_not_held", `Nothing of ${command.operation} is held.`, { found: command.operation });
    return held.map(({ id }) => id);
  };
  listScaleChanges: ControlPlane["listScaleChanges"] = async () => this.state.scaleChanges;
  listExceptions: ControlPlane["listExceptions"] = async () => this.state.exceptions;
  recordProven: ControlPlane["recordProven"] = async (pool, proof, by) => {
    this.#record("recordProven", { pool, proof, by });
    return { ...proof, at: NOON, by, configHash: "b1", slotsPerInstance: 2, slotTotals: [2] };
  };
  adopt: ControlPlane["adopt"] = async (command) => {
    this.#record("adopt", command);
    const { removeOwner, dryRun, pool } = command;
    const removed = removeOwner === null ? null : `${removeOwner.kind}/${removeOwner.name}`;
    const outcome = dryRun ? "would_adopt" : "adopted";
    return { pool, target: "Deployment/web", uid: "uid-web", replicas: 3, outcome, at: NOON, removed, owners: [], resetTo: null };
  };
  suspension: ControlPlane["suspension"] = async (command) => {
    this.#record("suspension", command);
    const suspended = command.deed === "suspend";
    const counts = { serving: suspended ? 0 : 2, desired: suspended ? 0 : 2, instances: suspended ? 0 : 2 };
    return { pool: command.pool, phase: suspended ? "off" : "on", suspended, ...counts, parts: [], residue: [], perMonth: {} };
  };
  releaseTarget: ControlPlane["releaseTarget"] = async (pool, by) => {
    this.#record("releaseTarget", { pool, by });
    const none = { removed: null, owners: [], resetTo: null };
    return { pool, target: "Deployment/web", uid: "uid-web", replicas: 3, outcome: "released", at: NOON, ...none };
  };
  recordException: ControlPlane["recordException"] = async (pool, draft, by) => {
    this.#record("recordException", { pool, draft, by });
    return { ...draft, id: "exception-1", pool, by, at: NOON, followUps: draft.followUps.map((what) => ({ what, doneAt: null })) };
  };
  finishFollowUp: ControlPlane["finishFollowUp"] = async (exception, index) => {
    this.#record("finishFollowUp", { exception, index });
    const found = this.state.exceptions.find(({ id }) => id === exception);
    if (found === undefined) throw new RelevoError("follow_up_not_found", `There is no exception ${exception}.`, { found: exception });
    return found;
  };
  forceSeal: ControlPlane["forceSeal"] = async (command) => {
    this.#record("forceSeal", command);
    return { pool: "default/orders", at: NOON, phase: "sealed", obligations: 2, ...command };
  };
  listForcedSeals = async () => this.state.forcedSeals;
  renewLease: ControlPlane["renewLease"] = async (renewal) => {
    this.#record("renewLease", renewal);
    return { pool: renewal.pool, ordinal: 0, writerEpoch: epoch(0, 1), ttlMs: 10_000 };
  };
  uncordon: ControlPlane["uncordon"] = async (node, by) => {
    this.#record("uncordon", { node, by });
    if (!this.state.cordons.some((cordon) => cordon.node === node))
      throw new RelevoError("not_our_cordon", `${node} was not cordoned by Relevo.`, { found: node, todo: "use kubectl uncordon" });
  };
  freeze: ControlPlane["freeze"] = async (pool, freeze) => {
    this.#record("freeze", { pool, ...freeze });
    return pool === null ? this.state.pools.map((state) => state.pool) : [pool];
  };
  unfreeze: ControlPlane["unfreeze"] = async (pool, by) => {
    this.#record("unfreeze", { pool, by });
    return pool === null ? this.state.pools.map((state) => state.pool) : [pool];
  };

  async receiveNotice(notice: IncomingNotice) {
    this.#record("receiveNotice", notice);
    let event: { readonly detail?: Readonly<Record<string, unknown>> };
    try {
      event = JSON.parse(notice.body) as typeof event;
    } catch {
      throw new RelevoError("notice_malformed", "The body is not JSON.", { field: "body" });
    }
    if (event.detail === undefined)
      throw new RelevoError("notice_malformed", "detail is missing.", { field: "detail", allowed: "a mapping" });
    return { accepted: ["notice-1"], duplicates: [], ignored: [] };
  }

  listEvents = async ({ pool, limit }: RecordQuery): Promise<readonly JournalEntry[]> =>
    this.state.events.filter((entry) => pool === undefined || entry.pool === pool).slice(0, limit);

  subscribe(listener: (entry: JournalEntry) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  async connectGateway(replica: string, send: (line: ControllerLine) => boolean) {
    if (this.state.failure) throw this.state.failure;
    this.gateways.set(replica, send);
    send({ type: "membership", complete: true, routes: [], ttlMs: 10_000 });
    return { close: () => void this.gateways.delete(replica) };
  }
  async receiveReport(report: GatewayReport) {
    this.reports.push(report);
  }

  #record(call: string, args: unknown): void {
    this.calls.push({ call, with: args });
    if (this.state.failure) throw this.state.failure;
  }
}

export const ORDERS_YAML_OBJECT = {
  apiVersion: "relevo.dev/v1alpha1",
  kind: "Pool",
  metadata: { name: "orders" },
  spec: {
    driver: "service",
    size: { desired: 4, floor: 3, max: 8 },
    blueprint: { objects: [{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" }, spec: {} }] },
    disruption: { mode: "Act" },
  },
};

export function aDocument(): PoolDocument {
  return poolSchema.parse(ORDERS_YAML_OBJECT);
}

export function aPool(overrides: Partial<PoolState> = {}): PoolState {
  return {
    pool: "default/orders",
    document: aDocument(),
    resourceVersion: "12",
    authorityEpoch: epoch(0, 3),
    owner: "controller-1",
    generation: epoch(0, 7),
    serving: 4,
    standby: 0,
    phases: { serving: 4 },
    freeze: null,
    reasons: [{ subject: "", reason: reason("nothing_to_do"), since: NOON }],
    losses: [],
    podLosses: null,
    heldSteps: 0,
    traffic: null,
    desired: aDocument().spec.size.desired,
    scale: null,
    ...overrides,
  };
}

export function anInstance(id: string, overrides: Partial<InstanceRecord> = {}): InstanceState {
  return {
    health: "passing",
    obligations: { requests: 2, sessions: 1 },
    record: {
      id,
      pool: "default/orders",
      ordinal: 0,
      purpose: "fill",
      replaces: null,
      phase: "serving",
      phaseSince: NOON - 60_000,
      createdAt: NOON - 120_000,
      trust: "ok",
      incarnation: {
        number: 1,
        podName: `${id}-pod`,
        podUid: `${id}-pod-uid`,
        containerId: "c1",
        bootId: "boot-1",
        nodeName: "node-a",
        nodeUid: "node-a-uid",
        host: "127.1.0.2",
        port: 8080,
      },
      blueprintHash: "hash",
      objects: [],
      admittedGeneration: epoch(0, 6),
      drainGeneration: null,
      drainLoss: null,
      drainSince: null,
      drainDeadline: null,
      seal: null,
      failure: null,
      failedAt: null,
      ...overrides,
    },
  };
}

export function someEvidence(overrides: Partial<Evidence> = {}): Evidence {
  return {
    id: "ev-1",
    pool: "default/orders",
    instance: "orders-a",
    incarnation: 1,
    loss: "voluntary",
    reason: "node_drifted",
    podName: null,
    podUid: null,
    nodeName: "node-a",
    nodeUid: "node-a-uid",
    nodeClaimName: "claim-a",
    nodeClaimUid: "claim-a-uid",
    deadline: null,
    noticeId: null,
    firstSeen: NOON,
    authorityEpoch: EPOCH_ZERO,
    ...overrides,
  };
}

export function aCapacity(): CapacityState {
  const spot = { site: "local", zone: "zone-a", instanceType: "local.xlarge", capacityType: "spot" };
  const absorption = { site: "local", perSecond: 20, burst: 200, tokens: 198 };
  const supply = {
    id: "standby/default/orders",
    site: "local",
    provider: "local",
    zone: "",
    instanceType: "",
    kind: "standby",
    pool: "default/orders",
    latencyMs: 0,
    free: 1,
    readyInMs: 0,
    heat: 0,
    passing: true,
    preemptible: null,
    absorption,
  } as const;
  return {
    view: {
      at: Date.UTC(2026, 10, 30, 12),
      spots: [
        {
          spot,
          heat: 0.625,
          machines: 3,
          losses: 2,
          failedLaunches: 1,
          launches: 3,
          lastLossAt: Date.UTC(2026, 10, 30, 11, 59),
          lastFailureAt: null,
        },
      ],
      placement: { avoid: { zones: ["zone-a"], instanceTypes: [], nodes: ["node-a1"] }, capacityType: null },
      quotas: [{ nodePool: "spot", limit: 20, machines: 3, spots: [spot] }],
      readyInMs: 4_200,
    },
    evacuation: {
      supplies: [{ supply, reserved: 2 }],
      absorption,
      prediction: { withinMs: 90_000, within: 3, beforeDeadline: 4, of: 4, breaches: 0, attainable: false, bottleneck: "quota" },
    },
  };
}
