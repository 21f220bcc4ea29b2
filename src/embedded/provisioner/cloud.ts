/** The cloud beneath the provisioner: instances that boot, are interrupted, and go. It knows nothing of Kubernetes but the names of its machines' nodes. */
import type { Clock, Instant, Timer } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import type { Random } from "../../kernel/random.ts";
import type { CapacityType, Offering } from "./offerings.ts";

export interface Instance {
  /** `i-` and 17 hexadecimal digits. */
  readonly instanceId: string;
  /** `aws:///ZONE/INSTANCE`. */
  readonly providerID: string;
  readonly zone: string;
  readonly instanceType: string;
  readonly capacityType: CapacityType;
  readonly nodeName: string;
  readonly state: "running" | "gone";
  /** The image or configuration that it was started from is no longer the wanted one. */
  readonly isDrifted: boolean;
  /** When it will be taken; absent without a notice. */
  readonly takenAt?: Instant;
}

/** Starts and takes the processes of a machine. */
export interface Machines {
  boot(instance: Instance): Promise<void>;
  take(instance: Instance): Promise<void>;
}

export interface CloudOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly machines: Machines;
  /** Called after each change of an instance. */
  readonly changed: (instance: Instance) => void;
  readonly failed: (instance: Instance, error: unknown) => void;
}

export class Cloud {
  readonly #options: CloudOptions;
  readonly #instances = new Map<string, Instance>();
  readonly #timers = new Map<string, Timer[]>();
  readonly #counters = new Map<string, number>();

  constructor(options: CloudOptions) {
    this.#options = options;
  }

  launch({ zone, instanceType, capacityType }: Offering, bootDelayMs: number): Instance {
    let digits = "";
    while (digits.length < 17) digits += Math.floor(this.#options.random.next() * 16).toString(16);
    const instanceId = `i-${digits}`;
    const instance: Instance = {
      instanceId,
      providerID: `aws:///${zone}/${instanceId}`,
      zone,
      instanceType,
      capacityType,
      nodeName: this.#nextName(zone),
      state: "running",
      isDrifted: false,
    };
    this.#instances.set(instanceId, instance);
    this.#later(instanceId, bootDelayMs, () => this.#boot(instance));
    return instance;
  }

  /** By its providerID; undefined for one that this cloud never had. */
  byProviderID(providerID: string | undefined): Instance | undefined {
    return providerID === undefined ? undefined : this.#instances.get(providerID.slice(providerID.lastIndexOf("/") + 1));
  }

  /** How many of it run. */
  countOf({ zone, instanceType, capacityType }: Offering): number {
    let count = 0;
    for (const each of this.#instances.values())
      if (each.state === "running" && each.zone === zone && each.instanceType === instanceType && each.capacityType === capacityType)
        count += 1;
    return count;
  }

  /** The newest instance behind a node's name. */
  byNode(nodeName: string): Instance | undefined {
    return [...this.#instances.values()].findLast((instance) => instance.nodeName === nodeName);
  }

  setDrifted(instance: Instance, isDrifted: boolean): void {
    this.#update(instance.instanceId, { isDrifted });
  }

  /** The machine is taken at the deadline, whoever was told. */
  interrupt(instance: Instance, deadlineMs: number): Instance {
    const takenAt = this.#options.clock.now() + deadlineMs;
    const updated = this.#update(instance.instanceId, { takenAt });
    this.#later(
      instance.instanceId,
      deadlineMs,
      () => void this.take(instance).catch((error: unknown) => this.#options.failed(instance, error)),
    );
    return updated;
  }

  /** Ends the machine now, without a word to what runs on it. */
  async take(instance: Instance): Promise<void> {
    if (this.#instances.get(instance.instanceId)?.state !== "running") return;
    for (const timer of this.#timers.get(instance.instanceId) ?? []) timer.cancel();
    this.#timers.delete(instance.instanceId);
    const gone = this.#update(instance.instanceId, { state: "gone" });
    await this.#options.machines.take(gone);
  }

  /** A machine that was lost boots again, as the same instance. */
  restore(instance: Instance): void {
    this.#boot(this.#update(instance.instanceId, { state: "running" }));
  }

  forget(instance: Instance): void {
    this.#instances.delete(instance.instanceId);
  }

  close(): void {
    for (const timers of this.#timers.values()) for (const timer of timers) timer.cancel();
    this.#timers.clear();
  }

  #boot(instance: Instance): void {
    if (this.#instances.get(instance.instanceId)?.state !== "running") return;
    void this.#options.machines.boot(instance).catch((error: unknown) => this.#options.failed(instance, error));
  }

  #update(instanceId: string, change: Partial<Instance>): Instance {
    const before = this.#instances.get(instanceId);
    if (before === undefined) throw new RelevoError("instance_unknown", "The cloud has no such instance.", { found: instanceId });
    const after = { ...before, ...change };
    this.#instances.set(instanceId, after);
    this.#options.changed(after);
    return after;
  }

  #later(instanceId: string, delayMs: number, fire: () => void): void {
    const timers = this.#timers.get(instanceId) ?? [];
    timers.push(this.#options.clock.after(delayMs, fire));
    this.#timers.set(instanceId, timers);
  }

  /** `zone-a` gives `node-a1`, `node-a2` …; a name is never given twice. */
  #nextName(zone: string): string {
    const suffix = zone.slice(zone.lastIndexOf("-") + 1);
    const count = (this.#counters.get(suffix) ?? 0) + 1;
    this.#counters.set(suffix, count);
    return `node-${suffix}${count}`;
  }
}
