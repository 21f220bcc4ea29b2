/**
 * The life of one container: start, probes, exit, and again after a growing delay where its pod's policy says so. Each start has a new id.
 *
 *     waiting → running → terminated → waiting (CrashLoopBackOff) → running …
 */
import { describeError, RelevoError } from "../../kernel/errors.ts";
import { parseQuantity } from "../../kernel/units.ts";
import type { ContainerSpec, ContainerState, ContainerStatus, PodView, ProbeSpec } from "../controllers/views.ts";
import { commandAndEnv } from "./container-config.ts";
import type { KubeletContext } from "./kubelet-context.ts";
import {
  type ActionResult,
  type ResolvedAction,
  resolveAction,
  type ContainerExit,
  type PodIdentity,
  type PodSandbox,
} from "./pod-runtime.ts";
import { waitingStatus } from "./pod-status.ts";
import { Prober } from "./prober.ts";

/** Missing config maps are looked for again after this long. */
const CONFIG_RETRY_MS = 1_000;
const SIGNAL_REASON: Readonly<Record<number, string>> = { 9: "Error", 15: "Error" };

interface Running {
  readonly id: string;
  readonly startedAt: string;
  readonly startedMono: number;
  readonly exit: Promise<ContainerExit>;
  readonly probers: Prober[];
}

export interface ContainerHost {
  /** The newest state of the pod. */
  readonly pod: () => PodView;
  readonly identity: PodIdentity;
  readonly sandbox: PodSandbox;
  readonly context: KubeletContext;
  /** Aborts when the pod is to end, or its machine is gone. */
  readonly signal: AbortSignal;
  readonly changed: () => void;
  /** An init container runs to its end and is never probed. */
  readonly isInit: boolean;
}

export class Container {
  readonly spec: ContainerSpec;
  readonly #host: ContainerHost;
  #status: ContainerStatus;
  #running: Running | undefined;
  #starting: Promise<void> | undefined;
  #backoffMs = 0;

  constructor(spec: ContainerSpec, host: ContainerHost, before: ContainerStatus | undefined) {
    this.spec = spec;
    this.#host = host;
    this.#status = waitingStatus(spec.name, spec.image ?? "", host.isInit ? "PodInitializing" : "ContainerCreating", before);
  }

