/**
 * The life of one pod on its node: sandbox, init containers in order, containers side by side, and an orderly end when the pod is deleted. It writes the
 * pod's status when that changes and deletes the object when nothing of the pod runs any more.
 */
import { isDeepStrictEqual } from "node:util";
import { isConflict, isNotFound } from "../../kube/api.ts";
import { PODS } from "../../kube/resources.ts";
import { describeError } from "../../kernel/errors.ts";
import { isTerminal, refOf, type PodView } from "../controllers/views.ts";
import { Container } from "./container.ts";
import { volumeFiles } from "./container-config.ts";
import type { KubeletContext } from "./kubelet-context.ts";
import type { PodIdentity, PodSandbox } from "./pod-runtime.ts";
import { podStatus } from "./pod-status.ts";

const SANDBOX_RETRY_MS = 1_000;
const STATUS_RETRY_MS = 200;

export class PodWorker {
  readonly identity: PodIdentity;
  readonly #context: KubeletContext;
  readonly #stopping = new AbortController();
  readonly #gone = Promise.withResolvers<void>();
  readonly #startTime: string;
  #pod: PodView;
  #sandbox: PodSandbox | undefined;
  #init: readonly Container[] = [];
  #main: readonly Container[] = [];
  #deadline: number | undefined;
  #hurry: (() => void)[] = [];
  #isEnded = false;
  #isForced = false;
  /** All containers have ended for good while the pod's object stays. */
  #isIdle = false;
  #isDirty = false;
  #isWriting = false;

