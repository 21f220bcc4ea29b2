/** The pod runtime of the simulator and of tests: machines and containers are entries in a table, their times come from a model. */
import type { Clock, Timer } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import type { Random } from "../../kernel/random.ts";
import { AddressSpace, type NodeAddresses } from "./addresses.ts";
import type {
  ActionResult,
  ContainerExit,
  ContainerStart,
  Machine,
  PodIdentity,
  PodRuntime,
  PodSandbox,
  ResolvedAction,
} from "./pod-runtime.ts";

/** How a container behaves. */
export interface ContainerModel {
  /** From the order to start until it runs. */
  readonly startMs: number;
  /** From running until its probes succeed; undefined for never. */
  readonly readyAfterMs: number | undefined;
  /** From SIGTERM to its end; undefined when it ignores the signal. */
  readonly termMs: number | undefined;
  /** Ends by itself after this long, with this code. */
  readonly exits?: { readonly afterMs: number; readonly code: number };
}

export const DEFAULT_MODEL: ContainerModel = { startMs: 100, readyAfterMs: 500, termMs: 50 };

export interface SimulatedContainer {
  readonly start: ContainerStart;
  readonly machine: Machine;
  readonly podIP: string;
  readonly startedAt: number;
}

export interface SimulatedRuntimeOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** How long a machine takes to boot. */
  readonly bootMs?: number | ((machine: Machine) => number);
  readonly model?: (start: ContainerStart) => ContainerModel;
  /** Called when a container runs, and when it ends for whatever reason: the workload's own model hangs here. */
  readonly started?: (container: SimulatedContainer) => void;
  readonly ended?: (container: SimulatedContainer) => void;
}

interface Entry extends SimulatedContainer {
  readonly model: ContainerModel;
  readonly exited: (exit: ContainerExit) => void;
  readonly timers: Timer[];
  isHealthy: boolean;
}

interface MachineEntry {
  readonly addresses: NodeAddresses;
  readonly sandboxes: Map<string, PodSandbox>;
  readonly containers: Map<string, Entry>;
  readonly died: () => void;
  isFrozen: boolean;
  /** What waits for the end of a partition, in order. */
  readonly held: (() => void)[];
}

const SIGNALS = { SIGKILL: 9, SIGTERM: 15 };

export class SimulatedRuntime implements PodRuntime {
  readonly #options: SimulatedRuntimeOptions;
  readonly #space: AddressSpace;
  readonly #machines = new Map<string, MachineEntry>();

  constructor(options: SimulatedRuntimeOptions) {
    this.#options = options;
    this.#space = new AddressSpace(options.random);
  }