  get status(): ContainerStatus {
    return this.#status;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Runs until the container has ended for good; resolves with the last exit code, or undefined when the pod ended before. */
  async run(): Promise<number | undefined> {
    const { clock } = this.#host.context;
    while (!this.#host.signal.aborted) {
      const exit = await this.#once();
      if (exit === undefined || this.#host.signal.aborted) return exit?.exitCode;
      if (!this.#mayRestart(exit)) return exit.exitCode;
      const delayMs = this.#nextBackoff(exit);
      this.#set({
        state: { waiting: { reason: "CrashLoopBackOff", message: `back-off ${delayMs} ms restarting failed container=${this.spec.name}` } },
      });
      if (delayMs > 0)
        this.#event("Warning", "BackOff", `Back-off restarting failed container ${this.spec.name} in pod ${this.#host.identity.name}`);
      await clock.sleep(delayMs, this.#host.signal).catch(() => undefined);
      if (!this.#host.signal.aborted) this.#status = { ...this.#status, restartCount: this.#status.restartCount + 1 };
    }
    return undefined;
  }

  /** preStop, SIGTERM, and SIGKILL when the time is up. Settles when the process has ended. `deadline` is on the monotonic clock and may come closer. */
  async stop(deadline: () => number, hurried: (wake: () => void) => void): Promise<void> {
    await this.#starting?.catch(() => undefined);
    const running = this.#running;
    if (running === undefined) return;
    const { runtime, machine } = this.#host.context;
    const ended = running.exit.then(() => undefined);
    this.#event("Normal", "Killing", `Stopping container ${this.spec.name}`);
    if (this.spec.lifecycle?.preStop !== undefined)
      await this.#within(deadline, hurried, Promise.race([this.#preStop(running, deadline), ended]));
    if (this.#running !== running) return;
    runtime.signal(machine, running.id, "SIGTERM");
    await this.#within(deadline, hurried, ended);
    if (this.#running !== running) return;
    runtime.signal(machine, running.id, "SIGKILL");
    await ended;
  }

  /** Waits for the work, until the deadline at the latest, wherever that moves. */
  async #within(deadline: () => number, hurried: (wake: () => void) => void, work: Promise<void>): Promise<void> {
    const { clock } = this.#host.context;
    let isDone = false;
    const done = work.then(() => {
      isDone = true;
    });
    while (!isDone && deadline() > clock.monotonic()) {
      const early = Promise.withResolvers<void>();
      hurried(early.resolve);
      const timer = clock.after(deadline() - clock.monotonic(), early.resolve);
      await Promise.race([done, early.promise]);
      timer.cancel();
    }
  }

  /** The pod's object is gone or its time is over. */
  killNow(): void {
    const { runtime, machine } = this.#host.context;
    if (this.#running !== undefined) runtime.signal(machine, this.#running.id, "SIGKILL");
  }

  stopLiveness(): void {
    for (const prober of this.#running?.probers.splice(1) ?? []) prober.stop();
  }

  /** Settles when nothing of it runs. */
  async ended(): Promise<void> {
    await this.#running?.exit;
  }

  async #once(): Promise<ContainerExit | undefined> {
    const { context, signal } = this.#host;
    const config = await this.#config();
    if (config === undefined || signal.aborted) return undefined;
    const id = context.ids.next("c");
    const exit = Promise.withResolvers<ContainerExit>();
    const { restartCount } = this.#status;
    this.#event("Normal", "Pulled", `Container image "${this.spec.image ?? ""}" already present on machine`);
    try {
      const start = {
        id,
        pod: this.#host.identity,
        container: this.spec.name,
        restartCount,
        ...config,
        workingDir: this.spec.workingDir,
        image: this.spec.image ?? "",
        ...memoryLimitOf(this.spec),
      };
      this.#starting = context.runtime.start(context.machine, start, exit.resolve);
      await this.#starting;
    } catch (error) {
      return this.#failedToStart(id, error);
    }
    const running: Running = { id, startedAt: context.stamp(), startedMono: context.clock.monotonic(), exit: exit.promise, probers: [] };
    this.#running = running;
    this.#event("Normal", "Started", `Started container ${this.spec.name}`);
    const needsStartup = this.spec.startupProbe !== undefined && !this.#host.isInit;
    this.#set({
      state: { running: { startedAt: running.startedAt } },
      containerID: `process://${id}`,
      imageID: this.spec.image ?? "",
      started: !needsStartup,
      ready: !needsStartup && this.spec.readinessProbe === undefined && !this.#host.isInit,
    });
    if (!this.#host.isInit) this.#probe(running);
    return await this.#reap(running);
  }

  async #reap(running: Running): Promise<ContainerExit> {
    const exit = await running.exit;
    for (const prober of running.probers) prober.stop();
    this.#running = undefined;
    this.#terminated(running.id, running.startedAt, exit);
    return exit;
  }

  #failedToStart(id: string, error: unknown): ContainerExit | undefined {
    if (this.#host.signal.aborted) return undefined;
    const now = this.#host.context.stamp();
    this.#event("Warning", "Failed", `Error: ${describeError(error)}`);
    const exit: ContainerExit = { exitCode: 128, signal: undefined };
    this.#terminated(id, now, exit, "StartError");
    return exit;
  }

  #terminated(id: string, startedAt: string, exit: ContainerExit, reason?: string): void {
    const terminated: NonNullable<ContainerState["terminated"]> = {
      exitCode: exit.exitCode,
      ...(exit.signal === undefined ? {} : { signal: exit.signal }),
      reason: reason ?? exit.reason ?? (exit.exitCode === 0 ? "Completed" : (SIGNAL_REASON[exit.signal ?? 0] ?? "Error")),
      startedAt,
      finishedAt: this.#host.context.stamp(),
      containerID: `process://${id}`,
    };
    const { lastState } = this.#status;
    this.#status = { ...this.#status, containerID: `process://${id}`, ready: false, started: false, state: { terminated }, lastState };
    this.#host.changed();
  }

  /** Waits until everything that the container refers to is there. */
  async #config(): Promise<{ readonly command: readonly string[]; readonly env: Record<string, string> } | undefined> {
    const { context, signal, sandbox } = this.#host;
    while (!signal.aborted) {
      try {
        return await commandAndEnv(this.#host.pod(), this.spec, sandbox, context.env, (kind, name) =>
          context.findConfig(this.#host.identity.namespace, kind, name),
        );
      } catch (error) {
        const message = describeError(error);
        if (this.#status.state.waiting?.message !== message) {
          this.#set({
            state: {
              waiting: {
                reason: error instanceof RelevoError && error.class === "retryable" ? "CreateContainerConfigError" : "CreateContainerError",
                message,
              },
            },
          });
          this.#event("Warning", "Failed", `Error: ${message}`);
        }
        await context.clock.sleep(CONFIG_RETRY_MS, signal).catch(() => undefined);
      }
    }
    return undefined;
  }

  #mayRestart(exit: ContainerExit): boolean {
    const policy = this.#host.pod().spec.restartPolicy ?? "Always";
    if (this.#host.isInit) return exit.exitCode !== 0 && policy !== "Never";
    return policy === "Always" || (policy === "OnFailure" && exit.exitCode !== 0);
  }

