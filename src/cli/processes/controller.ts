/** Composes a controller: read models, planner, executor, gateways' registry, HTTP API, over one store and one cluster. */
import type { ClusterSetup } from "../../act/draft-step.ts";
import { createExecutor } from "../../act/executor.ts";
import { watchCommits } from "../../control/commits.ts";
import { Controller } from "../../control/controller.ts";
import type { Pass } from "../../control/pass.ts";
import type { ProofSource } from "../../control/pass-maker.ts";
import { DecidedSizes } from "../../control/decided-sizes.ts";
import { createControlPlane } from "../../control/control-plane.ts";
import type { FreezeSource } from "../../control/freeze-config.ts";
import { GatewayRegistry } from "../../control/gateways.ts";
import { Journal } from "../../control/journal.ts";
import { type LeaseDoor, Leases } from "../../control/leases.ts";
import { Witnesses } from "../../control/rewound.ts";
import { poolParser } from "../../control/pool-informer.ts";
import { podLossViews } from "../../control/pod-loss-views.ts";
import { type Members, onlyMember } from "../../control/members.ts";
import { PoolWriter } from "../../control/pool-writer.ts";
import { tellPools } from "../../control/tell-pools.ts";
import { type BeginningAbsorption, EvacuationDesk } from "../../control/evacuation-desk.ts";
import { feedEvacuation, feedMetrics, feedPass } from "../../control/feed-metrics.ts";
import type { Connections } from "../../demand/availability.ts";
import { DEMAND_ADAPTERS, type DemandAdapters } from "../../demand/registry.ts";
import type { InstanceDriver } from "../../drivers/port.ts";
import type { EvacuationPolicy } from "../../plan/evacuation/policy.ts";
import type { Clock } from "../../kernel/clock.ts";
import { SteadyClock } from "../../kernel/steady-clock.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Random } from "../../kernel/random.ts";
import type { KubeApi } from "../../kube/api.ts";
import { createInformer } from "../../kube/informer.ts";
import type { Capability } from "../../kube/permissions.ts";
import { POOLS } from "../../kube/resources.ts";
import { LABELS } from "../../model/marks.ts";
import { CapacityMonitor } from "../../observe/capacity.ts";
import { HealthMonitor } from "../../observe/health.ts";
import { DemandMonitor } from "../../observe/demand-monitor.ts";
import { JobCounter } from "../../observe/job-counts.ts";
import { LeaseWatch } from "../../observe/lease-watch.ts";
import { NoticeDesk } from "../../observe/notice-desk.ts";
import { ScaleOwners } from "../../observe/scale-owners.ts";
import { MemberMonitor } from "../../observe/member-monitor.ts";
import { SlotsMonitor } from "../../observe/slots-monitor.ts";
import { Targets } from "../../observe/targets.ts";
import { HeartbeatRegistry } from "../../observe/source-heartbeats.ts";
import { machineStateOf } from "../../observe/machine-state.ts";
import type { MachineState } from "../../notices/autoscaling/keeper.ts";
import { PlacementTroubles } from "../../observe/placement-troubles.ts";
import { PodLosses } from "../../observe/pod-losses.ts";
import { createWorld } from "../../observe/world.ts";
import { examineOnce } from "../../proof/cluster/examine.ts";
import { preflight } from "../../proof/preflight/preflight.ts";
import { askWorker } from "../../proof/preflight/trino/ask-worker.ts";
import { RetryProofs } from "../../control/retry-proofs.ts";
import { NO_SIGHT, type PodSight } from "../../proof/effect/ports.ts";
import { proveEffect } from "../../proof/effect/prove.ts";
import { askRetryPolicy, serverProbes } from "../../proof/effect/server-probe.ts";
import type { ControlPlane } from "../../server/control-plane.ts";
import type { Logger } from "../../server/log.ts";
import type { Metrics } from "../../server/metrics.ts";
import type { Store } from "../../store/port.ts";
import { clusterFacts } from "./cluster-facts.ts";

/** What another replica has received is known here after so long. */
const REREAD_NOTICES_MS = 1_000;

