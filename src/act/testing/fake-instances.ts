/** Processes that speak the instance protocol, without processes: the states and refusals of `relevo/v1`, one process per host. */
import type {
  CallOutcome,
  InstanceCall,
  InstanceDriver,
  InstanceHealth,
  InstanceTarget,
  MemberState,
  MemberTarget,
} from "../../drivers/port.ts";
import type { Instant } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import type { Slots } from "../../model/slots.ts";
import type { Identity } from "../../model/protocol.ts";

export interface FakeProcess {
  bootId: string;
  state: Identity["state"];
  admittedBy: string | null;
  isWell: boolean;
  deadline: Instant | null;
  /** Of a worker; null: it does not say. */
  slots: Omit<Slots, "bootId"> | null;
  readonly answers: Map<string, string>;
  /** Calls that had an effect, in order: a replayed one has none. */
  readonly performed: string[];
}

export class FakeInstances implements InstanceDriver {
  readonly processes = new Map<string, FakeProcess>();
  /** By host: what a member does that was told something; one that was not is active. */
  readonly memberStates = new Map<string, MemberState>();
  /** Calls of members that changed something, in order. */
  readonly memberCalls: string[] = [];

  boot(host: string, bootId: string): FakeProcess {
    const process: FakeProcess = {
      bootId,
      state: "ready",
      admittedBy: null,
      isWell: true,
      deadline: null,
      slots: null,
      answers: new Map(),
      performed: [],
    };
    this.processes.set(host, process);
    return process;
  }

  async identity(target: InstanceTarget): Promise<Identity | null> {
    if (target.protocol === "none") return null;
    const { bootId, state, admittedBy } = this.#at(target);
    return { protocol: "relevo/v1", instance: target.host, bootId, state, admittedBy };
  }

  async health(target: InstanceTarget): Promise<InstanceHealth> {
    const { bootId, isWell } = this.#at(target);
    return { ok: isWell, bootId, reason: isWell ? null : "unwell" };
  }

  async obligations(target: InstanceTarget) {
    return { bootId: this.#at(target).bootId, requests: 0, upgraded: 0, transactions: 0 };
  }

  async slots(target: InstanceTarget): Promise<Slots | null> {
    const { bootId, slots } = this.#at(target);
    return slots === null ? null : { ...slots, bootId };
  }

  async drainMember(target: MemberTarget, how: "reversible" | "final"): Promise<void> {
    const state = await this.memberState(target);
    const isThere = how === "final" ? state === "shutting_down" : state === "draining" || state === "drained";
    if (isThere) return;
    if (state === "shutting_down") throw refusal("wrong_state");
    this.#tell(target, how === "final" ? "shutting_down" : "draining");
  }

  async resumeMember(target: MemberTarget): Promise<void> {
    const state = await this.memberState(target);
    if (state === "shutting_down") throw refusal("wrong_state");
    if (state !== "active") this.#tell(target, "active");
  }

  async memberState({ host }: MemberTarget): Promise<MemberState> {
    return this.processes.has(host) ? (this.memberStates.get(host) ?? "active") : "gone";
  }

  #tell({ host }: MemberTarget, state: MemberState): void {
    this.memberStates.set(host, state);
    this.memberCalls.push(`${host} ${state}`);
  }

  prepare(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    return this.#call("prepare", target, call, (process) => {
      if (process.state === "draining" || process.state === "closed") throw refusal("wrong_state");
      if (process.state === "starting") process.state = "ready";
    });
  }

  admit(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    return this.#call("admit", target, call, (process) => {
      if (process.state === "draining" || process.state === "closed") throw refusal("wrong_state");
      process.state = "admitted";
      process.admittedBy = call.step;
    });
  }

  drain(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    return this.#call("drain", target, call, (process) => {
      if (process.state === "closed") throw refusal("wrong_state");
      process.state = "draining";
      process.deadline = call.deadline;
    });
  }

  close(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    return this.#call("close", target, call, (process) => {
      process.state = "closed";
    });
  }

  async #call(name: string, target: InstanceTarget, call: InstanceCall, perform: (process: FakeProcess) => void): Promise<CallOutcome> {
    if (target.protocol === "none") return { kind: "not_spoken" };
    const process = this.#at(target);
    if (process.bootId !== call.bootId) throw refusal("boot_id_mismatch");
    const fingerprint = `${name} ${call.deadline}`;
    const known = process.answers.get(call.step);
    if (known !== undefined && known !== fingerprint) throw refusal("step_conflict");
    if (known === undefined) {
      perform(process);
      process.answers.set(call.step, fingerprint);
      process.performed.push(`${name} ${call.step}`);
    }
    return { kind: "answered", answer: { bootId: call.bootId, step: call.step, state: process.state } };
  }

  #at({ host }: InstanceTarget): FakeProcess {
    const process = this.processes.get(host);
    if (process === undefined) throw new RelevoError("instance_unreachable", `Nothing listens at ${host}.`, { class: "retryable" });
    return process;
  }
}

function refusal(code: string): RelevoError {
  return new RelevoError(code, `The instance refuses: ${code}.`, { class: "conflict" });
}
