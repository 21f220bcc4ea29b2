/**
 * What one planning pass costs at 5,000 instances in 3 pools: snapshot, evacuation schedule and plan of all three, over read models as they are in production;
 * a quiet one, and one in a storm in which a third of the nodes was announced to be taken.
 */
import { HealthBrake } from "../../src/control/brake.ts";
import { EvacuationDesk } from "../../src/control/evacuation-desk.ts";
import { bootstrapCluster } from "../../src/embedded/store/bootstrap.ts";
import { directKubeApi } from "../../src/embedded/store/direct-api.ts";
import { ObjectStore } from "../../src/embedded/store/object-store.ts";
import { formatInstant } from "../../src/kernel/clock.ts";
import { epoch } from "../../src/kernel/epoch.ts";
import { drainMicrotasks } from "../../src/kernel/microtasks.ts";
import { VirtualClock } from "../../src/kernel/virtual-clock.ts";
import type { KubeApi, KubeObject, KubeObjectDraft, ResourceType } from "../../src/kube/api.ts";
import { DEPLOYMENTS, NODES, PODS, REPLICA_SETS } from "../../src/kube/resources.ts";
import type { Evidence } from "../../src/model/evidence.ts";
import type { InstanceRecord } from "../../src/model/instance.ts";
import { ANNOTATIONS, LABELS } from "../../src/model/marks.ts";
import type { GatewayReport } from "../../src/model/membership.ts";
import { poolSchema, type PoolDocument } from "../../src/model/pool.ts";
import { CapacityMonitor } from "../../src/observe/capacity.ts";
import { nodeViews } from "../../src/observe/node-views.ts";
import { type GatewayView, snapshotPool } from "../../src/observe/snapshot.ts";
import { createWorld, type World } from "../../src/observe/world.ts";
import { planPool } from "../../src/plan/plan.ts";
import type { NodeFinding, PoolSnapshot } from "../../src/plan/snapshot.ts";
import { poolDocument } from "../../src/sim/scenario.ts";
import { seededIds, seededRandom } from "../../src/sim/seeded.ts";
import type { PoolRows } from "../../src/store/port.ts";

const INSTANCES = 5_000;
const POOLS = ["orders", "quotes", "risk"] as const;
const PER_NODE = 20;
const STORM_SHARE = 1 / 3;
const ROUNDS = 120;
const WARM_UP = 20;