  /** The first restart comes at once; the delay doubles from there, and starts over after a run that was long enough. */
  #nextBackoff(exit: ContainerExit): number {
    const { restartBackoff } = this.#host.context.options;
    const ran = this.#status.state.terminated;
    const ranMs = ran === undefined ? 0 : Date.parse(ran.finishedAt) - Date.parse(ran.startedAt);
    if (ranMs >= restartBackoff.resetAfterMs || (exit.exitCode === 0 && this.#host.isInit)) this.#backoffMs = 0;
    const delayMs = this.#backoffMs;
    this.#backoffMs = delayMs === 0 ? restartBackoff.firstMs : Math.min(delayMs * 2, restartBackoff.maxMs);
    if (ran !== undefined) this.#status = { ...this.#status, lastState: { terminated: ran } };
    return delayMs;
  }

  #probe(running: Running): void {
    const { startupProbe } = this.spec;
    if (startupProbe === undefined) return this.#probeSteady(running);
    const prober = this.#prober(running, "Startup", startupProbe, (ok, message) => {
      prober?.stop();
      if (!ok) return this.#kill(running, `failed startup probe: ${message}`);
      running.probers.length = 0;
      this.#set({ started: true, ready: this.spec.readinessProbe === undefined });
      this.#probeSteady(running);
    });
    if (prober !== undefined) running.probers.push(prober);
  }

  /** Readiness stands first in the list: it goes on while the container is being stopped. */
  #probeSteady(running: Running): void {
    const { readinessProbe, livenessProbe } = this.spec;
    const ready = readinessProbe && this.#prober(running, "Readiness", readinessProbe, (ok) => this.#set({ ready: ok }));
    const alive =
      livenessProbe &&
      this.#prober(running, "Liveness", livenessProbe, (ok, message) =>
        ok ? undefined : this.#kill(running, `failed liveness probe: ${message}`),
      );
    running.probers.push(ready ?? new Prober(idleProbe(this.#host.context)), ...(alive === undefined ? [] : [alive]));
  }

  #prober(running: Running, name: string, probe: ProbeSpec, decided: (ok: boolean, message: string) => void): Prober | undefined {
    const { context, sandbox } = this.#host;
    const action = resolveAction(probe, sandbox, this.spec.ports ?? []);
    if (action === undefined) return undefined;
    const prober = new Prober({
      clock: context.clock,
      probe,
      eagerMs: name === "Liveness" ? Number.POSITIVE_INFINITY : context.options.eagerProbeMs,
      act: (timeoutMs) => this.#tryAction(running, action, timeoutMs),
      decided: (ok, message) => {
        if (this.#running === running) decided(ok, message);
      },
      failed: (message) => this.#event("Warning", "Unhealthy", `${name} probe failed: ${message}`),
    });
    prober.start();
    return prober;
  }

  /** A kubelet whose machine stands still observes nothing. */
  async #tryAction(running: Running, action: ResolvedAction, timeoutMs: number): Promise<ActionResult | undefined> {
    const { runtime, machine } = this.#host.context;
    const result = await runtime.act(machine, running.id, action, timeoutMs);
    return result.ok || (await runtime.isAlive(machine, timeoutMs)) ? result : undefined;
  }

  #kill(running: Running, why: string): void {
    const { context } = this.#host;
    this.#event("Normal", "Killing", `Container ${this.spec.name} ${why}, will be restarted`);
    for (const prober of running.probers) prober.stop();
    this.#set({ ready: false });
    const graceMs = (this.#host.pod().spec.terminationGracePeriodSeconds ?? 30) * 1000;
    const deadline = context.clock.monotonic() + graceMs;
    void this.stop(
      () => deadline,
      () => undefined,
    );
  }

  async #preStop(running: Running, deadline: () => number): Promise<void> {
    const preStop = this.spec.lifecycle?.preStop;
    if (preStop === undefined) return;
    const { context, sandbox } = this.#host;
    if (preStop.sleep !== undefined) return await context.clock.sleep(preStop.sleep.seconds * 1000, context.signal).catch(() => undefined);
    const action = resolveAction(preStop, sandbox, this.spec.ports ?? []);
    if (action === undefined) return;
    const timeoutMs = Math.max(1, deadline() - context.clock.monotonic());
    const result = await context.runtime
      .act(context.machine, running.id, action, timeoutMs)
      .catch((error: unknown) => ({ ok: false, message: describeError(error) }));
    if (!result.ok) this.#event("Warning", "FailedPreStopHook", `PreStopHook failed: ${result.message}`);
  }

  #set(change: Partial<ContainerStatus>): void {
    this.#status = { ...this.#status, ...change };
    this.#host.changed();
  }

  #event(type: "Normal" | "Warning", reason: string, message: string): void {
    this.#host.context.events.record(this.#host.pod(), type, reason, message);
  }
}

function memoryLimitOf({ resources }: ContainerSpec): { readonly memoryLimitBytes?: number } {
  const bytes = parseQuantity(resources?.limits?.["memory"] ?? "");
  return bytes === undefined || bytes <= 0 ? {} : { memoryLimitBytes: bytes };
}

/** Holds readiness' place in the list where there is no such probe; it is never started. */
function idleProbe(context: KubeletContext): ConstructorParameters<typeof Prober>[0] {
  return {
    clock: context.clock,
    probe: {},
    eagerMs: 0,
    act: async () => ({ ok: true, message: "" }),
    decided: () => undefined,
    failed: () => undefined,
  };
}
