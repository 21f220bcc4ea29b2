/**
 * A whole controller under a virtual clock: the production composition over the embedded cluster's own object store, controllers, scheduler and provisioner,
 * SQLite in memory, modelled gateway replicas and modelled processes. Level of what is shown with it: simulated.
 */
import type { FastifyInstance } from "fastify";
import { type ComposedController, composeController } from "../../src/cli/processes/controller.ts";
import { FreezeConfigs } from "../../src/control/freeze-config.ts";
import { countingIds, seededRandom } from "./chance.ts";
import { createSimulatedCluster, type SimulatedCluster } from "../../src/embedded/cluster.ts";
import type { ContainerStart } from "../../src/embedded/nodes/pod-runtime.ts";
import { type ContainerModel, DEFAULT_MODEL, SimulatedRuntime } from "../../src/embedded/nodes/simulated-runtime.ts";
import type { ProvisionerOptions } from "../../src/embedded/provisioner/options.ts";
import { VirtualClock } from "../../src/kernel/virtual-clock.ts";
import { LeaseTokens } from "../../src/lease/token.ts";
import type { KubeObject, KubeObjectDraft } from "../../src/kube/api.ts";
import { NODES, POOLS } from "../../src/kube/resources.ts";
import { spotInterruptionWarning } from "../../src/notices/eventbridge/compose.ts";
import type { DemandView } from "../../src/model/demand.ts";
import type { LeaseAccess } from "../../src/model/protocol.ts";
import type { Evidence } from "../../src/model/evidence.ts";
import type { InstanceRecord } from "../../src/model/instance.ts";
import type { StepRecord } from "../../src/model/step.ts";
import { createServer } from "../../src/server/app.ts";
import type { ControlPlane, PoolState } from "../../src/server/control-plane.ts";
import { createLogger } from "../../src/server/log.ts";
import { createMetrics } from "../../src/server/metrics.ts";
import { RENEW_PATH } from "../../src/server/routes/leases.ts";
import type { Store } from "../../src/store/port.ts";
import { openStore } from "../../src/store/store.ts";
import { intercept } from "./intercept.ts";
import type { Members } from "../../src/control/members.ts";
import { ModelledGateway } from "./modelled-gateway.ts";
import { ModelledInstances } from "./modelled-instances.ts";
import { ModelledWork } from "./modelled-work.ts";
import { type Granted, type LeaseAnswer, ModelledWriters } from "./modelled-writers.ts";
import { ObservedKube } from "./observed-kube.ts";

const LIMIT_MS = 60_000;
/** Conditions are looked at this often, and ever less often the longer it takes. */
const LOOK_MS = { first: 20, most: 500 };

export interface HarnessOptions {
  readonly seed?: number;
  readonly model?: (start: ContainerStart) => Partial<ContainerModel>;
  readonly provisioner?: Partial<ProvisionerOptions>;
  /** 4 unless said otherwise, in two zones: node-a1, node-a2, node-b1, node-b2. None is added and none is disrupted by the provisioner itself. */
  readonly nodes?: number;
  readonly gateways?: number;
  /** Stands between the controller and its store. */
  readonly store?: (store: Store) => Store;
  /** The controller's own namespace, whose ConfigMap may freeze all Pools; absent: no ConfigMap is looked for. */
  readonly freezesIn?: string;
  /** The controller alone when absent. */
  readonly members?: Members;
  /** A queue that worker pools take from. */
  readonly work?: { readonly pushes?: boolean };
}

interface Running {
  readonly composed: ComposedController;
  readonly http: FastifyInstance;
}

/** A controller that has not started yet. */
type Compose = () => Promise<Running>;

export class Harness {
  readonly clock: VirtualClock;
  readonly cluster: SimulatedCluster;
  readonly runtime: SimulatedRuntime;
  readonly instances: ModelledInstances;
  readonly kube: ObservedKube;
  readonly store: Store;
  http: FastifyInstance;
  /** With `options.work`. */
  readonly work: ModelledWork;
  readonly writers: ModelledWriters;
  readonly gateways: readonly ModelledGateway[];
  readonly log: readonly Readonly<Record<string, unknown>>[];
  readonly metrics: ReturnType<typeof createMetrics>;
  readonly #compose: Compose;
  #composed: ComposedController;

