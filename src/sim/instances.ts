/**
 * Modelled instances: processes in modelled pods that speak the instance protocol, hold obligations, and end with their container. One process per address.
 */
import type { CallOutcome, InstanceCall, InstanceDriver, InstanceHealth, InstanceTarget } from "../drivers/port.ts";
import type { SimulatedContainer } from "../embedded/nodes/simulated-runtime.ts";
import type { Clock, Instant } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { Epoch } from "../kernel/epoch.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Identity, Obligations } from "../model/protocol.ts";
import type { Slots } from "../model/slots.ts";
import type { Stamp } from "../sdk/landing.ts";
import type { EventLog } from "./event-log.ts";
import type { Observe, TrueProcess } from "./events.ts";
import { SimulatedProcess } from "./process.ts";
import type { Writers } from "./writers.ts";

/** A request or a session that a process has taken. `ended` is called when its process ends before it. */
export interface Work {
  readonly kind: "request" | "session";
  readonly lost: () => void;
}

export interface InstanceProcess {
  readonly containerId: string;
  readonly podName: string;
  readonly podIP: string;
  readonly machine: string;
  readonly bootId: string;
  /** Monotonic ms. */
  readonly startedAt: number;
  readonly work: Set<Work>;
  readonly answers: Map<string, string>;
  /** Monotonic ms from which it can take work; undefined for never. */
  readonly readyAt: number | undefined;
  state: Identity["state"];
  admittedBy: string | null;
  deadline: Instant | null;
  isSick: boolean;
  /** Stands still, as after SIGSTOP: it neither hears nor ends anything. */
  isPaused: boolean;
  /** Once or more. */
  hasStoodStill: boolean;
  /** Its check passes, and it can take nothing. */
  isLying: boolean;
  /** Cut off from everybody but the landing of its results; it goes on. */
  isIsolated: boolean;
  /** Writes on with what it last wrote under, whatever became of its lease. */
  defiesLease: boolean;
  lastStamp: Stamp | null;
  /** What stands still with it. */
  readonly sim: SimulatedProcess;
  /** When its check was first passed, by whom it may be. */
  passedAt: Instant | null;
}

export interface InstancesOptions {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: EventLog;
  readonly observe: Observe;
  /** Behind a frozen machine nothing answers. */
  readonly isFrozen: (machineId: string) => boolean;
}

export class Instances implements InstanceDriver {
  readonly #options: InstancesOptions;
  readonly #processes = new Map<string, InstanceProcess>();
  #writers: Writers | undefined;
  #slotsOf: (process: InstanceProcess) => Slots | null = () => null;

  constructor(options: InstancesOptions) {
    this.#options = options;
  }

