/** The simulated world, put together: the embedded cluster without HTTP and processes, a store in memory, gateway replicas, a controller, a client. */
import { createSimulatedCluster, type SimulatedCluster } from "../embedded/cluster.ts";
import { SimulatedRuntime } from "../embedded/nodes/simulated-runtime.ts";
import { RelevoError } from "../kernel/errors.ts";
import { integerBetween, type Random } from "../kernel/random.ts";
import { drainMicrotasks } from "../kernel/microtasks.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { DEPLOYMENTS, NAMESPACES, PODS, POOLS } from "../kube/resources.ts";
import type { KubeApi } from "../kube/api.ts";
import { LABELS } from "../model/marks.ts";
import { poolSchema, type PoolDocument } from "../model/pool.ts";
import { sizeOf } from "../plan/scaling/size-of.ts";
import type { PoolRows, Store } from "../store/port.ts";
import { openStore } from "../store/store.ts";
import { sharedStore } from "./shared-store.ts";
import { Client } from "./client.ts";
import { type ComposeController, Controllers, type Reach } from "./controllers.ts";
import { EventLog } from "./event-log.ts";
import type { Held, Observe, SimEvent, Truth, TrueJobs } from "./events.ts";
import type { CapacityRefusal } from "./faults.ts";
import { type ControllerLink, GatewayReplica } from "./gateway.ts";
import { Jobs } from "./jobs.ts";
import { type InstanceProcess, Instances } from "./instances.ts";
import { Mirror } from "./mirror.ts";
import { noTroubles, type Troubles } from "./ports.ts";
import { SimulatedProcess } from "./process.ts";
import { RewindableStore } from "./rewindable.ts";
import { drawScenario, type Scenario, type ScenarioPool } from "./scenario.ts";
import { seededIds, seededRandom } from "./seeded.ts";
import { Writers } from "./writers.ts";

export interface WorldOptions {
  readonly seed: number;
  readonly compose: ComposeController;
  readonly observe: (event: SimEvent, mirror: Mirror, truth: Truth) => void;
  /** Instead of the one that the seed draws. */
  readonly scenario?: Scenario;
  /** Between what is watched and what is real: for checks that the checkers can fail. */
  readonly tamper?: { readonly kube?: (api: KubeApi) => KubeApi; readonly store?: (store: Store) => Store };
}

export class World {
  readonly seed: number;
  readonly clock: VirtualClock;
  readonly log: EventLog;
  readonly scenario: Scenario;
  readonly random: Random;
  readonly cluster: SimulatedCluster;
  readonly runtime: SimulatedRuntime;
  readonly store: Store;
  readonly #rewindable: RewindableStore;
  readonly instances: Instances;
  /** Where there are several, the first one: most faults of a controller are its. */
  readonly controllers: Controllers;
  /** Each on a machine of its own; one alone has no election. */
  readonly replicas: readonly Controllers[];
  /** One per pool. */
  readonly clients: readonly Client[];
  readonly mirror = new Mirror();
  readonly troubles: Troubles;
  readonly faultCounts: Map<string, number>;
  readonly frozen: Set<string>;
  readonly gateways: (GatewayReplica | undefined)[] = [];
  readonly #observe: Observe;
  /** As parsed last, with what was parsed. */
  readonly #pools = new Map<string, { readonly spec: unknown; readonly document: PoolDocument }>();
  /** Of the first pool with `scale`; null: there is none. */
  readonly jobs: Jobs | null;
  /** Containers that shall never be ready. */
  bootFailures = 0;
  /** By zone: why the cloud launches no machine there. */
  readonly refusals = new Map<string, CapacityRefusal>();
  #replicas = 0;
  #calls = 0;
  /** By pool: the process that claimed it last. */
  readonly #owners = new Map<string, string>();

  static async create(options: WorldOptions): Promise<World> {
    const { seed } = options;
    const clock = new VirtualClock(undefined, drainMicrotasks);
    const scenario = options.scenario ?? drawScenario(seededRandom(seed, "scenario"));
    const random = seededRandom(seed, "world");
    const parts: { world?: World } = {};
    const log = new EventLog(clock);
    const frozen = new Set<string>();
    const observe: Observe = (event) => parts.world?.observe(event);
    const instances = new Instances({
      clock,
      ids: seededIds(seededRandom(seed, "instances")),
      log,
      observe,
      isFrozen: (machine) => frozen.has(machine),
    });
    const readyAfter = new Map<string, number | undefined>();
    const runtime = new SimulatedRuntime({
      clock,
      random,
      bootMs: 50,
      model: ({ id }) => {
        const fails = parts.world !== undefined && parts.world.takeBootFailure();
        const readyAfterMs = fails ? undefined : integerBetween(random, ...scenario.bootMs);
        readyAfter.set(id, readyAfterMs);
        return { startMs: 50, readyAfterMs, termMs: integerBetween(random, 10, 400) };
      },
      started: (container) => instances.started(container, readyAfter.get(container.start.id)),
      ended: (container) => instances.ended(container),
    });
    const cluster = await createSimulatedCluster({
      clock,
      random,
      ids: seededIds(random),
      runtime,
      nodes: scenario.nodes,
      zones: scenario.zones,
      bootDelayMs: scenario.nodeStartMs ?? 2_000,
      provisioner: { refuses: (zone) => parts.world?.refuse(zone) },
      kubelet: { heartbeatMs: 2_000, eagerProbeMs: 250 },
      controlPlane: { leaseGraceMs: 6_000, recordEvents: false },
    });
    const store = await openStore({ path: ":memory:" });
    return (parts.world = new World(options, { clock, scenario, random, log, frozen, instances, runtime, cluster, store }));
  }

