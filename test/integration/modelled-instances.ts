/** Processes that speak the instance protocol without being processes: one for each container that the simulated runtime runs, at its pod's address. */
import { FakeInstances } from "../../src/act/testing/fake-instances.ts";
import type { CallOutcome, InstanceCall, InstanceHealth, InstanceTarget } from "../../src/drivers/port.ts";
import type { SimulatedContainer } from "../../src/embedded/nodes/simulated-runtime.ts";
import { RelevoError } from "../../src/kernel/errors.ts";
import type { LeaseAccess, Obligations } from "../../src/model/protocol.ts";

export class ModelledInstances extends FakeInstances {
  /** Hosts whose process says that it is not well. */
  readonly unwell = new Set<string>();
  /** Hosts that answer nothing although their process runs. */
  readonly unreachable = new Set<string>();
  /** By host: what the process itself says is unfinished. */
  readonly unfinished = new Map<string, number>();
  /** Hosts whose cluster is not whole yet, as its coordinator sees it. */
  readonly unprepared = new Set<string>();
  /** Calls of this name have their effect and lose their reply. */
  losing: (name: "admit" | "drain" | "close", call: InstanceCall) => boolean = () => false;
  /** Told of each admission that hands out a writer lease. */
  onLease: (access: LeaseAccess, bootId: string) => void = () => undefined;
  /** Whether a process, by boot id, had a writer lease and has it no more: it says so to whoever asks for its health. */
  hasLapsed: (bootId: string) => boolean = () => false;
  #boots = 0;
  readonly #containers = new Map<string, string>();

  started({ start, podIP }: SimulatedContainer): void {
    this.#containers.set(podIP, start.id);
    this.boot(podIP, `boot-${++this.#boots}`);
  }

  ended({ start, podIP }: SimulatedContainer): void {
    if (this.#containers.get(podIP) !== start.id) return;
    this.#containers.delete(podIP);
    this.processes.delete(podIP);
    this.unfinished.delete(podIP);
    this.unwell.delete(podIP);
    this.memberStates.delete(podIP);
  }

  /** Why a check of it fails, as a gateway says it; null when it passes. */
  troubleAt(host: string): string | null {
    if (!this.processes.has(host)) return "connection_refused";
    if (this.unreachable.has(host)) return "timeout";
    return this.unwell.has(host) || this.#isLapsed(host) ? "status_503" : null;
  }

  #isLapsed(host: string): boolean {
    return this.hasLapsed(this.processes.get(host)?.bootId ?? "");
  }

  isRunning(bootId: string): boolean {
    return [...this.processes].some(([host, process]) => process.bootId === bootId && !this.unreachable.has(host));
  }

  containerAt(host: string): string | undefined {
    return this.#containers.get(host);
  }

  override async health(target: InstanceTarget): Promise<InstanceHealth> {
    this.#reach(target);
    const { bootId } = await super.health(target);
    if (this.unwell.has(target.host)) return { ok: false, bootId, reason: "unwell" };
    return this.#isLapsed(target.host) ? { ok: false, bootId, reason: "lease_lapsed: not renewed" } : { ok: true, bootId, reason: null };
  }

  override async obligations(target: InstanceTarget): Promise<Obligations> {
    this.#reach(target);
    return { ...(await super.obligations(target)), requests: this.unfinished.get(target.host) ?? this.#busyAt(target.host) };
  }

  override async prepare(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    this.#reach(target);
    if (this.unprepared.has(target.host))
      throw new RelevoError("trino_workers_missing", `Of the cluster at ${target.host} not all workers are active.`, {
        class: "retryable",
      });
    return super.prepare(target, call);
  }

  override async admit(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    this.#reach(target);
    const outcome = await super.admit(target, call);
    if (call.lease !== undefined) this.onLease(call.lease, call.bootId);
    return this.#reply("admit", call, outcome);
  }

  override async drain(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    this.#reach(target);
    return this.#reply("drain", call, await super.drain(target, call));
  }

  override async close(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    this.#reach(target);
    return this.#reply("close", call, await super.close(target, call));
  }

  /** Each busy slot of a worker is one obligation. */
  #busyAt(host: string): number {
    return this.processes.get(host)?.slots?.busy.length ?? 0;
  }

  #reply(name: "admit" | "drain" | "close", call: InstanceCall, outcome: CallOutcome): CallOutcome {
    if (this.losing(name, call)) throw new RelevoError("instance_timeout", "The reply was lost.", { class: "retryable" });
    return outcome;
  }

  #reach({ host }: InstanceTarget): void {
    if (this.unreachable.has(host)) throw new RelevoError("instance_timeout", `${host} does not answer.`, { class: "retryable" });
  }
}