  private constructor(parts: {
    readonly clock: VirtualClock;
    readonly cluster: SimulatedCluster;
    readonly runtime: SimulatedRuntime;
    readonly instances: ModelledInstances;
    readonly kube: ObservedKube;
    readonly store: Store;
    readonly gateways: readonly ModelledGateway[];
    readonly log: readonly Readonly<Record<string, unknown>>[];
    readonly metrics: ReturnType<typeof createMetrics>;
    readonly work: ModelledWork;
    readonly compose: Compose;
    readonly running: Running;
  }) {
    this.clock = parts.clock;
    this.cluster = parts.cluster;
    this.runtime = parts.runtime;
    this.instances = parts.instances;
    this.kube = parts.kube;
    this.store = parts.store;
    this.http = parts.running.http;
    this.gateways = parts.gateways;
    this.log = parts.log;
    this.metrics = parts.metrics;
    this.work = parts.work;
    this.#compose = parts.compose;
    this.#composed = parts.running.composed;
    this.writers = new ModelledWriters(
      parts.clock,
      (access, bootId, granted) => this.#renew(access, bootId, granted),
      (bootId) => parts.instances.isRunning(bootId),
    );
    parts.instances.hasLapsed = (bootId) => this.writers.hasLapsed(bootId);
    parts.instances.onLease = (access, bootId) => this.writers.admitted(access, bootId);
  }

