/**
 * Sees from the outside what becomes of workers: their Deployments and pods through the Kubernetes API, their slots by asking each worker itself. Nothing here
 * is told by the controller that is judged by it.
 */
import type { Clock, Timer } from "../../../kernel/clock.ts";
import type { Random } from "../../../kernel/random.ts";
import type { KubeApi } from "../../../kube/api.ts";
import { createInformer, type Informer } from "../../../kube/informer.ts";
import { DEPLOYMENTS, PODS } from "../../../kube/resources.ts";
import { type KubePod, parseDeployment, parsePod } from "../../../kube/types.ts";
import { type Slots, slotsSchema } from "../../../model/slots.ts";

const ASK_EVERY_MS = 250;
const ANSWER_WITHIN_MS = 1_000;
const PORT = 8080;

export interface SlotsSample {
  /** Monotonic. */
  readonly at: number;
  /** Workers that answered. */
  readonly workers: number;
  readonly busy: number;
  readonly stuck: number;
}

export interface ReplicasChange {
  /** Monotonic. */
  readonly at: number;
  readonly replicas: number;
}

export interface WorkersWatchOptions {
  readonly kube: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
  /** Which Deployments and pods: `app=capture`. */
  readonly selector: string;
  /** A busy slot that is quiet for so long is stuck. */
  readonly stuckAfterMs: number;
}

export class WorkersWatch {
  readonly #options: WorkersWatchOptions;
  readonly #deployments: Informer<{ readonly metadata: { readonly name: string } }>;
  readonly #pods: Informer<KubePod>;
  readonly #changes: ReplicasChange[] = [];
  readonly #samples: SlotsSample[] = [];
  readonly #oomKills = new Set<string>();
  readonly #restarts = new Map<string, number>();
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(options: WorkersWatchOptions) {
    const { kube: api, clock, random, selector: labelSelector } = options;
    this.#options = options;
    const common = { api, labelSelector, clock, random, log: () => undefined };
    this.#deployments = createInformer({ ...common, type: DEPLOYMENTS, parse: parseDeployment });
    this.#pods = createInformer({ ...common, type: PODS, parse: parsePod });
    this.#deployments.onChange(() => this.#noteReplicas());
    this.#pods.onChange(({ after }) => after && this.#notePod(after));
  }

  async start(): Promise<void> {
    this.#deployments.start();
    this.#pods.start();
    await Promise.all([this.#deployments.whenSynced(), this.#pods.whenSynced()]);
    this.#noteReplicas();
    for (const pod of this.#pods.list()) this.#notePod(pod);
    void this.#sampleOnAndOn();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#deployments.stop();
    this.#pods.stop();
  }

  /** Deployments that are there: of a Pool one for each instance. */
  replicas(): number {
    return this.#deployments.list().length;
  }

  /** Pods that are there, those that end too. */
  pods(): number {
    return this.#pods.list().length;
  }

  changes(since: number): readonly ReplicasChange[] {
    return this.#changes.filter(({ at }) => at >= since);
  }

  samples(since: number): readonly SlotsSample[] {
    return this.#samples.filter(({ at }) => at >= since);
  }

  lastSample(): SlotsSample | undefined {
    return this.#samples.at(-1);
  }

  /** Containers that were ended because their memory reached its limit. */
  oomKills(): number {
    return this.#oomKills.size;
  }

  /** Of all containers so far. */
  restarts(): number {
    return [...this.#restarts.values()].reduce((sum, count) => sum + count, 0);
  }

  #noteReplicas(): void {
    const replicas = this.replicas();
    if (this.#changes.at(-1)?.replicas !== replicas) this.#changes.push({ at: this.#options.clock.monotonic(), replicas });
  }

  #notePod({ metadata: { uid }, status }: KubePod): void {
    for (const { name, restartCount, state, lastState } of status.containerStatuses) {
      const key = `${uid}/${name}`;
      this.#restarts.set(key, Math.max(restartCount, this.#restarts.get(key) ?? 0));
      // A run is told twice: as the present state, and once the next one began as the last one.
      if (state.terminated?.reason === "OOMKilled") this.#oomKills.add(`${key}/${restartCount}`);
      if (lastState.terminated?.reason === "OOMKilled") this.#oomKills.add(`${key}/${restartCount - 1}`);
    }
  }

  async #sampleOnAndOn(): Promise<void> {
    if (this.#isStopped) return;
    const { clock, stuckAfterMs } = this.#options;
    const answers = await Promise.all(this.#addresses().map((address) => slotsOf(address, clock)));
    const busy = answers.flatMap((slots) => slots?.busy ?? []);
    this.#samples.push({
      at: clock.monotonic(),
      workers: answers.filter((slots) => slots !== null).length,
      busy: busy.length,
      stuck: busy.filter(({ quietMs }) => quietMs >= stuckAfterMs).length,
    });
    if (!this.#isStopped) this.#timer = clock.after(ASK_EVERY_MS, () => void this.#sampleOnAndOn());
  }

  #addresses(): readonly string[] {
    return this.#pods.list().flatMap(({ status }) => (status.podIP === null ? [] : [`http://${status.podIP}:${PORT}`]));
  }
}

async function slotsOf(address: string, clock: Clock): Promise<Slots | null> {
  const controller = new AbortController();
  const timer = clock.after(ANSWER_WITHIN_MS, () => controller.abort());
  try {
    const response = await fetch(`${address}/relevo/v1/slots`, { signal: controller.signal });
    return response.ok ? slotsSchema.parse(await response.json()) : null;
  } catch {
    return null; // it is about to come, or has just gone
  } finally {
    timer.cancel();
  }
}

/**
 * How often the number of replicas rose while more than `share` of the busy slots were stuck. Judged by the samples on both sides of the change: between two of
 * them a slot may have become stuck, or free.
 */
export function risesWhileStuck(changes: readonly ReplicasChange[], samples: readonly SlotsSample[], share: number): number {
  const isStuck = (sample: SlotsSample | undefined) => sample !== undefined && sample.busy > 0 && sample.stuck / sample.busy > share;
  return changes.filter(({ at, replicas }, index) => {
    const before = changes[index - 1];
    if (before === undefined || replicas <= before.replicas) return false;
    return isStuck(samples.findLast((sample) => sample.at <= at)) && isStuck(samples.find((sample) => sample.at > at));
  }).length;
}

/** From each rise of the demand to the first rise of the replicas after it; null: there was none. */
export function reactionsTo(demands: readonly number[], changes: readonly ReplicasChange[]): readonly (number | null)[] {
  return demands.map((at) => {
    const rise = changes.find((change, index) => change.at >= at && change.replicas > (changes[index - 1]?.replicas ?? 0));
    return rise === undefined ? null : rise.at - at;
  });
}
