/**
 * What policies look up in a snapshot again and again, for one instance after the other: built once for each snapshot, so that a plan over N instances costs
 * N look-ups and not N searches. A snapshot never changes, so what is built stays right for as long as it lives.
 */
import type { StepRecord } from "../model/step.ts";
import type { InstanceSnapshot, NodeSnapshot, PoolSnapshot } from "./snapshot.ts";

export interface PoolIndex {
  readonly byId: ReadonlyMap<string, InstanceSnapshot>;
  /** By the instance that they are to replace; in the order of the snapshot. */
  readonly replacing: ReadonlyMap<string, readonly InstanceSnapshot[]>;
  /** By ordinal, in the order of the snapshot. */
  readonly byOrdinal: ReadonlyMap<number, readonly InstanceSnapshot[]>;
  /** Open steps by instance, in the order of the snapshot. */
  readonly steps: ReadonlyMap<string, readonly StepRecord[]>;
  /** Those for which candidates failed. */
  readonly failedFor: ReadonlySet<string>;
  /** Those under any of its pods, by UID. */
  readonly nodes: ReadonlyMap<string, NodeSnapshot>;
}

const indexes = new WeakMap<PoolSnapshot, PoolIndex>();

export function indexOf(pool: PoolSnapshot): PoolIndex {
  const known = indexes.get(pool);
  if (known !== undefined) return known;
  const { instances, openSteps, failures } = pool;
  const index: PoolIndex = {
    byId: new Map(instances.map((instance) => [instance.record.id, instance])),
    replacing: grouped(instances, ({ record }) => record.replaces),
    byOrdinal: grouped(instances, ({ record }) => record.ordinal),
    steps: grouped(openSteps, ({ instance }) => instance),
    failedFor: new Set(failures.flatMap(({ replaces }) => replaces ?? [])),
    nodes: new Map(instances.flatMap(({ pods }) => pods.flatMap(({ node }) => (node ? [[node.uid, node] as const] : [])))),
  };
  indexes.set(pool, index);
  return index;
}

/** Those for which `keyOf` gives null are in no group. */
function grouped<T, K>(items: readonly T[], keyOf: (item: T) => K | null): ReadonlyMap<K, readonly T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    if (key === null) continue;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
