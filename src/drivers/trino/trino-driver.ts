/**
 * A Trino cluster as an instance: its coordinator is asked, and nothing is told to it, for there is no call that it understands. Its workers are told by
 * themselves.
 *
 * 1. A check costs two small GETs and no SQL: a cluster is looked at each second.
 * 2. Prepared is a cluster whose declared workers are all active *and* have run a task: a pod that is ready may not have announced itself (T12).
 * 3. Its obligations are what the engine says: queries that have not ended, but for our own looks, and transactions that are open. An answer that may hide some
 *    is none.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../kernel/clock.ts";
import { isRetryable, RelevoError } from "../../kernel/errors.ts";
import type { Obligations } from "../../model/protocol.ts";
import type { Slots } from "../../model/slots.ts";
import { bootIdOf } from "../../model/trino.ts";
import { authorityOf, faultOf } from "../faults.ts";
import type {
  CallOutcome,
  Identity,
  InstanceCall,
  InstanceDriver,
  InstanceHealth,
  InstanceTarget,
  MemberState,
  MemberTarget,
} from "../port.ts";
import { getOnce } from "../service/get-once.ts";
import { type NodeInfo, parseInfo } from "./answers.ts";
import { type Engine, engineAt } from "./engine.ts";
import { parseGauges } from "./gauges.ts";
import { ACTIVE_WORKERS } from "../../model/trino.ts";
import { TrinoHttp } from "./http.ts";
import { ObligationReader } from "./obligations.ts";
import { proveWorkers } from "./prove-workers.ts";
import { type Worker, workerAt, type WorkerState } from "./worker.ts";

const CONNECT_LIMIT_MS = 1_000;
const READ_LIMIT_MS = 2_000;
/** Of `/v1/info`, and of the one gauge: a server that does not filter sends 870 KB, of which no more than this is taken. */
const BYTES_MAX = 64 * 1024;
/** A drain looks four times a second; so old the number of workers may be. Less than the time between two checks otherwise. */
const GAUGE_REMEMBERED_MS = 800;
/** A server that does not show the gauge is not asked each second. */
const GAUGE_AGAIN_MS = 60_000;
const REMEMBERED_MAX = 10_000;

const MEMBER_STATES: Readonly<Record<WorkerState, MemberState>> = {
  ACTIVE: "active",
  INACTIVE: "gone",
  DRAINING: "draining",
  DRAINED: "drained",
  SHUTTING_DOWN: "shutting_down",
};