export interface PassCost {
  readonly instances: number;
  readonly pools: number;
  readonly decisions: number;
  /** Of all pools together. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface BenchPool {
  readonly document: PoolDocument;
  readonly records: readonly InstanceRecord[];
}

export async function measurePasses(): Promise<{ readonly quiet: PassCost; readonly storm: PassCost }> {
  const clock = new VirtualClock(undefined, drainMicrotasks);
  const ids = seededIds(seededRandom(1, "pass"));
  const store = new ObjectStore({ clock, ids, firstResourceVersion: 1 });
  bootstrapCluster(store);
  const api = directKubeApi(store);
  const nodes = await makeNodes(api);
  const pools: BenchPool[] = [];
  for (const [at, name] of POOLS.entries())
    pools.push(await makePool(api, clock.now(), name, Math.ceil((INSTANCES - at) / POOLS.length), nodes));
  const world = createWorld({ api, clock, random: seededRandom(1, "world"), log: () => {} });
  world.start();
  await clock.advance(1_000);
  const taken = nodes.slice(0, Math.round(nodes.length * STORM_SHARE)).map(({ metadata }) => metadata.uid);
  return { quiet: measure(pools, world, clock, new Set()), storm: measure(pools, world, clock, new Set(taken)) };
}

function measure(pools: readonly BenchPool[], world: World, clock: VirtualClock, taken: ReadonlySet<string>): PassCost {
  const now = clock.now();
  const finding: NodeFinding = { reason: "spot_interruption", loss: "deadline", deadline: now + 120_000, noticeId: "n-1" };
  const noticed = new Map([...taken].map((uid) => [uid, [finding]]));
  const capacity = new CapacityMonitor({ world, noticed: () => noticed, clock });
  const desk = new EvacuationDesk({ capacity: () => capacity.view(), onTurn: () => {}, log: () => {} });
  const gateways = ["gateway-1", "gateway-2"].map((replica) => gatewayOf(replica, pools));
  const rows = pools.map((pool) => rowsOf(pool, taken, now));
  const passing = () => ({ state: "passing", since: now, bootId: null }) as const;
  const brake = new HealthBrake({ healthOf: passing, beginAnew: () => {} });
  let last: readonly PoolSnapshot[] = [];
  let decisions = 0;
  const pass = (at: number): void => {
    decisions = 0;
    const seen: PoolSnapshot[] = [];
    for (const [index, { document }] of pools.entries()) {
      const snapshot = snapshotPool({
        document,
        isDeleting: false,
        blueprintHash: "blueprint",
        rows: rows[index] as PoolRows,
        world,
        gateways,
        nodeView: nodeViews({ world, noticed, now: at }),
        health: passing,
        ownObligations: () => 0,
        lease: () => ({ state: "none" }),
        confirm: () => true,
        placement: capacity.view().placement,
        placedSince: () => now,
        settledAt: now,
        rewound: null,
        witnessesAwaitedUntil: null,
        recoveredAt: null,
        demand: null,
        slots: () => null,
        slotsTogether: () => null,
        isSlotsAwaited: () => false,
        recommended: [],
        leftovers: new Map(),
        now: at,
      });
      const braked = { ...snapshot, brake: brake.look([...last.filter(({ pool }) => pool !== snapshot.pool), snapshot]), leaseBrake: null };
      const advised = { ...braked, ...desk.look(braked, at) };
      decisions += planPool(advised, at).decisions.length;
      seen.push(advised);
    }
    last = seen;
  };
  const costs = Array.from({ length: WARM_UP + ROUNDS }, (_, round) => {
    const begun = process.cpuUsage();
    pass(now + round * 250);
    const { user, system } = process.cpuUsage(begun);
    return (user + system) / 1_000;
  })
    .slice(WARM_UP)
    .toSorted((a, b) => a - b);
  const at = (share: number): number => Number((costs[Math.min(costs.length - 1, Math.floor(costs.length * share))] ?? 0).toFixed(1));
  return { instances: INSTANCES, pools: pools.length, decisions, p50Ms: at(0.5), p99Ms: at(0.99) };
}

async function makeNodes(api: KubeApi): Promise<readonly KubeObject[]> {
  const nodes: KubeObject[] = [];
  for (let at = 0; at < INSTANCES / PER_NODE; at++) {
    const name = `node-${at}`;
    const labels = {
      "topology.kubernetes.io/zone": `zone-${at % 3}`,
      "node.kubernetes.io/instance-type": "local.xlarge",
      "karpenter.sh/nodepool": "spot",
    };
    await api.create(NODES, {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name, labels },
      spec: { providerID: `aws:///zone-${at % 3}/i-${at}` },
    });
    nodes.push(await api.patchStatus({ type: NODES, name }, { status: { conditions: [{ type: "Ready", status: "True" }] } }));
  }
  return nodes;
}

async function makePool(api: KubeApi, now: number, name: string, size: number, nodes: readonly KubeObject[]): Promise<BenchPool> {
  const share = Math.round(size / 10);
  const document = poolSchema.parse(poolDocument({ name, desired: size, surge: share, draining: share, startsOff: false }));
  const records: InstanceRecord[] = [];
  for (let ordinal = 0; ordinal < size; ordinal++)
    records.push(await makeInstance(api, now, `${name}-${ordinal}`, name, ordinal, nodes[ordinal % nodes.length] as KubeObject));
  return { document, records };
}

/** A Deployment of one pod that runs and is protected. */
async function makeInstance(
  api: KubeApi,
  now: number,
  id: string,
  pool: string,
  ordinal: number,
  node: KubeObject,
): Promise<InstanceRecord> {
  const labels = { [LABELS.instance]: id };
  const annotations = { [ANNOTATIONS.protectedBy]: "a step" };
  const make = (type: ResourceType, kind: string, apiVersion: string, owner: KubeObject | undefined, spec: object): Promise<KubeObject> =>
    api.create(
      type,
      { apiVersion, kind, metadata: { name: id, namespace: "default", labels, annotations, ...ownedBy(owner) }, spec } as KubeObjectDraft,
      { namespace: "default" },
    );
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "x", command: ["run"] }] } };
  const selector = { matchLabels: labels };
  const deployment = await make(DEPLOYMENTS, "Deployment", "apps/v1", undefined, { replicas: 1, selector, template });
  const replicaSet = await make(REPLICA_SETS, "ReplicaSet", "apps/v1", deployment, { replicas: 1, selector, template });
  const pod = await make(PODS, "Pod", "v1", replicaSet, { ...template.spec, nodeName: node.metadata.name });
  const host = `10.0.${ordinal >> 8}.${ordinal & 255}`;
  const containerId = `c-${id}`;
  const started = { running: { startedAt: formatInstant(now) } };
  await api.patchStatus(
    { type: PODS, namespace: "default", name: id },
    {
      status: {
        phase: "Running",
        podIP: host,
        conditions: [{ type: "Ready", status: "True" }],
        containerStatuses: [
          { name: "main", ready: true, restartCount: 0, containerID: containerId, image: "x", imageID: "", state: started },
        ],
      },
    },
  );
  return {
    id,
    pool: `default/${pool}`,
    ordinal,
    purpose: "fill",
    replaces: null,
    phase: "serving",
    phaseSince: now,
    createdAt: now,
    trust: "ok",
    incarnation: {
      number: 1,
      podName: id,
      podUid: pod.metadata.uid,
      containerId,
      bootId: null,
      nodeName: node.metadata.name,
      nodeUid: node.metadata.uid,
      host,
      port: 8080,
    },
    blueprintHash: "blueprint",
    objects: [{ apiVersion: "apps/v1", kind: "Deployment", namespace: "default", name: id, uid: deployment.metadata.uid }],
    admittedGeneration: epoch(0, 1),
    drainGeneration: null,
    drainLoss: null,
    drainSince: null,
    drainDeadline: null,
    seal: null,
    failure: null,
    failedAt: null,
  };
}

