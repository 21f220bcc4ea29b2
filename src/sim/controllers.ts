/** The controller as a simulated process: composed by the production composition, started again after each death, as its supervisor would. */
import type { Connections } from "../demand/availability.ts";
import type { DemandAdapters } from "../demand/registry.ts";
import type { InstanceDriver } from "../drivers/port.ts";
import type { LeaseDoor } from "../control/leases.ts";
import { electedMembers, type Members } from "../control/members.ts";
import type { Clock, Instant } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Random } from "../kernel/random.ts";
import type { KubeApi, KubeObject, ObjectRef } from "../kube/api.ts";
import { LeaseTokens } from "../lease/token.ts";
import type { Plan } from "../plan/decision.ts";
import type { EvacuationPolicy } from "../plan/evacuation/policy.ts";
import { planEvacuation } from "../plan/evacuation/schedule.ts";
import type { PoolSnapshot } from "../plan/snapshot.ts";
import type { ControlPlane } from "../server/control-plane.ts";
import type { Logger } from "../server/log.ts";
import { createMetrics, type Metrics } from "../server/metrics.ts";
import type { Store } from "../store/port.ts";
import type { EventLog } from "./event-log.ts";
import type { Observe } from "./events.ts";
import type { Jobs } from "./jobs.ts";
import { type BreakableKube, simulatedDriver, simulatedKube, simulatedStore, type Troubles } from "./ports.ts";
import { type Side, SimulatedProcess } from "./process.ts";
import { seededIds, seededRandom } from "./seeded.ts";

/** What the production composition takes and gives (`composeController`): handed in, because what composes lies outside. */
export interface ControllerParts {
  readonly kube: KubeApi;
  readonly store: Store;
  readonly driver: InstanceDriver;
  readonly clock: Clock;
  readonly random: Random;
  readonly ids: Ids;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly spotLeadMs?: number;
  readonly leaseDoor?: LeaseDoor;
  readonly members?: Members;
  readonly onPass?: (pass: { readonly snapshot: PoolSnapshot; readonly plan: Plan; readonly at: Instant }) => void;
  readonly evacuationPolicy?: EvacuationPolicy;
  readonly connections?: Connections;
  readonly demandAdapters?: DemandAdapters;
}

export interface RunnableController {
  readonly controller: { start(): Promise<void>; stop(): void };
  readonly controlPlane: ControlPlane;
  handOver(): Promise<void>;
}

export type ComposeController = (parts: ControllerParts) => RunnableController;

export interface ControllersOptions {
  /** Which one of several. */
  readonly slot: number;
  /** There are several: each holds a Lease. */
  readonly isShared: boolean;
  readonly compose: ComposeController;
  readonly seed: number;
  readonly clock: Clock;
  readonly api: KubeApi;
  readonly find: (ref: ObjectRef) => KubeObject | undefined;
  readonly store: Store;
  readonly driver: InstanceDriver;
  readonly troubles: Troubles;
  readonly log: EventLog;
  readonly observe: Observe;
  readonly spotLeadMs: number;
  /** Of the pool that scales; null: there is none. */
  readonly jobs: Jobs | null;
}

interface Running {
  readonly process: SimulatedProcess;
  readonly composed: RunnableController;
  readonly kube: BreakableKube;
}

/** One that is no longer the one that others reach: until it is let go on, and until its supervisor ends it. */
export interface FormerController {
  resume(): void;
  /** From now on, and as long as it runs, the way of this gateway replica leads to it. */
  reachedBy(replica: string): void;
  end(): void;
}

/** A controller as a gateway replica reaches it; the same one as long as the stream lasts. */
export interface Reach {
  call<T>(work: (controlPlane: ControlPlane) => Promise<T>): Promise<T>;
  onDeath(listener: () => void): () => void;
}

/** Here an instance calls the control plane itself; its access is issued as anywhere. */
const LEASE_DOOR: LeaseDoor = { tokens: new LeaseTokens("key of the simulation"), url: () => "http://controller.invalid/v1/leases/renew" };

const RESTART_MS = 500;
const END_WITHIN_MS = 10_000;
/** A caller gives up then; what it sent may still be taken by one that stood still. */
const CALL_TIMEOUT_MS = 5_000;

