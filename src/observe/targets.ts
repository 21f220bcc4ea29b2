/**
 * The workloads whose replica count Pools own: each is watched by its name, because it carries no label of ours. Beside what it says itself stands who else sets
 * its count.
 */
import type { Clock, Instant } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import type { KubeApi, KubeObject, ResourceType } from "../kube/api.ts";
import { createInformer, type Informer, type InformerLog } from "../kube/informer.ts";
import { DEPLOYMENTS, STATEFUL_SETS } from "../kube/resources.ts";
import type { Parsed } from "../kube/types.ts";
import { type PoolDocument, poolKey } from "../model/pool.ts";
import { targetObjectOf } from "../model/parse-scale-owner.ts";
import { OWN_MANAGER, type ScaleOwner, type TargetObject, type TargetView } from "../model/scale-owner.ts";
import type { InstanceRecord } from "../model/instance.ts";
import type { OtherOwner } from "../plan/snapshot.ts";
import { hasAnswered, type ScaleOwners } from "./scale-owners.ts";

export type TargetRef = NonNullable<PoolDocument["spec"]["target"]>;

export const TARGET_TYPES: Readonly<Record<TargetRef["kind"], ResourceType>> = { Deployment: DEPLOYMENTS, StatefulSet: STATEFUL_SETS };

function isOurs({ managers }: TargetObject): boolean {
  return managers.some(({ manager }) => manager === OWN_MANAGER);
}

function isTargetKind(kind: string): boolean {
  return Object.hasOwn(TARGET_TYPES, kind);
}

function parseTarget(object: KubeObject): Parsed<TargetObject> {
  const value = targetObjectOf(object);
  return value === undefined ? { ok: false, problem: "has no replica count" } : { ok: true, value };
}

export interface TargetsOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: InformerLog;
  readonly owners: ScaleOwners;
  /** Of all Pools, those of other replicas too. */
  readonly documents: () => readonly PoolDocument[];
  readonly onChange: (pool: string) => void;
}

interface Entry {
  readonly pool: string;
  readonly namespace: string;
  readonly target: TargetRef;
  readonly informer: Informer<TargetObject>;
  fullSince: Instant | null;
  takenAt: Instant | null;
}

export class Targets {
  readonly #options: TargetsOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: TargetsOptions) {
    this.#options = options;
    options.owners.onChange(({ namespace, kind, name }) => {
      for (const { pool, namespace: of, target } of this.#entries.values())
        if (of === namespace && target.kind === kind && target.name === name) options.onChange(pool);
    });
  }

  start(): void {
    this.#options.owners.start();
  }

  /** From now on as the document says; a Pool without a target has none here. */
  follow(pool: string, { metadata, spec }: PoolDocument): void {
    const { target } = spec;
    const known = this.#entries.get(pool);
    if (known !== undefined && known.target.kind === target?.kind && known.target.name === target.name) return;
    this.forget(pool);
    if (target === undefined) return;
    const { api, clock, random, log, owners, onChange } = this.#options;
    const informer = createInformer({
      ...{ api, clock, random, log },
      type: TARGET_TYPES[target.kind],
      namespace: metadata.namespace,
      fieldSelector: `metadata.name=${target.name}`,
      parse: parseTarget,
    });
    const entry: Entry = { pool, namespace: metadata.namespace, target, informer, fullSince: null, takenAt: null };
    this.#entries.set(pool, entry);
    informer.onChange(({ before, after }) => {
      this.#noteFull(entry, after);
      if (after === undefined || isOurs(after)) entry.takenAt = null;
      else if (before !== undefined && isOurs(before)) entry.takenAt = clock.now();
      onChange(pool);
    });
    informer.start();
    void Promise.all([informer.whenAnswered(), owners.whenAnswered()]).then(() => {
      if (this.#entries.get(pool) === entry) onChange(pool);
    });
  }

  forget(pool: string): void {
    this.#entries.get(pool)?.informer.stop();
    this.#entries.delete(pool);
  }

  stop(): void {
    for (const pool of [...this.#entries.keys()]) this.forget(pool);
    this.#options.owners.stop();
  }

  /** Who else sets the counts of what the create steps of these instances made. */
  ownersOf(instances: readonly Pick<InstanceRecord, "objects">[]): readonly OtherOwner[] {
    return instances.flatMap(({ objects }) =>
      objects.flatMap(({ kind, namespace, name }) =>
        isTargetKind(kind)
          ? this.#options.owners.ownersOf({ namespace, kind, name }).map((owner) => ({ workload: `${kind}/${name}`, owner }))
          : [],
      ),
    );
  }

  /** Null: it is not followed, or was not seen yet. */
  viewOf(pool: string): TargetView | null {
    const entry = this.#entries.get(pool);
    if (entry === undefined || !this.#options.owners.hasAnswered() || !hasAnswered(entry.informer)) return null;
    const { namespace, target, informer } = entry;
    const object = informer.get(namespace, target.name);
    if (object !== undefined && entry.fullSince === null) this.#noteFull(entry, object);
    return {
      ...target,
      object: object ?? null,
      owners: [...this.#options.owners.ownersOf({ namespace, ...target }), ...this.#otherPools(entry)],
      trouble: this.#troubleOf(entry),
      fullSince: entry.fullSince,
      takenAt: entry.takenAt,
    };
  }

  #otherPools({ pool, namespace, target: { kind, name } }: Entry): readonly ScaleOwner[] {
    return this.#options.documents().flatMap(({ metadata, spec: { target } }): readonly ScaleOwner[] => {
      if (metadata.namespace !== namespace || target?.kind !== kind || target.name !== name) return [];
      const other = poolKey(namespace, metadata.name);
      return other === pool ? [] : [{ kind: "Pool", name: other, uid: "" }];
    });
  }

  #troubleOf({ informer, namespace }: Entry): string | null {
    const { failing } = informer.state();
    const { plural } = informer.type;
    if (failing !== undefined) return `${plural}: ${failing}`;
    if (!informer.synced()) return `${plural}: not_listed_yet`;
    const [odd] = informer.problems();
    return odd === undefined ? (this.#options.owners.trouble(namespace) ?? null) : `${plural}: ${odd.name} ${odd.problem}`;
  }

  #noteFull(entry: Entry, object: TargetObject | undefined): void {
    const isFull = object !== undefined && object.readyReplicas >= object.replicas;
    entry.fullSince = isFull ? (entry.fullSince ?? this.#options.clock.now()) : null;
  }
}
