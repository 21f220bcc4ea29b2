/** Lets one planned fault happen in the world, and heals it when its time is over. A fault that finds nothing to act upon is not counted. */
import type { NodeSummary } from "../embedded/provisioner/provisioner.ts";
import type { Instant } from "../kernel/clock.ts";
import { isRetryable, RelevoError } from "../kernel/errors.ts";
import { isNotFound, type KubeObject } from "../kube/api.ts";
import { NODE_CLAIMS, NODES, PODS, POOLS } from "../kube/resources.ts";
import { spotInterruptionWarning } from "../notices/eventbridge/compose.ts";
import type { Fault } from "./faults.ts";
import type { InstanceProcess } from "./instances.ts";
import type { ScenarioPool } from "./scenario.ts";
import type { World } from "./world.ts";

const SENDER_RETRY_MS = 1_000;
const SENDER_TRIES = 30;

export class Injector {
  readonly #world: World;
  /** What ends a fault that lasts; each is called once. */
  readonly #healers = new Set<() => void>();
  #notices = 0;
  #poolTurns = 0;
  /** When the last thing that is under way and cannot be called back has happened. */
  quietAt: Instant = 0;

  constructor(world: World) {
    this.#world = world;
  }

  inject(fault: Fault): void {
    this.#world.log.add(`fault ${JSON.stringify(fault)}`);
    void this.#inject(fault).then(
      (happened) => happened && this.#world.troubles.took(fault.kind),
      (error: unknown) => {
        if (!(error instanceof RelevoError)) throw error;
        this.#world.log.add(`fault ${fault.kind} finds nothing: ${error.code}`);
      },
    );
  }

  /** Ends what still lasts. */
  heal(): void {
    for (const heal of [...this.#healers]) heal();
    this.#world.controllers.disarm();
  }

  /** Evidence that waits is acted upon only in mode Act. */
  async turnOn(): Promise<void> {
    for (const pool of this.#world.scenario.pools) await this.#patchPool(pool, { disruption: { mode: "Act" } });
  }

  /** The pools by turns. */
  #nextPool(): ScenarioPool {
    const { pools } = this.#world.scenario;
    const pool = pools[this.#poolTurns++ % pools.length];
    if (pool === undefined) throw new RelevoError("no_pool", "there is no pool");
    return pool;
  }

  /** True when it happened; false when it is counted where it takes effect, or does not. */
  async #inject(fault: Fault): Promise<boolean> {
    const { cluster, controllers, clock } = this.#world;
    switch (fault.kind) {
      case "node_drift": {
        const { name } = this.#node(fault.pick);
        await cluster.provisioner.drift(name);
        if (fault.clearsAfterMs !== null)
          this.#until(fault.clearsAfterMs, () => void cluster.provisioner.drift(name, { clear: true }).catch(() => undefined));
        return true;
      }
      case "node_deletion": {
        const { claim } = this.#node(fault.pick);
        if (claim === undefined) return false;
        await cluster.api.delete({ type: NODE_CLAIMS, name: claim });
        return true;
      }
      case "node_death":
        return this.#kill(fault);
      case "node_frozen":
        return this.#freeze(fault.pick, fault.forMs);
      case "spot_notice":
        return this.#interrupt(fault);
      case "unknown_machine_notice":
        this.#post(spotInterruptionWarning({ id: this.#noticeId(), at: clock.now(), machineId: "i-00000000000000000" }));
        return true;
      case "malformed_notice":
        this.#post(MALFORMED[fault.variant] ?? "");
        return true;
      case "boot_failure":
        this.#world.bootFailures += fault.containers;
        this.#until(60_000, () => (this.#world.bootFailures = 0));
        return false;
      case "process_crash": {
        const process = this.#process(fault.pick);
        this.#world.runtime.crash(process.containerId, 1);
        return true;
      }
      case "process_sick":
        return this.#sicken(this.#process(fault.pick), fault.forMs);
      case "api_errors":
        return this.#trouble("apiErrors", fault.share, fault.forMs);
      case "lost_replies":
        return this.#trouble("lostReplies", fault.share, fault.forMs);
      case "conflicts":
        return this.#trouble("conflicts", fault.share, fault.forMs);
      case "driver_errors":
        return this.#trouble("driverErrors", fault.share, fault.forMs);
      case "store_failing":
        return this.#trouble("storeFailures", fault.share, fault.forMs);
      case "watch_break":
        controllers.kube?.breakWatches(fault.how);
        return controllers.kube !== undefined;
      case "controller_crash":
        return controllers.crash(fault.afterCalls, fault.side, fault.downMs);
      case "deposed":
        this.#world.observe({
          type: "claimed",
          process: "somebody else",
          authority: await this.#world.store.claim(this.#nextPool().key, "somebody else", clock.now()),
        });
        return true;
      case "gateway_silent":
        return this.#silence(fault.pick, fault.forMs);
      case "gateway_restart": {
        const slot = Math.floor(fault.pick * this.#world.gateways.length);
        if (!this.#world.killGateway(slot)) return false;
        this.#until(fault.downMs, () => this.#world.startGateway(slot));
        return true;
      }
      case "mode_off": {
        const pool = this.#nextPool();
        await this.#patchPool(pool, { disruption: { mode: "Off" } });
        this.#until(fault.forMs, () => void this.#patchPool(pool, { disruption: { mode: "Act" } }));
        return true;
      }
      case "resize": {
        const pool = this.#nextPool();
        const { desired } = pool;
        await this.#patchPool(pool, { size: { desired: Math.max(1, desired + fault.by) } });
        this.#until(fault.forMs, () => void this.#patchPool(pool, { size: { desired } }));
        return true;
      }
      case "watch_lag":
        this.#world.troubles.watchLagMs = fault.lagMs;
        this.#until(fault.forMs, () => (this.#world.troubles.watchLagMs = 0));
        return false;
      case "pod_deletion": {
        const { namespace, name, uid } = this.#pod(fault.pick).metadata;
        await cluster.api.delete({ type: PODS, namespace, name }, { preconditions: { uid } });
        return true;
      }
      case "operator_drain": {
        const serving = this.#world.mirror.living().filter(({ phase }) => phase === "serving");
        const instance = serving[Math.floor(fault.pick * serving.length)]?.id;
        if (instance === undefined) return false;
        await controllers.call((controlPlane) => controlPlane.drain({ instance, by: "an operator", why: "a test" }));
        return true;
      }
      case "freeze": {
        const until = clock.now() + fault.forMs;
        const pool = this.#nextPool();
        await controllers.call((controlPlane) => controlPlane.freeze(pool.key, { until, why: "a test", by: "an operator" }));
        return true;
      }
      case "foreign_cordon":
        return this.#cordon(this.#node(fault.pick).name, fault.forMs);
      default:
        return fault satisfies never;
    }
  }

  // ---- nodes

  /** Those that carry an instance first. */
  #node(share: number): NodeSummary {
    const nodes = this.#world.cluster.provisioner.nodes().filter(({ isDeleting }) => !isDeleting);
    const carrying = nodes.filter(({ pods }) => pods > 0);
    const from = carrying.length > 0 ? carrying : nodes;
    const node = from[Math.floor(share * from.length)];
    if (node === undefined) throw new RelevoError("no_node", "there is no node");
    return node;
  }

  async #kill(fault: Extract<Fault, { kind: "node_death" }>): Promise<boolean> {
    const { cluster } = this.#world;
    const { name } = this.#node(fault.pick);
    await cluster.provisioner.kill(name);
    const { returnsAfterMs, sameUid } = fault;
    if (returnsAfterMs !== null)
      this.#until(
        returnsAfterMs,
        () =>
          void cluster.provisioner.returnNode(name, { sameUid }).then(
            () => this.#world.log.add(`node ${name} returns`),
            () => undefined, // it has vanished already
          ),
      );
    return true;
  }

  async #freeze(share: number, forMs: number): Promise<boolean> {
    const { cluster, runtime, frozen } = this.#world;
    const machine = cluster.fleet.machine(this.#node(share).name);
    if (machine === undefined) return false;
    frozen.add(machine.machineId);
    runtime.setFrozen(machine, true);
    this.#until(forMs, () => {
      frozen.delete(machine.machineId);
      runtime.setFrozen(machine, false);
    });
    return true;
  }

  async #cordon(name: string, forMs: number): Promise<boolean> {
    const { api, store } = this.#world.cluster;
    const ref = { type: NODES, name };
    const seen = store.get(ref);
    if ((seen["spec"] as { readonly unschedulable?: boolean } | undefined)?.unschedulable === true) return false;
    await api.patch(ref, { spec: { unschedulable: true }, metadata: { annotations: { "example.com/cordoned-by": "an operator" } } });
    const { uid } = seen.metadata;
    this.#until(
      forMs,
      () =>
        void api.patch(ref, { metadata: { uid }, spec: { unschedulable: null } }).catch((error: unknown) => {
          if (!isNotFound(error)) this.#world.log.add("a foreign cordon stays: its node is another one");
        }),
    );
    return true;
  }

  // ---- notices

  async #interrupt(fault: Extract<Fault, { kind: "spot_notice" }>): Promise<boolean> {
    const { cluster, clock, scenario } = this.#world;
    const { instanceId, region, account } = cluster.provisioner.interrupt(this.#node(fault.pick).name, { deadlineMs: scenario.leadMs });
    const body = spotInterruptionWarning({ id: this.#noticeId(), at: clock.now(), machineId: instanceId, region, account });
    this.quietAt = Math.max(this.quietAt, clock.now() + Math.max(scenario.leadMs, fault.delayMs) + 2_000);
    for (let copy = 0; copy < fault.copies; copy++) clock.after(fault.delayMs + copy * 300, () => this.#post(body));
    return true;
  }

  #noticeId(): string {
    return `event-${++this.#notices}`;
  }

  /** As AWS does: sends it again until it is taken or refused. */
  #post(body: string, tries = SENDER_TRIES): void {
    const { controllers, clock, log } = this.#world;
    controllers
      .call((controlPlane) => controlPlane.receiveNotice({ source: "eventbridge", body, headers: {} }))
      .then(
        (receipt) => log.add(`notice taken: ${JSON.stringify(receipt)}`),
        (error: unknown) => {
          log.add(`notice refused: ${error instanceof RelevoError ? error.code : String(error)}`);
          if (isRetryable(error) && tries > 1) clock.after(SENDER_RETRY_MS, () => this.#post(body, tries - 1));
          else if (!(error instanceof RelevoError)) this.#world.observe({ type: "unhandled", error: String(error) });
        },
      );
  }

  // ---- processes

  #process(share: number): InstanceProcess {
    const all = this.#world.instances.all();
    const process = all[Math.floor(share * all.length)];
    if (process === undefined) throw new RelevoError("no_process", "no instance runs");
    return process;
  }

  #sicken(process: InstanceProcess, forMs: number): boolean {
    process.isSick = true;
    this.#world.runtime.setHealthy(process.containerId, false);
    this.#until(forMs, () => {
      process.isSick = false;
      this.#world.runtime.setHealthy(process.containerId, true);
    });
    return true;
  }

  #pod(share: number): KubeObject {
    const pods = this.#world.cluster.store.list(PODS).items;
    const pod = pods[Math.floor(share * pods.length)];
    if (pod === undefined) throw new RelevoError("no_pod", "there is no pod");
    return pod;
  }

  #silence(share: number, forMs: number): boolean {
    const replica = this.#world.gateways[Math.floor(share * this.#world.gateways.length)];
    if (replica === undefined) return false;
    replica.isCutOff = true;
    this.#until(forMs, () => (replica.isCutOff = false));
    return true;
  }

  async #patchPool({ key, namespace, name }: ScenarioPool, spec: object): Promise<void> {
    await this.#world.cluster.api.patch({ type: POOLS, namespace, name }, { spec });
    this.#world.log.add(`pool ${key} ${JSON.stringify(spec)}`);
  }

  #trouble(name: "apiErrors" | "lostReplies" | "conflicts" | "driverErrors" | "storeFailures", share: number, forMs: number): false {
    const { troubles } = this.#world;
    troubles[name] = Math.max(troubles[name], share);
    this.#until(forMs, () => (troubles[name] = 0));
    return false;
  }

  #until(afterMs: Instant, end: () => void): void {
    const heal = (): void => {
      if (!this.#healers.delete(heal)) return;
      timer.cancel();
      end();
    };
    const timer = this.#world.clock.after(afterMs, heal);
    this.#healers.add(heal);
  }
}

const MALFORMED = [
  "{ half a",
  JSON.stringify({ id: "x", source: "", "detail-type": "EC2 Spot Instance Interruption Warning", detail: {} }),
  JSON.stringify({ id: "y", source: "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning", time: "yesterday", detail: {} }),
  "[]",
];