  constructor(pod: PodView, context: KubeletContext) {
    this.#pod = pod;
    this.#context = context;
    this.#startTime = pod.status?.startTime ?? context.stamp();
    const { namespace = "", name, uid } = pod.metadata;
    this.identity = { namespace, name, uid };
    context.signal.addEventListener("abort", () => this.#stopping.abort(), { once: true });
  }

  /** Settles when nothing of the pod is left, its object included; never when the machine dies. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  start(): void {
    if (this.#pod.metadata.deletionTimestamp !== undefined) this.update(this.#pod);
    void this.#run().catch((error: unknown) => this.#context.access.log("error", "a pod's worker failed", { pod: this.identity, error }));
  }

  /** Takes the pod's newest state. */
  update(pod: PodView): void {
    this.#pod = pod;
    if (pod.metadata.deletionTimestamp === undefined) return;
    const graceMs = (pod.metadata.deletionGracePeriodSeconds ?? 30) * 1000;
    const deadline = this.#context.clock.monotonic() + graceMs;
    if (this.#deadline !== undefined && deadline >= this.#deadline) return;
    this.#deadline = deadline;
    this.#stopping.abort();
    for (const wake of this.#hurry.splice(0)) wake();
    this.#endIfIdle();
  }

  /** Says again what is so, after others have said otherwise. */
  resync(): void {
    this.#changed();
  }

  /** The object is gone from the API: whatever still runs is ended at once. */
  forced(): void {
    this.#isForced = true;
    this.#deadline = this.#context.clock.monotonic();
    this.#stopping.abort();
    for (const wake of this.#hurry.splice(0)) wake();
    for (const container of [...this.#init, ...this.#main]) container.killNow();
    this.#endIfIdle();
  }

  #endIfIdle(): void {
    if (!this.#isIdle) return;
    this.#isIdle = false;
    void this.#end().catch((error: unknown) =>
      this.#context.access.log("error", "a pod was not cleared away", { pod: this.identity, error }),
    );
  }

  async #run(): Promise<void> {
    await this.#prepare();
    if (!this.#stopping.signal.aborted) await this.#live();
    if (this.#context.signal.aborted) return;
    this.#isIdle = this.#deadline === undefined;
    if (!this.#isIdle) await this.#end();
  }

  async #prepare(): Promise<void> {
    const { runtime, machine, clock, events } = this.#context;
    const { containers, initContainers = [] } = this.#pod.spec;
    const ports = containers.flatMap((container) => (container.ports ?? []).map((port) => port.containerPort));
    const signal = this.#stopping.signal;
    while (this.#sandbox === undefined && !signal.aborted) {
      try {
        const volumes = await volumeFiles(this.#pod, (kind, name) => this.#context.findConfig(this.identity.namespace, kind, name));
        this.#sandbox = await runtime.createSandbox(machine, this.identity, volumes, ports);
      } catch (error) {
        if (this.#context.signal.aborted) return;
        events.record(this.#pod, "Warning", "FailedMount", describeError(error));
        await clock.sleep(SANDBOX_RETRY_MS, signal).catch(() => undefined);
      }
    }
    const sandbox = this.#sandbox;
    if (sandbox === undefined) return;
    const host = { pod: () => this.#pod, identity: this.identity, sandbox, context: this.#context, signal, changed: () => this.#changed() };
    const before = (name: string) =>
      [...(this.#pod.status?.containerStatuses ?? []), ...(this.#pod.status?.initContainerStatuses ?? [])].find(
        (status) => status.name === name,
      );
    this.#init = initContainers.map((spec) => new Container(spec, { ...host, isInit: true }, before(spec.name)));
    this.#main = containers.map((spec) => new Container(spec, { ...host, isInit: false }, before(spec.name)));
    this.#changed();
  }

  async #live(): Promise<void> {
    for (const container of this.#init) {
      const exitCode = await container.run();
      if (exitCode !== 0 || this.#stopping.signal.aborted) return;
    }
    const runs = this.#main.map((container) => container.run());
    await Promise.race([Promise.all(runs), aborted(this.#stopping.signal)]);
  }

  async #end(): Promise<void> {
    const containers = [...this.#init, ...this.#main];
    for (const container of containers) container.stopLiveness();
    const deadline = (): number => this.#deadline ?? 0;
    const hurried = (wake: () => void): void => void this.#hurry.push(wake);
    if (this.#isForced) for (const container of containers) container.killNow();
    await Promise.all(containers.map((container) => container.stop(deadline, hurried)));
    await Promise.all(containers.map((container) => container.ended()));
    if (this.#context.signal.aborted) return;
    this.#isEnded = true;
    if (!this.#isForced) await this.#writeUntilDone();
    const { runtime, machine, access } = this.#context;
    await runtime.removeSandbox(machine, this.identity);
    if (!this.#isForced) await access.delete(refOf(PODS, this.#pod), this.identity.uid, { gracePeriodSeconds: 0 });
    this.#gone.resolve();
  }

  #changed(): void {
    this.#isDirty = true;
    if (!this.#isWriting)
      void this.#writeUntilDone().catch((error: unknown) =>
        this.#context.access.log("warn", "a pod's status was not written", { pod: this.identity, error }),
      );
  }

  /** One write at a time; what changed meanwhile goes with the next. */
  async #writeUntilDone(): Promise<void> {
    if (this.#isWriting && !this.#isEnded) return;
    this.#isWriting = true;
    this.#isDirty = true;
    try {
      while (this.#isDirty && !this.#context.signal.aborted) {
        this.#isDirty = false;
        await this.#write();
      }
    } finally {
      this.#isWriting = false;
    }
  }

  async #write(): Promise<void> {
    const { access, clock, signal } = this.#context;
    const pod = this.#pod;
    const status = this.#status(pod);
    if (status === undefined || (isTerminal(pod) && !this.#isEnded) || isDeepStrictEqual({ ...pod.status, ...status }, pod.status)) return;
    const { uid, resourceVersion } = pod.metadata;
    try {
      // Others write conditions too (an eviction, a readiness gate): whoever read an older state must look again.
      const written = await access.patchStatus(refOf(PODS, pod), {
        metadata: { uid, resourceVersion, ...this.#portAnnotations() },
        status,
      });
      if (Number(written.metadata.resourceVersion) > Number(this.#pod.metadata.resourceVersion)) this.#pod = written as PodView;
    } catch (error) {
      if (isNotFound(error)) return this.forced();
      if (!isConflict(error)) {
        access.log("debug", "a pod's status was not written, trying again", { pod: this.identity, error });
        await clock.sleep(STATUS_RETRY_MS, signal).catch(() => undefined);
      }
      const fresh = await access.refresh(refOf(PODS, pod), uid);
      if (fresh === undefined) return this.forced();
      this.update(fresh as PodView);
      this.#isDirty = true;
    }
  }

  #status(pod: PodView): Readonly<Record<string, unknown>> | undefined {
    if (this.#main.length === 0) return undefined;
    const facts = {
      init: this.#init.map((container) => container.status),
      main: this.#main.map((container) => container.status),
      podIP: this.#sandbox?.podIP,
      hostIP: this.#sandbox?.hostIP,
      startTime: this.#startTime,
      isEnded: this.#isEnded,
    };
    return { ...podStatus(pod, facts, this.#context.stamp()) };
  }

  /** Where pods share an address, others find a pod's real port here. */
  #portAnnotations(): { readonly annotations?: Readonly<Record<string, string>> } {
    const map = this.#sandbox?.portMap;
    if (map === undefined || map.size === 0) return {};
    return { annotations: Object.fromEntries([...map].map(([port, real]) => [`embedded.relevo.dev/port-${port}`, String(real)])) };
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