export class TrinoDriver implements InstanceDriver {
  readonly #clock: Clock;
  readonly #http: TrinoHttp;
  readonly #reads = new Set<Socket>();
  readonly #obligations: ObligationReader;
  /** By address: how many workers are active, undefined where the server does not say, and until when that is believed. */
  readonly #gauges = new Map<string, { readonly workers: number | undefined; readonly until: number }>();

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
    this.#http = new TrinoHttp(clock);
    this.#obligations = new ObligationReader(clock);
  }

  async identity(target: InstanceTarget): Promise<Identity> {
    const info = await this.#info(target);
    return {
      protocol: "trino/v1",
      instance: info.nodeId,
      bootId: bootIdIn(info, target),
      state: info.isStarting ? "starting" : "ready",
      admittedBy: null, // the engine keeps no step: an admission whose answer was lost is told again, which changes nothing
    };
  }

  async health(target: InstanceTarget): Promise<InstanceHealth> {
    const workersDeclared = target.trino?.workers ?? 0;
    const [info, workers] = await Promise.all([this.#info(target), workersDeclared > 0 ? this.#activeWorkers(target) : undefined]);
    if (!info.isCoordinator || info.coordinatorId === null) return { ok: false, bootId: null, reason: "not_a_coordinator" };
    const bootId = bootIdOf(info.nodeId, info.coordinatorId);
    const reason = info.isStarting ? "starting" : workers === 0 ? "no_active_worker" : null;
    return { ok: reason === null, bootId, reason };
  }

  obligations(target: InstanceTarget): Promise<Obligations> {
    return this.#obligations.read(this.#engine(target), target);
  }

  /** Its concurrency is the engine's own affair. */
  async slots(): Promise<Slots | null> {
    return null;
  }

  async prepare(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    const info = await this.#meant(target, call);
    if (info.isStarting)
      throw new RelevoError("trino_starting", `The coordinator at ${authorityOf(target)} is still starting.`, { class: "retryable" });
    await proveWorkers(this.#engine(target), { target, coordinator: info, http: this.#http });
    return { kind: "answered", answer: { bootId: call.bootId, step: call.step, state: "ready" } };
  }

  async admit(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    await this.#meant(target, call);
    return { kind: "answered", answer: { bootId: call.bootId, step: call.step, state: "admitted" } };
  }

  /** The gateways send it nothing new, and it finishes what it has: there is nothing that it must hear. */
  async drain(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    await this.#meant(target, call);
    return { kind: "answered", answer: { bootId: call.bootId, step: call.step, state: "draining" } };
  }

  /** A coordinator has no door. */
  async close(): Promise<CallOutcome> {
    return { kind: "not_spoken" };
  }

  async drainMember(target: MemberTarget, how: "reversible" | "final"): Promise<void> {
    const worker = this.#worker(target);
    const state = await worker.state();
    if (state === "SHUTTING_DOWN" && how === "final") return;
    if ((state === "DRAINING" || state === "DRAINED") && how === "reversible") return;
    await worker.setState(how === "final" ? "SHUTTING_DOWN" : "DRAINING");
  }

  async resumeMember(target: MemberTarget): Promise<void> {
    const worker = this.#worker(target);
    if ((await worker.state()) !== "ACTIVE") await worker.setState("ACTIVE");
  }

  async memberState(target: MemberTarget): Promise<MemberState> {
    try {
      return MEMBER_STATES[await this.#worker(target).state()];
    } catch (error) {
      if (error instanceof RelevoError && error.code === "instance_unreachable" && error.found === "ECONNREFUSED") return "gone";
      throw error;
    }
  }

  /** Frees the sockets; the driver cannot be used afterwards. */
  async destroy(): Promise<void> {
    for (const socket of this.#reads) socket.destroy();
    await this.#http.destroy();
  }

  /** Of the process that the call means. */
  async #meant(target: InstanceTarget, call: InstanceCall): Promise<NodeInfo> {
    const info = await this.#info(target);
    assertSame(bootIdIn(info, target), call.bootId, target);
    return info;
  }

  #engine(target: InstanceTarget): Engine {
    return engineAt({ base: baseOf(target), user: userOf(target), clock: this.#clock, http: this.#http });
  }

  #worker(target: MemberTarget): Worker {
    return workerAt({ base: baseOf(target), user: userOf(target), clock: this.#clock, http: this.#http });
  }

  async #info(target: InstanceTarget): Promise<NodeInfo> {
    const { status, text } = await this.#get(target, "/v1/info");
    if (status >= 500)
      throw new RelevoError("instance_failed", `Trino at ${authorityOf(target)} failed.`, {
        class: "retryable",
        found: `status ${status}`,
      });
    if (status !== 200)
      throw new RelevoError("instance_answer_invalid", `What listens at ${authorityOf(target)} is no Trino.`, {
        found: `status ${status}`,
      });
    return parseInfo(text, authorityOf(target));
  }

  /** Undefined: the server does not say. Only that it says none counts against it; that there were enough was proven before its admission. */
  async #activeWorkers(target: InstanceTarget): Promise<number | undefined> {
    const address = authorityOf(target);
    const known = this.#gauges.get(address);
    if (known !== undefined && this.#clock.monotonic() < known.until) return known.workers;
    const { workers, believedMs } = await this.#gauge(target);
    if (this.#gauges.size >= REMEMBERED_MAX) this.#gauges.clear();
    this.#gauges.set(address, { workers, until: this.#clock.monotonic() + believedMs });
    return workers;
  }

  async #gauge(target: InstanceTarget): Promise<{ readonly workers: number | undefined; readonly believedMs: number }> {
    try {
      const { status, text } = await this.#get(target, `/metrics?name[]=${ACTIVE_WORKERS}`, { "x-trino-user": userOf(target) });
      const workers = status === 200 ? parseGauges(text, [ACTIVE_WORKERS]).get(ACTIVE_WORKERS) : undefined;
      if (workers === undefined) return { workers, believedMs: status >= 500 ? 0 : GAUGE_AGAIN_MS };
      // That there are none is never remembered: the first one that is back counts.
      return { workers, believedMs: workers === 0 ? 0 : GAUGE_REMEMBERED_MS };
    } catch (error) {
      // A coordinator that answers is not condemned for one number. A server that does not filter sends far too much: it is not asked again soon.
      return { workers: undefined, believedMs: isRetryable(error) ? 0 : GAUGE_AGAIN_MS };
    }
  }

  async #get(target: InstanceTarget, path: string, headers: Readonly<Record<string, string>> = {}) {
    try {
      return await getOnce({
        host: target.host,
        port: target.port,
        path,
        headers,
        authority: authorityOf(target),
        connectLimitMs: CONNECT_LIMIT_MS,
        limitMs: READ_LIMIT_MS,
        answerBytesMax: BYTES_MAX,
        clock: this.#clock,
        sockets: this.#reads,
      });
    } catch (error) {
      throw faultOf(error, authorityOf(target), READ_LIMIT_MS);
    }
  }
}

function bootIdIn({ nodeId, coordinatorId, isCoordinator }: NodeInfo, target: InstanceTarget): string {
  if (isCoordinator && coordinatorId !== null) return bootIdOf(nodeId, coordinatorId);
  throw new RelevoError("instance_answer_invalid", `What runs at ${authorityOf(target)} is no coordinator.`, {
    found: isCoordinator ? `the coordinator ${nodeId} without a coordinatorId` : `the worker ${nodeId}`,
    todo: "Let service.component lead to the coordinator, of Trino 4xx that gives a coordinatorId in /v1/info.",
  });
}

function assertSame(found: string, meant: string, target: InstanceTarget): void {
  if (found !== meant)
    throw new RelevoError("boot_id_mismatch", `Another coordinator answers at ${authorityOf(target)}.`, {
      class: "conflict",
      found,
      allowed: meant,
    });
}

function baseOf(target: MemberTarget): string {
  return `http://${authorityOf(target)}`;
}

/** Header values have no line breaks: a document with one is refused before. */
function userOf({ trino }: MemberTarget): string {
  return (trino?.user ?? "relevo").replaceAll(/[^\x20-\x7e]/g, "");
}