  /** What runs now, over all machines. */
  containers(): readonly SimulatedContainer[] {
    return [...this.#machines.values()].flatMap((machine) => [...machine.containers.values()]);
  }

  /** Ends one container from inside. */
  crash(containerId: string, exitCode: number): void {
    const entry = this.#find(containerId);
    if (entry !== undefined) this.#end(entry, { exitCode, signal: undefined });
  }

  /** Lets its probes fail, or succeed again. */
  setHealthy(containerId: string, isHealthy: boolean): void {
    const entry = this.#find(containerId);
    if (entry !== undefined) entry.isHealthy = isHealthy;
  }

  /** A machine that hears and answers nothing although everything on it runs: a network partition. What it was told meanwhile it does afterwards. */
  setFrozen(machine: Machine, isFrozen: boolean): void {
    const entry = this.#machines.get(machine.machineId);
    if (entry === undefined) return;
    entry.isFrozen = isFrozen;
    if (!isFrozen) for (const act of entry.held.splice(0)) act();
  }

  async boot(machine: Machine, died: () => void): Promise<void> {
    const { bootMs = 0, clock } = this.#options;
    this.#machines.set(machine.machineId, {
      addresses: this.#space.node(),
      sandboxes: new Map(),
      containers: new Map(),
      died,
      isFrozen: false,
      held: [],
    });
    const takesMs = typeof bootMs === "number" ? bootMs : bootMs(machine);
    if (takesMs > 0) await clock.sleep(takesMs);
    this.#machine(machine); // it may have been taken meanwhile
  }

  hostIP(machine: Machine): string | undefined {
    return this.#machines.get(machine.machineId)?.addresses.hostIP;
  }

  async kill(machine: Machine): Promise<void> {
    const entry = this.#machines.get(machine.machineId);
    if (entry === undefined) return;
    this.#machines.delete(machine.machineId);
    entry.died();
    for (const container of entry.containers.values()) {
      for (const timer of container.timers) timer.cancel();
      this.#options.ended?.(container);
    }
  }

  async isAlive(machine: Machine): Promise<boolean> {
    return this.#machines.get(machine.machineId)?.isFrozen === false;
  }

  async createSandbox(machine: Machine, pod: PodIdentity): Promise<PodSandbox> {
    const entry = this.#machine(machine);
    const known = entry.sandboxes.get(pod.uid);
    if (known !== undefined) return known;
    const sandbox = {
      podIP: entry.addresses.allocate(),
      hostIP: entry.addresses.hostIP,
      dir: `/simulated/${pod.uid}`,
      portMap: new Map<number, number>(),
    };
    entry.sandboxes.set(pod.uid, sandbox);
    return sandbox;
  }

  async removeSandbox(machine: Machine, pod: PodIdentity): Promise<void> {
    const entry = this.#machines.get(machine.machineId);
    const sandbox = entry?.sandboxes.get(pod.uid);
    if (entry === undefined || sandbox === undefined) return;
    entry.sandboxes.delete(pod.uid);
    entry.addresses.release(sandbox.podIP);
  }

  async start(machine: Machine, start: ContainerStart, exited: (exit: ContainerExit) => void): Promise<void> {
    const { clock, model: modelOf = () => DEFAULT_MODEL } = this.#options;
    const model = modelOf(start);
    if (model.startMs > 0) await clock.sleep(model.startMs);
    await this.#reachable(machine);
    const home = this.#machine(machine);
    const podIP = home.sandboxes.get(start.pod.uid)?.podIP ?? "";
    const entry: Entry = { start, machine, podIP, startedAt: clock.monotonic(), model, exited, timers: [], isHealthy: true };
    home.containers.set(start.id, entry);
    const { exits } = model;
    if (exits !== undefined)
      entry.timers.push(clock.after(exits.afterMs, () => this.#end(entry, { exitCode: exits.code, signal: undefined })));
    this.#options.started?.(entry);
  }

  signal(machine: Machine, containerId: string, signal: "SIGTERM" | "SIGKILL"): void {
    const home = this.#machines.get(machine.machineId);
    const entry = home?.containers.get(containerId);
    if (home === undefined || entry === undefined) return;
    if (home.isFrozen) return void home.held.push(() => this.signal(machine, containerId, signal));
    if (signal === "SIGKILL") return this.#end(entry, { exitCode: 128 + SIGNALS.SIGKILL, signal: SIGNALS.SIGKILL });
    const { termMs } = entry.model;
    if (termMs !== undefined)
      entry.timers.push(this.#options.clock.after(termMs, () => this.#end(entry, { exitCode: 0, signal: undefined })));
  }

  async act(machine: Machine, containerId: string, _action: ResolvedAction, _timeoutMs: number): Promise<ActionResult> {
    const home = this.#machines.get(machine.machineId);
    const entry = home?.containers.get(containerId);
    const readyAfterMs = entry?.model.readyAfterMs;
    const ok =
      home?.isFrozen === false &&
      entry !== undefined &&
      entry.isHealthy &&
      readyAfterMs !== undefined &&
      this.#options.clock.monotonic() >= entry.startedAt + readyAfterMs;
    return { ok, message: ok ? "" : "not healthy" };
  }

  #end(entry: Entry, exit: ContainerExit): void {
    const home = this.#machines.get(entry.machine.machineId);
    if (home?.containers.delete(entry.start.id) !== true) return;
    for (const timer of entry.timers) timer.cancel();
    this.#options.ended?.(entry);
    if (home.isFrozen) home.held.push(() => entry.exited(exit));
    else entry.exited(exit);
  }

  async #reachable(machine: Machine): Promise<void> {
    const home = this.#machine(machine);
    if (home.isFrozen) await new Promise<void>((resolve) => home.held.push(resolve));
  }

  #find(containerId: string): Entry | undefined {
    for (const machine of this.#machines.values()) {
      const found = machine.containers.get(containerId);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #machine(machine: Machine): MachineEntry {
    const entry = this.#machines.get(machine.machineId);
    if (entry === undefined) throw new RelevoError("machine_gone", `The machine of node ${machine.name} is gone.`);
    return entry;
  }
}