  async #renew(access: LeaseAccess, bootId: string, granted: Granted | null): Promise<LeaseAnswer> {
    const answer = await this.http.inject({
      method: "POST",
      url: access.url.slice("http://controller.invalid".length),
      headers: { authorization: `Bearer ${access.token}` },
      payload: { pool: access.pool, instance: access.instance, bootId, ...(granted ?? { epoch: null }) },
    });
    return { status: answer.statusCode, body: answer.json() };
  }

  static async start(options: HarnessOptions = {}): Promise<Harness> {
    const clock = new VirtualClock();
    const random = seededRandom(options.seed ?? 1);
    const ids = countingIds();
    const instances = new ModelledInstances();
    const runtime = new SimulatedRuntime({
      clock,
      random,
      bootMs: 10,
      model: (start) => ({ ...DEFAULT_MODEL, ...options.model?.(start) }),
      started: (container) => instances.started(container),
      ended: (container) => instances.ended(container),
    });
    const nodes = options.nodes ?? 4;
    const cluster = await createSimulatedCluster({
      clock,
      random,
      ids,
      runtime,
      nodes,
      provisioner: { maxNodes: nodes, disruptionIntervalMs: 86_400_000, consolidateAfterMs: 86_400_000, ...options.provisioner },
    });
    const areUp = (): boolean => cluster.provisioner.nodes().filter(({ isReady }) => isReady).length === nodes;
    if (!(await clock.advanceUntil(areUp, LIMIT_MS))) throw new Error("the nodes did not come up");

    const kube = new ObservedKube(cluster.api);
    const opened = await openStore({ path: ":memory:" });
    const store = options.store?.(opened) ?? opened;
    const log: Record<string, unknown>[] = [];
    const logger = createLogger({
      level: "debug",
      name: "test",
      clock,
      destination: { write: (line) => void log.push(JSON.parse(line) as Record<string, unknown>) },
    });
    const metrics = createMetrics();
    const leaseTokens = new LeaseTokens("key of the harness");
    const leaseDoor = { tokens: leaseTokens, url: () => `http://controller.invalid${RENEW_PATH}` };
    const work = new ModelledWork(clock);
    if (options.work !== undefined) work.start(instances);
    const demand = options.work && { connections: work.connections, demandAdapters: { queue: work.adapter(options.work) } };
    const compose: Compose = async () => {
      // The file outlives the process.
      const kept = intercept(store, ({ name }, go) => (name === "close" ? Promise.resolve() : go()));
      const freezes =
        options.freezesIn === undefined
          ? {}
          : { freezes: new FreezeConfigs({ api: kube, clock, random, log: () => undefined, ownNamespace: options.freezesIn }) };
      const ports = { kube, store: kept, driver: instances, clock, random, ids, log: logger, metrics, leaseDoor };
      const composed = composeController({
        ...ports,
        ...freezes,
        ...demand,
        ...(options.members === undefined ? {} : { members: options.members }),
      });
      const http = await createServer({
        options: { host: "127.0.0.1", token: null, webhookSecret: null, version: "0.0.0" },
        controlPlane: composed.controlPlane,
        metrics,
        log: logger,
        clock,
        leaseTokens,
      });
      return { composed, http };
    };
    const running = await compose();
    const gateways = Array.from({ length: options.gateways ?? 1 }, (_, index) => new ModelledGateway(`gw-${index + 1}`, clock, instances));
    const harness = new Harness({ clock, cluster, runtime, instances, kube, store, gateways, log, metrics, work, compose, running });
    await harness.#start();
    return harness;
  }

  async close(): Promise<void> {
    this.writers.stop();
    await this.#stop();
    await this.store.close();
    await this.cluster.close();
  }

  /** Another process over the same store and cluster, after a while without one. `meanwhile` is done while there is none. */
  async restartController(
    downMs: number,
    meanwhile: () => Promise<void> = () => Promise.resolve(),
    { gateways = true }: { readonly gateways?: boolean } = {},
  ): Promise<void> {
    await this.#stop();
    await this.clock.advance(downMs);
    await meanwhile();
    const { composed, http } = await this.#compose();
    this.#composed = composed;
    this.http = http;
    await this.#start(gateways);
  }

  async #start(gateways = true): Promise<void> {
    const started = this.#composed.controller.start();
    await this.clock.advance(100);
    await started;
    if (gateways) for (const gateway of this.gateways) await gateway.connect(this.#composed.controlPlane);
    await this.clock.advance(100);
  }

  async #stop(): Promise<void> {
    for (const gateway of this.gateways) gateway.cutOff();
    await this.http.close();
    const closed = this.#composed.close();
    await this.clock.advance(10_000);
    await closed;
  }

  get controlPlane(): ControlPlane {
    return this.#composed.controlPlane;
  }

  // ---- time

  pass(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  /** Lets time pass until it holds; fails when it does not within the limit, saying what the pool gives as its reasons. */
  async until(sentence: string, holds: () => boolean | Promise<boolean>, limitMs = LIMIT_MS): Promise<void> {
    const start = this.clock.now();
    for (;;) {
      if (await holds()) return;
      const elapsedMs = this.clock.now() - start;
      if (elapsedMs >= limitMs) throw new Error(`not within ${limitMs} ms: ${sentence}\n${JSON.stringify(await this.pictures(), null, 1)}`);
      await this.clock.advance(Math.min(LOOK_MS.most, Math.max(LOOK_MS.first, Math.floor(elapsedMs / 20))));
    }
  }

  // ---- what is asked of it

  /** Applies the pool and waits until all of it serves. */
  async serve(pool: KubeObjectDraft = ordersPool()): Promise<readonly InstanceRecord[]> {
    const { namespace, name } = await this.apply(pool);
    const { desired } = (pool.spec as { readonly size: { readonly desired: number } }).size;
    await this.untilServing(desired, `${namespace}/${name}`);
    return this.serving(`${namespace}/${name}`);
  }

  async untilServing(count: number, pool = "default/orders", limitMs = LIMIT_MS): Promise<void> {
    await this.until(`${count} serve`, async () => (await this.serving(pool)).length === count, limitMs);
  }

  async apply(pool: KubeObjectDraft): Promise<{ readonly namespace: string; readonly name: string }> {
    const { namespace = "default", name = "" } = pool.metadata ?? {};
    await this.cluster.api.create(POOLS, pool, { namespace });
    return { namespace, name };
  }

  async shrink(desired: number, name = "orders"): Promise<void> {
    await this.cluster.api.patch({ type: POOLS, namespace: "default", name }, { spec: { size: { desired } } });
  }

  async setMode(mode: "Off" | "Observe" | "Act", name = "orders"): Promise<void> {
    await this.cluster.api.patch({ type: POOLS, namespace: "default", name }, { spec: { disruption: { mode } } });
  }

  /** As its source would send it; answers the status and the body. */
  async notify(body: string | Buffer, source = "eventbridge"): Promise<{ readonly status: number; readonly body: unknown }> {
    const answer = await this.http.inject({
      method: "POST",
      url: `/v1/notices/${source}`,
      headers: { "content-type": "application/json" },
      payload: body,
    });
    await this.clock.settle();
    return { status: answer.statusCode, body: answer.json() };
  }

  /** An EC2 spot interruption warning about this machine. */
  warn(machineId: string, id = "event-1"): Promise<{ readonly status: number; readonly body: unknown }> {
    return this.notify(spotInterruptionWarning({ id: `${id}-${machineId}`, at: this.clock.now(), machineId }));
  }

  // ---- what happens to nodes

  /** A machine that registers itself: no provisioner made it and none owns it. */
  async startUnownedNode(name: string, zone = "zone-a"): Promise<void> {
    const labels = { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone };
    const started = this.cluster.fleet.start({
      name,
      providerID: "",
      labels,
      taints: [],
      capacity: { cpu: "4", memory: "8Gi", pods: "110" },
    });
    await this.pass(1_000);
    await started;
  }

  drift(node: string): Promise<void> {
    return this.cluster.provisioner.drift(node);
  }

  clearDrift(node: string): Promise<void> {
    return this.cluster.provisioner.drift(node, { clear: true });
  }

  /** Somebody else's `kubectl cordon`. */
  async cordon(node: string, isCordoned = true): Promise<void> {
    await this.cluster.api.patch({ type: NODES, name: node }, { spec: { unschedulable: isCordoned ? true : null } });
  }

  machineOf(node: string): string {
    const found = this.cluster.provisioner.nodes().find(({ name }) => name === node);
    if (found?.instanceId === undefined) throw new Error(`no machine of ${node}`);
    return found.instanceId;
  }

  node(name: string): Promise<KubeObject> {
    return this.cluster.api.get({ type: NODES, name });
  }

  /** The process at this address ends by itself. */
  crash(host: string | null): void {
    const container = this.instances.containerAt(host ?? "");
    if (container === undefined) throw new Error(`no process at ${host}`);
    this.runtime.crash(container, 1);
  }

  // ---- what can be seen

  pool(pool = "default/orders"): Promise<PoolState> {
    return this.controlPlane.findPool(pool).then((state) => {
      if (state === undefined) throw new Error(`no pool ${pool}`);
      return state;
    });
  }

  /** All that are not deleted, in order of their making. */
  async records(pool = "default/orders"): Promise<readonly InstanceRecord[]> {
    return (await this.store.readPool(pool))?.instances ?? [];
  }

  async serving(pool = "default/orders"): Promise<readonly InstanceRecord[]> {
    return (await this.records(pool)).filter(({ phase }) => phase === "serving");
  }

  async instance(id: string, pool = "default/orders"): Promise<InstanceRecord> {
    const found = (await this.store.listInstances(pool, 1_000)).find((record) => record.id === id);
    if (found === undefined) throw new Error(`no instance ${id}`);
    return found;
  }

  async phase(id: string, pool = "default/orders"): Promise<string> {
    return (await this.instance(id, pool)).phase;
  }

  /** What the last pass saw of the pool's demand. */
  demand(pool: string): DemandView | null {
    return this.#composed.controller.lastPass(pool)?.snapshot.demand ?? null;
  }

  /** When the controller last looked at the pool. */
  lastPassAt(pool = "default/orders"): number {
    return this.#composed.controller.lastPass(pool)?.at ?? 0;
  }

  evidence(pool = "default/orders"): Promise<readonly Evidence[]> {
    return this.store.listEvidence(pool, 1_000);
  }

  steps(pool = "default/orders"): Promise<readonly StepRecord[]> {
    return this.store.listSteps(pool, 1_000);
  }

  /** `subject code`, sorted. */
  async reasons(pool = "default/orders"): Promise<readonly string[]> {
    return ((await this.store.readPool(pool))?.reasons ?? []).map(({ subject, reason }) => `${subject} ${reason.code}`.trim()).toSorted();
  }

  async pictures(): Promise<readonly unknown[]> {
    return Promise.all((await this.store.listPools()).map((pool) => this.picture(pool)));
  }

  async picture(pool = "default/orders"): Promise<unknown> {
    return {
      instances: (await this.records(pool)).map(
        ({ id, phase, replaces, incarnation }) => `${id} ${phase} on ${incarnation.nodeName} for ${replaces}`,
      ),
      evidence: (await this.evidence(pool)).map(({ instance, reason, loss }) => `${instance} ${loss} ${reason}`),
      openSteps: (await this.steps(pool)).filter(({ state }) => state === "unknown").map(({ id, outcome }) => `${id} ${outcome}`),
      reasons: await this.reasons(pool),
      troubles: this.log.filter(({ level }) => level === "error" || level === "warn").slice(-10),
    };
  }
}

