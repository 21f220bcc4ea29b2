/**
 * Who else sets replica counts in a cluster: HorizontalPodAutoscalers and KEDA's ScaledObjects, kept by list and watch (K3). A cluster without KEDA has none of
 * the latter. Who may not read them knows of nobody, and `trouble` says so: then nothing is taken over.
 */
import type { Clock } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import type { KubeApi, KubeObject } from "../kube/api.ts";
import { createInformer, type Informer, type InformerLog } from "../kube/informer.ts";
import { HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS } from "../kube/resources.ts";
import type { Parsed } from "../kube/types.ts";
import { type Autoscaler, autoscalerOf, type WorkloadRef } from "../model/parse-scale-owner.ts";
import type { ScaleOwner } from "../model/scale-owner.ts";

export interface ScaleOwnersOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: InformerLog;
}

export class ScaleOwners {
  readonly #informers: readonly Informer<Autoscaler | null>[];
  #isStarted = false;

  constructor(options: ScaleOwnersOptions) {
    this.#informers = [HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS].map((type) =>
      createInformer({
        ...options,
        type,
        parse: parseAutoscaler,
        indexes: { target: (autoscaler) => (autoscaler === null ? [] : [keyOf(autoscaler.target)]) },
        reflector: { optional: true },
      }),
    );
  }

  /** Nothing is asked before. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    for (const informer of this.#informers) informer.start();
  }

  stop(): void {
    for (const informer of this.#informers) informer.stop();
  }

  ownersOf(target: WorkloadRef): readonly ScaleOwner[] {
    return this.#informers.flatMap((informer) =>
      informer.byIndex("target", keyOf(target)).flatMap((autoscaler) => (autoscaler === null ? [] : [autoscaler.owner])),
    );
  }

  /** Why there may be more in this namespace than is known; undefined: all are known. */
  trouble(namespace: string): string | undefined {
    for (const informer of this.#informers) {
      const { plural } = informer.type;
      const { failing } = informer.state();
      if (failing !== undefined) return `${plural}: ${failing}`;
      if (!informer.synced()) return `${plural}: not_listed_yet`;
      const odd = informer.problems().find((problem) => problem.namespace === namespace);
      if (odd !== undefined) return `${plural}: ${odd.name} ${odd.problem}`;
    }
    return undefined;
  }

  /** It is known who there is, or why that cannot be known. */
  hasAnswered(): boolean {
    return this.#informers.every(hasAnswered);
  }

  /** Told whose count somebody else began to set, sets otherwise or sets no more; not of each new number in an autoscaler's status. */
  onChange(listener: (target: WorkloadRef) => void): void {
    for (const informer of this.#informers)
      informer.onChange(({ before = null, after = null }) => {
        if (before !== null && after !== null && JSON.stringify(before) === JSON.stringify(after)) return;
        const targets = new Map([before, after].flatMap((each) => (each === null ? [] : [[keyOf(each.target), each.target] as const])));
        for (const target of targets.values()) listener(target);
      });
  }

  /** Settles when the server has answered, were it only that we may not know. */
  async whenAnswered(): Promise<void> {
    await Promise.all(this.#informers.map((informer) => informer.whenAnswered()));
  }
}

export function hasAnswered(informer: Pick<Informer<unknown>, "synced" | "state">): boolean {
  return informer.synced() || informer.state().failing !== undefined;
}

function parseAutoscaler(object: KubeObject): Parsed<Autoscaler | null> {
  const value = autoscalerOf(object);
  return value === undefined ? { ok: false, problem: "is malformed" } : { ok: true, value };
}

function keyOf({ namespace, kind, name }: WorkloadRef): string {
  return `${kind} ${namespace}/${name}`;
}