export class Controllers {
  readonly #options: ControllersOptions;
  /** The one that its address leads to. */
  #running: Running | undefined;
  /** Others that run or stand still: deposed, or about to be. */
  readonly #others = new Set<Running>();
  /** By gateway replica: to whom its way leads instead, as long as that one runs. */
  readonly #astray = new Map<string, Running>();
  /** How far the wall clock of the machine is off, for whichever process runs there. */
  #skewMs = 0;
  #count = 0;
  #downMs = RESTART_MS;

  constructor(options: ControllersOptions) {
    this.#options = options;
  }

  start(): void {
    const { seed, clock, log, observe, compose, spotLeadMs, api, find, store, driver } = this.#options;
    const { slot, isShared, jobs } = this.#options;
    const name = `controller-${slot === 0 ? "" : `${"abcdefgh"[slot]}-`}${++this.#count}`;
    const process = new SimulatedProcess(name);
    process.skewMs = this.#skewMs;
    const ports = { ...this.#options, process, random: seededRandom(seed, `${name} wire`) };
    const kube = simulatedKube(api, find, ports);
    const random = seededRandom(seed, name);
    const sayOf = this.#logOf(process);
    const members = isShared
      ? electedMembers({
          api: kube,
          namespace: "default",
          id: name,
          apiUrl: () => `http://${name}.invalid`,
          clock: process.clock(clock),
          random: seededRandom(seed, `${name} election`),
          log: (level, message, fields) => sayOf[level](fields, message),
        })
      : undefined;
    const composed = compose({
      ...(members === undefined ? {} : { members }),
      kube,
      store: simulatedStore(store, ports),
      driver: simulatedDriver(driver, ports),
      clock: process.clock(clock),
      random,
      ids: seededIds(random),
      log: sayOf,
      metrics: createMetrics(),
      spotLeadMs,
      leaseDoor: LEASE_DOOR,
      ...(jobs === null ? {} : { connections: jobs.connections(), demandAdapters: jobs.adapters() }),
      onPass: ({ snapshot, plan, at }) => observe({ type: "planned", process: name, snapshot, plan, at }),
      evacuationPolicy: (input) => {
        const plan = planEvacuation(input);
        observe({ type: "scheduled", process: name, input, plan });
        return plan;
      },
    });
    const running = { process, composed, kube };
    this.#running = running;
    log.add(`${name} starts`);
    process.onDeath(() => {
      log.add(`${name} dies`);
      if (this.#others.delete(running)) return;
      this.#running = undefined;
      clock.after(this.#downMs, () => this.start());
      this.#downMs = RESTART_MS;
    });
    composed.controller.start().catch((error: unknown) => {
      log.add(`${name} cannot start: ${error instanceof RelevoError ? error.code : String(error)}`);
      process.kill();
    });
  }

  crash(afterCalls: number, side: Side, downMs: number): boolean {
    this.#downMs = downMs;
    this.#running?.process.crashAfter(afterCalls, side);
    return this.#running !== undefined;
  }

  /** Each port call from now on of the one that runs now, counted as `crash` counts them. */
  watchCalls(heard: (number: number, what: string) => void): void {
    const process = this.#running?.process;
    if (process === undefined) return;
    const first = process.calls;
    process.onCall = (call, what) => heard(call - first, what);
  }

  /** In good order: it hands over what it has, and another one begins later. */
  endInOrder(downMs: number): boolean {
    const running = this.#running;
    if (running === undefined || running.process.isPaused) return false;
    this.#options.log.add(`${running.process.name} ends`);
    this.#downMs = downMs;
    // Whatever it cannot do: its supervisor kills it in the end.
    const kill = (): void => running.process.kill();
    this.#options.clock.after(END_WITHIN_MS, kill);
    void running.composed.handOver().then(kill, kill);
    return true;
  }

  /** A crash that was armed and did not come about does not. */
  disarm(): void {
    this.#running?.process.crashAfter(Number.POSITIVE_INFINITY, "before");
  }

  /** The only one, and going. */
  get isUp(): boolean {
    return this.#running !== undefined && !this.#running.process.isPaused && this.#others.size === 0;
  }

  /** The name of the process that its address leads to. */
  get runs(): string | undefined {
    return this.#running?.process.name;
  }

  /** Somebody answers under its address. */
  get isThere(): boolean {
    return this.#running !== undefined && !this.#running.process.isPaused;
  }

  kubes(): readonly BreakableKube[] {
    return [...this.#others, ...(this.#running === undefined ? [] : [this.#running])].map(({ kube }) => kube);
  }

  /** Lets it stand still, as after SIGSTOP; returns what lets it go on. */
  pause(): (() => void) | undefined {
    const process = this.#running?.process;
    if (process === undefined || process.isPaused) return undefined;
    this.#options.log.add(`${process.name} stands still`);
    process.pause();
    return () => this.#resume(process);
  }

  /** Another one begins, and is the one that is reached from now on. */
  another({ pauseFirst }: { readonly pauseFirst: boolean }): FormerController | undefined {
    const first = this.#running;
    if (first === undefined || this.#others.size > 0) return undefined;
    if (pauseFirst) this.pause();
    this.#others.add(first);
    this.start();
    return {
      resume: () => this.#resume(first.process),
      reachedBy: (replica) => void this.#astray.set(replica, first),
      end: () => first.process.kill(),
    };
  }

  /** The newest one ends, and the one before it is reached again. */
  stepBack(): void {
    const newest = this.#running;
    const [first] = this.#others;
    if (first === undefined) return;
    // It died meanwhile and is about to begin again: then the other one ends.
    if (newest === undefined) return first.process.kill();
    this.#others.delete(first);
    this.#others.add(newest);
    this.#running = first;
    newest.process.kill();
  }

  /** The wall clock of the machine is set. */
  skew(byMs: number): void {
    this.#skewMs += byMs;
    for (const { process } of [...this.#others, ...(this.#running === undefined ? [] : [this.#running])]) process.skewMs += byMs;
  }

  /** To whom the way of this gateway replica leads now; undefined when nobody is there. */
  reach(replica: string): Reach | undefined {
    const former = this.#astray.get(replica);
    const running = former?.process.isAlive === true ? former : this.#running;
    if (running === undefined) return undefined;
    return {
      call: (work) => this.#callTo(running, work),
      onDeath: (listener) => running.process.onDeath(listener),
    };
  }

  /** A call over the wire: rejects when nobody is there, or does not answer in time, or dies before it answers. */
  async call<T>(work: (controlPlane: ControlPlane) => Promise<T>): Promise<T> {
    const running = this.#running;
    if (running === undefined) throw refused();
    return this.#callTo(running, work);
  }

  #callTo<T>({ process, composed }: Running, work: (controlPlane: ControlPlane) => Promise<T>): Promise<T> {
    if (!process.isAlive) return Promise.reject(refused());
    return new Promise<T>((resolve, reject) => {
      const forget = process.onDeath(() => reject(refused()));
      const late = process.isPaused ? this.#options.clock.after(CALL_TIMEOUT_MS, () => reject(unanswered())) : undefined;
      const end = (): void => {
        forget();
        late?.cancel();
      };
      process.whenRunning(() =>
        work(composed.controlPlane).then(
          (value) => {
            end();
            resolve(value);
          },
          (error: unknown) => {
            end();
            reject(error instanceof Error ? error : new Error(String(error)));
          },
        ),
      );
    });
  }

  #resume(process: SimulatedProcess): void {
    if (!process.isPaused) return;
    this.#options.log.add(`${process.name} goes on`);
    this.#options.observe({ type: "went_on", process: process.name });
    process.resume();
  }

  /** What is logged as an error without being one of ours is a fault of the program. */
  #logOf(process: SimulatedProcess): Logger {
    const { log, observe } = this.#options;
    const say = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) => {
      if (!process.isAlive) return;
      const error = fields["error"] ?? fields["err"];
      if (level === "error" && error !== undefined && !(error instanceof RelevoError))
        observe({ type: "unhandled", error: `${message}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}` });
      if (level === "warn" || level === "error")
        log.add(`${process.name} ${level} ${message} ${error instanceof RelevoError ? error.code : ""}`);
    };
    return { debug: say("debug"), info: say("info"), warn: say("warn"), error: say("error") } as unknown as Logger;
  }
}

function refused(): RelevoError {
  return new RelevoError("connection_refused", "nobody listens there", { class: "retryable" });
}

function unanswered(): RelevoError {
  return new RelevoError("no_answer", "nobody answered in time", { class: "retryable" });
}