  private constructor(
    options: WorldOptions,
    parts: Pick<World, "clock" | "scenario" | "random" | "log" | "frozen" | "instances" | "runtime" | "cluster" | "store">,
  ) {
    const { seed, compose, observe, tamper } = options;
    const { clock, scenario, log, frozen, instances, runtime, cluster, store } = parts;
    this.seed = seed;
    this.clock = clock;
    this.scenario = scenario;
    this.random = parts.random;
    this.log = log;
    this.frozen = frozen;
    this.instances = instances;
    this.runtime = runtime;
    this.cluster = cluster;
    this.#rewindable = new RewindableStore(store, clock);
    this.store = this.#rewindable.store;
    this.faultCounts = new Map();
    const took = (kind: string): void => void this.faultCounts.set(kind, (this.faultCounts.get(kind) ?? 0) + 1);
    this.troubles = noTroubles(took);
    const truth = this.#truth();
    this.#observe = (event) => {
      observe(event, this.mirror, truth);
      if (event.type === "claimed") this.mirror.epochs.set(event.authority.pool, event.authority.epoch);
      if (event.type === "claimed") this.#owners.set(event.authority.pool, event.process);
      if (event.type === "committed") for (const change of event.changes) this.mirror.apply(event.authority.pool, change);
    };
    const slots = Array.from({ length: scenario.replicas ?? 1 }, (_, slot) => slot);
    const controllersOf = (slot: number): Controllers =>
      new Controllers({
        slot,
        isShared: slots.length > 1,
        compose,
        seed,
        clock,
        api: tamper?.kube?.(cluster.api) ?? cluster.api,
        find: (ref) => cluster.store.find(ref),
        store: tamper?.store?.(this.store) ?? (slots.length > 1 ? sharedStore(this.store) : this.store),
        driver: instances,
        troubles: this.troubles,
        log,
        observe: (event) => this.observe(event),
        spotLeadMs: scenario.leadMs,
        jobs: this.jobs,
      });
    this.jobs = this.#makeJobs();
    this.controllers = controllersOf(0);
    this.replicas = [this.controllers, ...slots.slice(1).map(controllersOf)];
    instances.useWriters(
      new Writers({
        clock,
        random: seededRandom(seed, "writers"),
        log,
        observe: (event) => this.observe(event),
        renew: async (renewal) => {
          const sentAt = clock.now();
          const grant = await this.anyController().call((controlPlane) => controlPlane.renewLease(renewal));
          this.observe({ type: "lease_renewed", bootId: renewal.bootId, sentAt, ttlMs: grant.ttlMs });
          return grant;
        },
        isConnected: (process) => instances.answers(process),
      }),
    );
    this.clients = scenario.pools.map(
      ({ key, route }, index) =>
        new Client({
          clock,
          random: seededRandom(seed, index === 0 ? "client" : `client of ${key}`),
          route,
          replicas: () => this.gateways.flatMap((replica) => replica ?? []),
        }),
    );
  }

  #makeJobs(): Jobs | null {
    const pool = this.scenario.pools.find(({ scales }) => scales);
    if (pool === undefined) return null;
    const { clock, log, instances } = this;
    const isOfPool = ({ podName }: InstanceProcess): boolean => podName.startsWith(`${pool.name}-`);
    const serves = ({ podName }: InstanceProcess): boolean =>
      this.mirror.living(pool.key).some(({ id, phase }) => (phase === "serving" || phase === "draining") && podName.startsWith(`${id}-`));
    const workers = () =>
      instances
        .all()
        .filter(isOfPool)
        .map((process) => ({ process, answers: instances.answers(process), serves: serves(process) }));
    const random = seededRandom(this.seed, "jobs");
    const jobs = new Jobs({ clock, random, log, observe: (event) => this.observe(event), pool: pool.key, workers });
    instances.useSlots((process) => (isOfPool(process) ? jobs.slotsOf(process) : null));
    return jobs;
  }

  observe(event: SimEvent): void {
    this.#observe(event);
  }

  takeBootFailure(): boolean {
    if (this.bootFailures === 0) return false;
    this.bootFailures -= 1;
    this.troubles.took("boot_failure");
    return true;
  }

  refuse(zone: string): CapacityRefusal | undefined {
    const refusal = this.refusals.get(zone);
    if (refusal !== undefined) this.troubles.took("capacity_exhausted");
    return refusal;
  }

  /** An old backup is restored under everybody who runs; false when nothing is lost by it. */
  async rewindStore(byMs: number): Promise<boolean> {
    if (!(await this.#rewindable.rewind(byMs))) return false;
    const pools: PoolRows[] = [];
    for (const { key } of this.scenario.pools) {
      const rows = await this.rows(key);
      if (rows !== undefined) pools.push(rows);
    }
    this.mirror.rewind(pools);
    this.observe({ type: "store_rewound", pools });
    return true;
  }

  /** Everything up, and the pools applied. */
  async start(): Promise<void> {
    const { clock, cluster, scenario } = this;
    await clock.advanceUntil(() => cluster.provisioner.nodes().filter((node) => node.isReady).length >= scenario.nodes, 60_000);
    for (const name of new Set(scenario.pools.map(({ namespace }) => namespace)))
      if (name !== "default") await cluster.api.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
    for (const { document, namespace } of scenario.pools) await cluster.api.create(POOLS, document, { namespace });
    for (let slot = 0; slot < scenario.gateways; slot++) this.startGateway(slot);
    for (const replica of this.replicas) replica.start();
  }

  /** Which one a command for this instance is passed on to: the last that claimed its pool, or the first one. */
  ownerOf(instance: string): Controllers {
    const process = this.#owners.get(this.mirror.get(instance)?.pool ?? "");
    return this.replicas.find((replica) => replica.runs === process) ?? this.controllers;
  }

  /** One that is there, by turns; the first one when none is. */
  anyController(): Controllers {
    const up = this.replicas.filter(({ isThere }) => isThere);
    this.#calls += 1;
    return up[this.#calls % Math.max(1, up.length)] ?? this.controllers;
  }

  async close(): Promise<void> {
    await this.cluster.close();
    await this.store.close();
  }

  // ---- gateways

  startGateway(slot: number): void {
    const id = `gateway-${++this.#replicas}`;
    const process = new SimulatedProcess(id);
    const replica = new GatewayReplica({
      id,
      process,
      clock: this.clock,
      random: seededRandom(this.seed, id),
      ids: seededIds(seededRandom(this.seed, `${id} ids`)),
      links: this.replicas.map((controllers) => this.#linkOf(process, controllers)),
      instances: this.instances,
      log: this.log,
      observe: (event) => this.observe(event),
    });
    this.log.add(`${id} starts`);
    this.gateways[slot] = replica;
    replica.start();
  }

  killGateway(slot: number): boolean {
    const replica = this.gateways[slot];
    if (replica === undefined) return false;
    this.log.add(`${replica.id} dies`);
    this.gateways[slot] = undefined;
    replica.die();
    return true;
  }

  /** Its reports go where its stream goes. */
  #linkOf(process: SimulatedProcess, controllers: Controllers): ControllerLink {
    let reached: Reach | undefined;
    return {
      open: async (replica, line, closed) => {
        const reach = (reached = controllers.reach(replica));
        if (reach === undefined) throw new RelevoError("connection_refused", "nobody listens there", { class: "retryable" });
        const forget = reach.onDeath(closed);
        try {
          const link = await reach.call((controlPlane) => controlPlane.connectGateway(replica, line));
          process.onDeath(() => link.close());
        } catch (error) {
          forget();
          throw error;
        }
      },
      report: async (report) => reached?.call((controlPlane) => controlPlane.receiveReport(report)),
    };
  }

  // ---- what is true

  pool(key: string): PoolDocument | undefined {
    const [namespace = "", name = ""] = key.split("/");
    const object = this.cluster.store.find({ type: POOLS, namespace, name });
    if (object === undefined) return undefined;
    const spec = object["spec"];
    const known = this.#pools.get(key);
    if (known !== undefined && known.spec === spec) return known.document;
    const document = poolSchema.parse(object);
    this.#pools.set(key, { spec, document });
    return document;
  }

  rows(pool: string): Promise<PoolRows | undefined> {
    return this.store.readPool(pool);
  }

  /** Empty when all pools are as they should be; else what is not. */
  async whatIsMissing(): Promise<readonly string[]> {
    const missing: string[] = [];
    const known = new Set<string>();
    if (!this.replicas.every(({ isUp }) => isUp)) missing.push("no controller runs");
    for (const pool of this.scenario.pools) missing.push(...(await this.#whatPoolLacks(pool, known)));
    for (const { metadata } of this.cluster.store.list(DEPLOYMENTS).items)
      if (!known.has(metadata.labels?.[LABELS.instance] ?? "")) missing.push(`deployment ${metadata.name} belongs to nobody`);
    return missing;
  }

  /** `known` takes in the instances that there are. */
  async #whatPoolLacks({ key, route, scales }: ScenarioPool, known: Set<string>): Promise<readonly string[]> {
    const rows = await this.rows(key);
    if (rows === undefined) return [`the pool ${key} was never claimed`];
    const missing: string[] = this.pool(key) === undefined ? [`the pool ${key} is not there`] : [];
    const serving = rows.instances.filter(({ phase }) => phase === "serving");
    const spec = this.pool(key)?.spec;
    const desired = spec === undefined ? 0 : sizeOf({ spec, scale: rows.scale });
    if (scales && (this.jobs?.left ?? 0) > 0) missing.push(`${this.jobs?.left} jobs are left`);
    if (serving.length !== desired) missing.push(`${serving.length} serve and ${desired} are desired`);
    for (const { id, phase } of rows.instances) if (phase !== "serving" && phase !== "standby") missing.push(`${id} is ${phase}`);
    const standby = rows.instances.filter(({ phase }) => phase === "standby").length;
    const wanted = this.pool(key)?.spec.standby.count ?? 0;
    if (standby !== wanted) missing.push(`${standby} stand by and ${wanted} are wanted`);
    const writers = rows.workloads.filter(({ holder }) => serving.some(({ id }) => id === holder?.instance)).length;
    if (this.pool(key)?.spec.state.lease !== undefined && writers !== serving.length)
      missing.push(`${writers} write and ${serving.length} serve`);
    for (const { instance, reason } of rows.evidence) missing.push(`${instance} is condemned: ${reason}`);
    for (const { id, state, outcome } of rows.openSteps) missing.push(`step ${id} is ${state} (${outcome ?? "-"})`);
    for (const { id } of rows.instances) known.add(id);
    const routed = new Set(spec?.driver === "worker" ? [] : serving.map(({ id }) => id));
    for (const replica of this.gateways) missing.push(...whatReplicaLacks(replica, route, routed));
    for (const { subject, reason } of missing.length > 0 ? rows.reasons : []) missing.push(`reason ${subject}: ${reason.code}`);
    return missing;
  }

  /** Whether a gateway replica that runs still has something at the instance. */
  isHeld(instance: string): boolean {
    return this.scenario.pools.some(({ route }) =>
      this.gateways.some((replica) =>
        replica?.membership.routes
          .get(route)
          ?.members.some((member) => member.instance === instance && !member.gone && member.load.requests + member.load.sessions > 0),
      ),
    );
  }

  #trueJobs(): TrueJobs | null {
    const { jobs, troubles } = this;
    if (jobs === null) return null;
    const { worker, scale } = this.pool(jobs.pool)?.spec ?? {};
    if (worker === undefined || scale === undefined) return null;
    return jobs.truth(worker.stuckAfter, scale.stuck.share, troubles.driverErrors > 0 || troubles.isProberCut);
  }

  #truth(): Truth {
    return {
      now: () => this.clock.now(),
      pool: (key) => this.pool(key),
      pods: () => this.cluster.store.list(PODS).items,
      objects: (type) => this.cluster.store.list(type).items,
      epoch: (pool) => this.mirror.epochs.get(pool),
      jobs: () => this.#trueJobs(),
      held: (instance, incarnation) =>
        this.scenario.pools.flatMap(({ route }) =>
          this.gateways.flatMap((replica): Held[] => {
            const member = replica?.membership.find(route, instance, incarnation);
            if (replica === undefined || member === undefined || member.gone) return [];
            const { load, health, healthReason, state } = member;
            return [{ replica: replica.id, instance, incarnation, ...load, health, healthReason, state, isCutOff: replica.isCutOff }];
          }),
        ),
      processes: () => this.instances.truth(),
      isGatewayBlind: () => this.gateways.some((replica) => replica?.reachesNobody !== false),
    };
  }
}

function whatReplicaLacks(replica: GatewayReplica | undefined, route: string, serving: ReadonlySet<string>): readonly string[] {
  if (replica === undefined) return ["a gateway replica is down"];
  const members = replica.membership.routes.get(route)?.members ?? [];
  const routed = members.filter(({ state, health }) => state === "serving" && health === "passing").map(({ instance }) => instance);
  const isSame = routed.length === serving.size && routed.every((instance) => serving.has(instance));
  return isSame ? [] : [`${replica.id} routes to ${routed.join(", ") || "nobody"}`];
}