export interface ControllerComposition {
  readonly kube: KubeApi;
  readonly store: Store;
  readonly driver: InstanceDriver;
  readonly clock: Clock;
  readonly random: Random;
  readonly ids: Ids;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Of an EC2 spot warning; the cloud's 120 s when absent. */
  readonly spotLeadMs?: number;
  /** What the site is known to absorb, where learning begins. */
  readonly absorption?: BeginningAbsorption;
  /** In the place of asking the running processes. */
  readonly proofs?: ProofSource;
  /** Where the files in pods can be seen; nowhere when absent. */
  readonly sight?: PodSight;
  /** Told of each pass, beside the metrics: whoever checks what is planned. */
  readonly onPass?: (pass: Pass) => void;
  /** In the place of `planEvacuation`. */
  readonly evacuationPolicy?: EvacuationPolicy;
  /** The ServiceAccount that makes the objects of Pools which name none; the controller itself without it. */
  readonly instancesAccount?: string;
  readonly cluster?: ClusterSetup;
  /** Asks the cluster's Events why a pod finds no place. */
  readonly readsEvents?: boolean;
  /** What is frozen beside the store. */
  readonly freezes?: FreezeSource;
  /** Beside what its pools need: about these it asks when it examines the cluster. */
  readonly capabilities?: readonly Capability[];
  /** In which it runs; null or absent: outside of the cluster. */
  readonly ownNamespace?: string | null;
  /** The replicas of the controller; one alone when absent. */
  readonly members?: Members;
  /** How instances renew a writer lease here; absent: no admission hands one out. */
  readonly leaseDoor?: LeaseDoor;
  /** From which Pools read their demand; none when absent. */
  readonly connections?: Connections;
  /** In the place of those of the registry. */
  readonly demandAdapters?: DemandAdapters;
}

export interface ComposedController {
  readonly controller: Controller;
  readonly controlPlane: ControlPlane;
  /** For others who set sizes: KEDA. */
  readonly sizes: DecidedSizes;
  /** Where queues bring what they receive. */
  readonly notices: NoticeDoor;
  /** The other replicas take over at once; nothing where there is none. */
  handOver(): Promise<void>;
  /** Begins nothing new, waits a bounded time for what is under way, and closes the store. */
  close(): Promise<void>;
}

export interface NoticeDoor {
  readonly desk: NoticeDesk;
  readonly heartbeats: HeartbeatRegistry;
  /** Whether a machine still carries instances of ours. */
  readonly stateOf: (machineId: string) => MachineState;
}

