/**
 * A whole controller in real time that reads demand from real servers with the production adapters and decides sizes from it. Its cluster and the workers' processes are
 * modelled in this process.
 */
import { composeController, type ComposedController } from "../../src/cli/processes/controller.ts";
import { ConnectionFile } from "../../src/demand/connection-file.ts";
import { connectionsSchema } from "../../src/demand/connections.ts";
import { createSimulatedCluster, type SimulatedCluster } from "../../src/embedded/cluster.ts";
import { DEFAULT_MODEL, SimulatedRuntime } from "../../src/embedded/nodes/simulated-runtime.ts";
import type { Clock } from "../../src/kernel/clock.ts";
import { systemClock, systemIds as ids, systemRandom as random } from "../../src/kernel/system.ts";
import type { KubeObjectDraft } from "../../src/kube/api.ts";
import { DEPLOYMENTS, POOLS } from "../../src/kube/resources.ts";
import type { DemandTrouble, DemandView } from "../../src/model/demand.ts";
import { createLogger } from "../../src/server/log.ts";
import { createMetrics } from "../../src/server/metrics.ts";
import { openStore } from "../../src/store/store.ts";
import type { Store } from "../../src/store/port.ts";
import { capturePool, workload } from "../integration/harness.ts";
import { ModelledInstances } from "../integration/modelled-instances.ts";

const NODES = 4;

export interface DecidingOptions {
  /** As in the file of connections. */
  readonly connections: readonly Readonly<Record<string, unknown>>[];
  /** By how much its wall clock is ahead of everybody else's. */
  readonly aheadMs?: number;
}

/** What is decided, and of what. */
export interface Decided {
  readonly size: number;
  readonly trouble: DemandTrouble | null;
}

export class DecidingController {
  /** From a container's start until it is ready: what was made is still coming. */
  readyAfterMs = 300;
  readonly #clock: Clock;
  readonly #cluster: SimulatedCluster;
  readonly #store: Store;
  readonly #composed: ComposedController;
  readonly #file: ConnectionFile;

  private constructor(clock: Clock, cluster: SimulatedCluster, store: Store, composed: ComposedController, file: ConnectionFile) {
    this.#clock = clock;
    this.#cluster = cluster;
    this.#store = store;
    this.#composed = composed;
    this.#file = file;
  }

  static async start({ connections, aheadMs = 0 }: DecidingOptions): Promise<DecidingController> {
    const clock: Clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
    const instances = new ModelledInstances();
    const made: { controller?: DecidingController } = {};
    const runtime = new SimulatedRuntime({
      ...{ clock, random, bootMs: 10 },
      model: () => ({ ...DEFAULT_MODEL, readyAfterMs: made.controller?.readyAfterMs ?? DEFAULT_MODEL.readyAfterMs }),
      started: (container) => {
        instances.started(container);
        const process = instances.processes.get(container.podIP);
        if (process !== undefined)
          process.slots = { flow: null, total: 2, busy: [], outcomes: { done: 0, nothing: 0, reaped: 0, failed: 0 } };
      },
      ended: (container) => instances.ended(container),
    });
    const provisioner = { maxNodes: NODES, disruptionIntervalMs: 86_400_000, consolidateAfterMs: 86_400_000 };
    const cluster = await createSimulatedCluster({ clock, random, ids, runtime, nodes: NODES, provisioner });
    const store = await openStore(":memory:");
    const { connections: all } = connectionsSchema.parse({ connections });
    const file = new ConnectionFile({ read: () => all, clock, log: () => undefined });
    const composed = composeController({
      ...{ kube: cluster.api, driver: instances, clock, random, ids, metrics: createMetrics(), store, connections: file },
      log: createLogger({ level: "fatal", name: "test", clock }),
    });
    await composed.controller.start();
    made.controller = new DecidingController(clock, cluster, store, composed, file);
    return made.controller;
  }

  async stop(): Promise<void> {
    this.#file.stop();
    const closed = this.#composed.close();
    await this.#cluster.close();
    await closed;
  }

  get controlPlane(): ComposedController["controlPlane"] {
    return this.#composed.controlPlane;
  }

  async follow(name: string, signal: object, flow: string, scale: object = {}, spec: object = {}): Promise<void> {
    const pool = capturePool(
      { signal, target: 1, up: { step: { instances: 100, per: "1s" } }, ...scale },
      { size: { desired: 1, floor: 1, max: 12 }, worker: { flow }, ...spec },
    );
    await this.#cluster.api.create(POOLS, { ...pool, metadata: { name, namespace: "default" } }, { namespace: "default" });
  }

  /** Beside the pools: what a Pool may be made to scale. */
  createDeployment(name: string, replicas: number): Promise<KubeObjectDraft> {
    return this.#cluster.api.create(DEPLOYMENTS, workload(name, {}, replicas), { namespace: "default" });
  }

  async replicasOf(name: string): Promise<unknown> {
    const { spec } = await this.#cluster.api.get({ type: DEPLOYMENTS, namespace: "default", name });
    return (spec as { readonly replicas: number }).replicas;
  }

  demand(name: string): DemandView | null {
    return this.#composed.controller.lastPass(`default/${name}`)?.snapshot.demand ?? null;
  }

  async decided(name: string): Promise<Decided> {
    const rows = await this.#store.readPool(`default/${name}`);
    return { size: rows?.scale?.desired ?? 1, trouble: this.demand(name)?.trouble?.code ?? null };
  }

  /** Instances by phase, those that are deleted left out. */
  async phases(name: string): Promise<readonly string[]> {
    return ((await this.#store.readPool(`default/${name}`))?.instances ?? []).map(({ phase }) => phase);
  }

  /** Lets real time pass. */
  pass(ms: number): Promise<void> {
    return this.#clock.sleep(ms);
  }
}