export interface PoolInput {
  readonly name?: string;
  readonly namespace?: string;
  readonly desired?: number;
  readonly mode?: "Off" | "Observe" | "Act";
  readonly size?: Readonly<Record<string, unknown>>;
  readonly disruption?: Readonly<Record<string, unknown>>;
  /** How many are kept warm. */
  readonly standby?: number;
  readonly priority?: "critical" | "standard" | "batch";
  /** Of the lead's pod. */
  readonly pod?: Readonly<Record<string, unknown>>;
  /** With a writer lease of this TTL. */
  readonly lease?: string;
  readonly route?: string;
  /** Beside the lead. */
  readonly objects?: readonly KubeObjectDraft[];
}

export function ordersPool(input: PoolInput = {}): KubeObjectDraft {
  const {
    name = "orders",
    namespace = "default",
    desired = 2,
    mode = "Act",
    size = {},
    disruption = {},
    standby = 0,
    pod = {},
    objects = [],
    lease,
  } = input;
  return {
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name, namespace },
    spec: {
      driver: "service",
      size: { desired, ...size },
      disruption: { mode, ...disruption },
      ...(lease === undefined ? {} : { state: { lease: { ttl: lease } } }),
      ...(standby === 0 ? {} : { standby: { count: standby } }),
      ...(input.route === undefined ? {} : { traffic: { route: input.route } }),
      ...(input.priority === undefined ? {} : { priority: input.priority }),
      blueprint: { objects: [workload("$(relevo.instance)", pod), ...objects] },
    },
  };
}