/** Not started yet: `await composed.controller.start()`. */
export function composeController({ kube, driver, random, ids, log, metrics, ...options }: ControllerComposition): ComposedController {
  const clock = new SteadyClock(options.clock);
  const say = (level: "debug" | "info" | "warn" | "error", message: string, fields: Readonly<Record<string, unknown>>) =>
    log[level](fields, message);
  const journal = new Journal();
  const store = watchCommits(options.store, (pool, changes, now) => {
    feedMetrics(metrics, pool, changes, journal);
    journal.committed(pool, changes, now);
    if (changes.some(({ kind }) => kind === "set_desired")) sizes?.changed(pool);
  });
  let sizes: DecidedSizes | undefined;
  const world = createWorld({ api: kube, clock, random, log: say });
  const pools = createInformer({ api: kube, type: POOLS, clock, random, log: say, parse: poolParser(options.instancesAccount) });
  const writer = new PoolWriter(kube, clock, say);

  // The parts call each other back: each wake-up finds the controller once it stands.
  let controller: Controller | undefined;
  const members = options.members ?? onlyMember(ids.next("controller"));
  const gateways = new GatewayRegistry({
    store,
    clock,
    onChange: (route) => controller?.wakeRoute(route),
    ...(members.isShared ? { learnEpochs: (epochs) => controller?.learnEpochs(epochs) } : {}),
  });
  const health = new HealthMonitor(driver, clock, (instance) => {
    const pool = controller?.poolOf(instance);
    if (pool !== undefined) controller?.wake(pool);
  });
  const notices = new NoticeDesk({
    store,
    world,
    clock,
    ids,
    ...(options.spotLeadMs === undefined ? {} : { spotLeadMs: options.spotLeadMs }),
    ...(members.isShared ? { rereadEveryMs: REREAD_NOTICES_MS } : {}),
    onChange: () => controller?.wakeAll(),
    onOutcome: (source, outcome) => metrics.countNotice(source, outcome),
    log: say,
  });
  const heartbeats = new HeartbeatRegistry(clock);
  const witnesses = new Witnesses();
  const leaseWatch = new LeaseWatch({ clock, onReturn: (pool) => controller?.wake(pool) });
  const demand = new DemandMonitor({
    adapters: options.demandAdapters ?? DEMAND_ADAPTERS,
    connections: options.connections ?? { find: () => undefined },
    ...{ clock, random, kube },
    onChange: (pool) => controller?.wake(pool),
    onRead: (_pool, outcome, ms) => metrics.countDemandRead(outcome, ms),
    log: say,
  });
  options.connections?.onChange?.(() => demand.connectionsChanged());
  const scaleOwners = new ScaleOwners({ api: kube, clock, random, log: say });
  scaleOwners.onChange(({ namespace, kind, name }) => {
    const workload = (kind === "StatefulSet" ? world.statefulSets : world.deployments).get(namespace, name);
    const pool = controller?.poolOf(workload?.metadata.labels[LABELS.instance] ?? "");
    if (pool !== undefined) controller?.wake(pool);
  });
  const targets = new Targets({
    ...{ api: kube, clock, random, log: say, owners: scaleOwners },
    documents: () => pools.list().map(({ document }) => document),
    onChange: (pool) => controller?.wake(pool),
  });
  const jobs = new JobCounter();
  const slots = new SlotsMonitor({
    driver,
    clock,
    onChange: (pool) => controller?.wake(pool),
    onJobs: (pool, outcome, count) => {
      jobs.count(pool, outcome, count);
      metrics.countJobs(pool, outcome, count);
    },
  });
  const memberStates = new MemberMonitor({ driver, clock, onChange: (pool) => controller?.wake(pool) });
  const leases = new Leases({
    store,
    clock,
    watch: leaseWatch,
    door: options.leaseDoor,
    onAhead: (pool, instance, epoch) => {
      witnesses.sawWriter(pool, instance, epoch);
      controller?.wake(pool);
    },
    ttlOf: (pool) => controller?.leaseTtlOf(pool) ?? null,
  });
  const executor = createExecutor({
    store,
    kube,
    driver,
    leases,
    nodeSeen: (name) => world.nodes.get(undefined, name),
    clock,
    random,
    log,
    onSettled: (pool) => controller?.wake(pool),
  });
  const capacity = new CapacityMonitor({ world, noticed: () => notices.findings(), clock });
  const evacuation = new EvacuationDesk({
    capacity: () => capacity.view(),
    onTurn: (pool) => controller?.wake(pool),
    onPlan: (plan, begun) => feedEvacuation(metrics, plan, begun),
    ...(options.absorption === undefined ? {} : { absorption: options.absorption }),
    ...(options.evacuationPolicy === undefined ? {} : { policy: options.evacuationPolicy }),
    log: say,
  });
  const probes = serverProbes({ clock });
  const retryProofs = new RetryProofs({
    ask: (process) => askRetryPolicy(probes, process),
    clock,
    onProven: (pool) => controller?.wake(pool),
    log: say,
  });
  const onPass = (pass: Pass) => {
    feedPass(metrics, pass, clock.now());
    retryProofs.observe(pass.snapshot);
    options.onPass?.(pass);
  };
  const podLosses = new PodLosses({
    world,
    poolOf: (instance) => controller?.poolOf(instance),
    ...podLossViews({ world, notices, clock, lastPass: (instance) => controller?.lastPass(controller.poolOf(instance) ?? "") }),
    onLoss: (pool, cause) => metrics.countPodLoss(pool, cause),
  });
  controller = new Controller({
    store,
    kube,
    executor,
    world,
    pools,
    gateways,
    witnesses,
    health,
    leases: leaseWatch,
    demand,
    slots,
    memberStates,
    proofs: options.proofs ?? retryProofs,
    targets,
    notices,
    capacity,
    evacuation,
    writer,
    clock,
    ids,
    members,
    freezes: options.freezes,
    log: say,
    ...(options.cluster === undefined ? {} : { cluster: options.cluster }),
    onPass,
    ...(options.readsEvents
      ? { placementTroubles: new PlacementTroubles({ api: kube, world, clock, onChange: (pool) => controller?.wake(pool), log: say }) }
      : {}),
    onLost: (pool) => {
      metrics.forgetPool(pool);
      retryProofs.forget(pool);
      podLosses.forget(pool);
      jobs.forget(pool);
    },
  });
  tellPools(journal, writer, pools);

  const started = controller;
  sizes = new DecidedSizes({ store, controller: started, pools });
  return {
    controller: started,
    sizes,
    notices: { desk: notices, heartbeats, stateOf: (machine) => machineStateOf(world, (each) => notices.knows(each), machine) },
    controlPlane: createControlPlane({
      controller: started,
      executor,
      store,
      kube,
      world,
      pools,
      gateways,
      witnesses,
      leases,
      notices,
      heartbeats,
      capacity,
      evacuation,
      podLosses,
      journal,
      members,
      freezes: options.freezes,
      jobs: (pool) => jobs.of(pool),
      proveEffect: (subject) => proveEffect(subject, { kube, sight: options.sight ?? NO_SIGHT, probes }),
      preflight: (document) =>
        preflight(document, {
          connections: options.connections ?? { find: () => undefined },
          adapters: options.demandAdapters ?? DEMAND_ADAPTERS,
          kube,
          clock,
          trino: { maySetState: askWorker(clock) },
        }),
      examine: examineOnce(
        clusterFacts({
          kube,
          clock,
          store,
          world,
          pools,
          members,
          capabilities: options.capabilities ?? [],
          ownNamespace: options.ownNamespace ?? null,
        }),
      ),
      clock,
      ids,
    }),
    handOver: () => started.handOver(),
    async close() {
      started.stop();
      notices.stop();
      await executor.close();
      await store.close();
    },
  };
}