function ownedBy(owner: KubeObject | undefined): object {
  if (owner === undefined) return {};
  const { apiVersion, kind, metadata } = owner;
  return { ownerReferences: [{ apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true }] };
}

/** Evidence of those on nodes that will be taken is in the rows already: the pass decides what comes of it. */
function rowsOf({ document, records }: BenchPool, taken: ReadonlySet<string>, now: number): PoolRows {
  const evidence = records.flatMap(({ id, pool, incarnation }): Evidence[] => {
    if (incarnation.nodeUid === null || !taken.has(incarnation.nodeUid)) return [];
    return [
      {
        id: `e-${id}`,
        pool,
        instance: id,
        incarnation: 1,
        loss: "deadline",
        reason: "spot_interruption",
        podName: incarnation.podName,
        podUid: incarnation.podUid,
        nodeName: incarnation.nodeName,
        nodeUid: incarnation.nodeUid,
        nodeClaimName: null,
        nodeClaimUid: null,
        deadline: now + 120_000,
        noticeId: "n-1",
        firstSeen: now,
        authorityEpoch: epoch(0, 1),
      },
    ];
  });
  return {
    pool: `default/${document.metadata.name}`,
    authorityEpoch: epoch(0, 1),
    owner: "bench",
    generation: epoch(0, 1),
    freeze: null,
    instances: records,
    evidence,
    openSteps: [],
    failures: [],
    reasons: [],
    workloads: [],
    scale: null,
    proven: null,
  };
}

function gatewayOf(replica: string, pools: readonly BenchPool[]): GatewayView {
  const routes = pools.map(({ document, records }) => ({
    route: document.metadata.name,
    applied: epoch(0, 1),
    members: records.map(({ id }) => ({ instance: id, incarnation: 1, requests: 1, sessions: 0, health: "passing", healthReason: null })),
    counts: {},
  }));
  const report = { replica, sequence: 1, routes } as unknown as GatewayReport;
  return { replica, silent: false, lostAt: null, report, connected: true, lastSeen: 0 };
}
