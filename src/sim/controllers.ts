/** The controller as a simulated process: composed by the production composition, started again after each death, as its supervisor would. */
import type { InstanceDriver } from "../drivers/port.ts";
import type { Clock } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Random } from "../kernel/random.ts";
import type { KubeApi, KubeObject, ObjectRef } from "../kube/api.ts";
import type { ControlPlane } from "../server/control-plane.ts";
import type { Logger } from "../server/log.ts";
import { createMetrics, type Metrics } from "../server/metrics.ts";
import type { Store } from "../store/port.ts";
import type { EventLog } from "./event-log.ts";
import type { Observe } from "./events.ts";
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
}

export interface RunnableController {
  readonly controller: { start(): Promise<void>; stop(): void };
  readonly controlPlane: ControlPlane;
}

export type ComposeController = (parts: ControllerParts) => RunnableController;

export interface ControllersOptions {
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
}

interface Running {
  readonly process: SimulatedProcess;
  readonly composed: RunnableController;
  readonly kube: BreakableKube;
}

const RESTART_MS = 500;

export class Controllers {
  readonly #options: ControllersOptions;
  #running: Running | undefined;
  #count = 0;
  #downMs = RESTART_MS;

  constructor(options: ControllersOptions) {
    this.#options = options;
  }

  start(): void {
    const { seed, clock, log, compose, spotLeadMs, api, find, store, driver } = this.#options;
    const name = `controller-${++this.#count}`;
    const process = new SimulatedProcess(name);
    const ports = { ...this.#options, process, random: seededRandom(seed, `${name} wire`) };
    const kube = simulatedKube(api, find, ports);
    const random = seededRandom(seed, name);
    const composed = compose({
      kube,
      store: simulatedStore(store, ports),
      driver: simulatedDriver(driver, ports),
      clock: process.clock(clock),
      random,
      ids: seededIds(random),
      log: this.#logOf(process),
      metrics: createMetrics(),
      spotLeadMs,
    });
    this.#running = { process, composed, kube };
    log.add(`${name} starts`);
    process.onDeath(() => {
      log.add(`${name} dies`);
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

  /** A crash that was armed and did not come about does not. */
  disarm(): void {
    this.#running?.process.crashAfter(Number.POSITIVE_INFINITY, "before");
  }

  get isUp(): boolean {
    return this.#running !== undefined;
  }

  get kube(): BreakableKube | undefined {
    return this.#running?.kube;
  }

  /** A call over the wire: rejects when nobody is there, or when who is there dies before it answers. */
  async call<T>(work: (controlPlane: ControlPlane) => Promise<T>): Promise<T> {
    const running = this.#running;
    if (running === undefined) throw refused();
    return new Promise<T>((resolve, reject) => {
      const forget = running.process.onDeath(() => reject(refused()));
      work(running.composed.controlPlane).then(
        (value) => {
          forget();
          resolve(value);
        },
        (error: unknown) => {
          forget();
          reject(error instanceof Error ? error : new Error(String(error)));
        },
      );
    });
  }

  onDeath(listener: () => void): () => void {
    if (this.#running === undefined) {
      listener();
      return () => {};
    }
    return this.#running.process.onDeath(listener);
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