  all(): readonly InstanceProcess[] {
    return [...this.#processes.values()];
  }

  at(host: string): InstanceProcess | undefined {
    return this.#processes.get(host);
  }

  started(container: SimulatedContainer, readyAfterMs: number | undefined): void {
    const { clock, ids, log } = this.#options;
    const { podIP, start, machine } = container;
    log.add(`instance ${start.pod.name} starts at ${podIP}`);
    this.#processes.set(podIP, {
      containerId: start.id,
      podName: start.pod.name,
      podIP,
      machine: machine.machineId,
      bootId: ids.next("boot"),
      startedAt: clock.monotonic(),
      work: new Set(),
      answers: new Map(),
      readyAt: readyAfterMs === undefined ? undefined : clock.monotonic() + readyAfterMs,
      state: "starting",
      admittedBy: null,
      deadline: null,
      isSick: false,
      isPaused: false,
      hasStoodStill: false,
      isLying: false,
      isIsolated: false,
      defiesLease: false,
      lastStamp: null,
      sim: new SimulatedProcess(start.pod.name),
      passedAt: null,
    });
  }

  ended(container: SimulatedContainer): void {
    const process = this.#processes.get(container.podIP);
    if (process?.containerId !== container.start.id) return;
    this.#options.log.add(`instance ${process.podName} ends with ${process.work.size} obligations`);
    this.#options.observe({ type: "instance_ended", podName: process.podName, bootId: process.bootId, obligations: process.work.size });
    this.#processes.delete(container.podIP);
    this.#writers?.ended(process);
    process.sim.kill();
    for (const work of [...process.work]) work.lost();
  }

  pause(process: InstanceProcess): void {
    this.#options.log.add(`instance ${process.podName} stands still`);
    process.isPaused = true;
    process.hasStoodStill = true;
    process.sim.pause();
  }

  resume(process: InstanceProcess): void {
    this.#options.log.add(`instance ${process.podName} goes on`);
    process.isPaused = false;
    process.sim.resume();
  }

  /** Neither it nor its machine stands still or is cut off. */
  answers(process: InstanceProcess): boolean {
    return !process.isPaused && !process.isIsolated && !this.#options.isFrozen(process.machine);
  }

  /** For checkers. */
  truth(): readonly TrueProcess[] {
    return this.all().map((process) => {
      const { podName, bootId, hasStoodStill, defiesLease } = process;
      return { podName, bootId, answers: this.answers(process), isWell: this.#isWell(process), hasStoodStill, defiesLease };
    });
  }

  /** What its answers bear that begin now; null: none. */
  epochOf(process: InstanceProcess): Epoch | null {
    return this.#writers?.leaseOf(process)?.epoch() ?? null;
  }

  /** `namespace/name#ordinal`, as the process itself knows it; null: it never held a lease. */
  workloadOf(process: InstanceProcess): string | null {
    return this.#writers?.leaseOf(process)?.workload ?? null;
  }

  /** Who writes under leases; wired once the way to the controller is there. */
  useWriters(writers: Writers): void {
    this.#writers = writers;
  }

  /** What workers say of their slots; null: it is none. */
  useSlots(slotsOf: (process: InstanceProcess) => Slots | null): void {
    this.#slotsOf = slotsOf;
  }

  /** Null when it cannot take the work: a closed one says so, and has provably not taken it. */
  take(host: string, work: Work): InstanceProcess | "not_taken" | null {
    const process = this.#processes.get(host);
    if (process === undefined || process.isLying || !this.answers(process)) return null;
    if (process.state === "closed" || this.#writers?.leaseOf(process)?.refuses === true) return "not_taken";
    process.work.add(work);
    return process;
  }

  async identity(target: InstanceTarget): Promise<Identity> {
    const { podName, bootId, state, admittedBy } = this.#reach(target);
    return { protocol: "relevo/v1", instance: podName, bootId, state, admittedBy };
  }

  async health(target: InstanceTarget): Promise<InstanceHealth> {
    const process = this.#reach(target);
    const ok = this.#isWell(process);
    if (ok) process.passedAt ??= this.#options.clock.now();
    return { ok, bootId: process.bootId, reason: ok ? null : this.#whyUnwell(process) };
  }

  /** What a gateway replica's check of it finds, as a code; null when it passes. At once: such checks are the most frequent thing of all. */
  check(host: string, bootId: string | null): string | null {
    const process = this.#processes.get(host);
    if (process === undefined) return "connection_refused";
    if (!this.answers(process)) return "timeout";
    if (!this.#isWell(process)) return "status_503";
    process.passedAt ??= this.#options.clock.now();
    return bootId !== null && process.bootId !== bootId ? "boot_id_mismatch" : null;
  }

  async obligations(target: InstanceTarget): Promise<Obligations> {
    const { bootId, work } = this.#reach(target);
    if (target.bootId !== null && target.bootId !== bootId) throw refusal("boot_id_mismatch");
    const sessions = [...work].filter(({ kind }) => kind === "session").length;
    return { bootId, requests: work.size - sessions, upgraded: 0, transactions: sessions };
  }

  /** Services have none. */
  async slots(target: InstanceTarget): Promise<Slots | null> {
    return this.#slotsOf(this.#reach(target));
  }

  prepare(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    return this.#call("prepare", target, call, () => {});
  }

  admit(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    return this.#call("admit", target, call, (process) => {
      if (process.state === "draining" || process.state === "closed") throw refusal("wrong_state");
      process.state = "admitted";
      process.admittedBy = call.step;
      if (call.lease !== undefined) this.#writers?.admitted(process, call.lease);
    });
  }

  drain(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    return this.#call("drain", target, call, (process) => {
      if (process.state === "closed") return;
      process.state = "draining";
      if (call.deadline !== null) process.deadline = Math.min(process.deadline ?? call.deadline, call.deadline);
    });
  }

  close(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    return this.#call("close", target, call, (process) => {
      process.state = "closed";
    });
  }

  async #call(name: string, target: InstanceTarget, call: InstanceCall, perform: (process: InstanceProcess) => void): Promise<CallOutcome> {
    const { log, observe } = this.#options;
    const process = this.#reach(target);
    if (process.bootId !== call.bootId) throw refusal("boot_id_mismatch");
    const fingerprint = `${name} ${call.deadline}`;
    const known = process.answers.get(call.step);
    if (known !== undefined && known !== fingerprint) throw refusal("step_conflict");
    if (known === undefined) {
      perform(process);
      process.answers.set(call.step, fingerprint);
      log.add(`instance ${process.podName} ${name} ${call.step}`);
      observe({ type: "instance_performed", bootId: process.bootId, call: name, step: call.step });
    }
    return { kind: "answered", answer: { bootId: process.bootId, step: call.step, state: process.state } };
  }

  #reach({ host }: InstanceTarget): InstanceProcess {
    const process = this.#processes.get(host);
    if (process === undefined) throw new RelevoError("instance_unreachable", `nothing listens at ${host}`, { class: "retryable" });
    if (!this.answers(process)) throw new RelevoError("instance_timeout", "no answer in time", { class: "retryable" });
    return process;
  }

  #isWell(process: InstanceProcess): boolean {
    return process.state !== "closed" && !this.#isUnwell(process) && this.#writers?.leaseOf(process)?.refuses !== true;
  }

  /** As the SDK says it: one that only lacks its lease lacks nothing else. */
  #whyUnwell(process: InstanceProcess): string {
    const lease = process.state === "closed" || this.#isUnwell(process) ? undefined : this.#writers?.leaseOf(process);
    return lease?.reason ?? "unwell";
  }

  #isUnwell({ readyAt, isSick }: InstanceProcess): boolean {
    return isSick || readyAt === undefined || this.#options.clock.monotonic() < readyAt;
  }
}

function refusal(code: string): RelevoError {
  return new RelevoError(code, `the instance refuses: ${code}`, { class: "conflict" });
}