/** Workers that take from the modelled queue: one instance for each two jobs, in steps that a test can wait for. */
export function capturePool(scale: Readonly<Record<string, unknown>> = {}, spec: Readonly<Record<string, unknown>> = {}): KubeObjectDraft {
  return {
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name: "capture", namespace: "default" },
    spec: {
      driver: "worker",
      size: { desired: 1, floor: 1, max: 6 },
      worker: { flow: "queue/captures", stuckAfter: "10s" },
      scale: {
        signal: { kind: "queue", connection: "main", queue: "captures" },
        target: 2,
        pollEvery: "1s",
        up: { step: { instances: 10, percent: 100, per: "5s" } },
        down: { window: "10s", step: { instances: 10, per: "5s" } },
        cooldown: "5s",
        ...scale,
      },
      disruption: { mode: "Off" },
      blueprint: { objects: [workload("$(relevo.instance)")] },
      ...spec,
    },
  };
}

/** A Deployment whose pods spread over nodes. */
export function workload(name: string, pod: Readonly<Record<string, unknown>> = {}, replicas = 1): KubeObjectDraft {
  const labels = { app: name };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 2,
          containers: [
            {
              name: "main",
              image: "example",
              command: ["run"],
              ports: [{ containerPort: 8080 }],
              readinessProbe: { httpGet: { port: 8080 }, periodSeconds: 1 },
            },
          ],
          ...pod,
        },
      },
    },
  };
}

/** Where a pod must land. */
export function inZone(zone: string): Readonly<Record<string, unknown>> {
  return { nodeSelector: { "topology.kubernetes.io/zone": zone } };
}
