/** What became of the instances whose nodes were announced to go, from what the controller's API tells of them. Pure. */
import type { Priority } from "../../model/membership.ts";
import type { InstanceView } from "../../server/views.ts";

export interface Evacuee {
  readonly instance: string;
  readonly pool: string;
  readonly priority: Priority;
  /** Its place in the pool, which its successor gets. */
  readonly ordinal: number;
  readonly node: string;
  /** Ms since the epoch. */
  readonly noticedAt: number;
}

export interface Fate extends Evacuee {
  readonly successor: string | null;
  /** Whether it was warm when the notice came. */
  readonly byStandby: boolean;
  /** When it was admitted, or seen to serve; null while it does neither. */
  readonly servingAt: number | null;
  /** `forced`: its process was lost before its work was done; null while that is open. */
  readonly seal: "confirmed" | "forced" | "assumed" | null;
}

/** `servingSince`: when each instance was first seen to serve, for those that went on since. */
export function fatesOf(
  evacuees: readonly Evacuee[],
  instances: readonly InstanceView[],
  servingSince: ReadonlyMap<string, number>,
): readonly Fate[] {
  const byId = new Map(instances.map((each) => [each.id, each]));
  return evacuees.map((evacuee) => {
    const successors = successorsOf(evacuee, instances);
    const servedAtOf = (each: InstanceView): number | null => servingSince.get(each.id) ?? servedAt(each);
    const successor = successors.find((each) => servedAtOf(each) !== null) ?? successors.at(-1);
    return {
      ...evacuee,
      successor: successor?.id ?? null,
      byStandby: successor !== undefined && Date.parse(successor.createdAt) < evacuee.noticedAt,
      servingAt: successor === undefined ? null : servedAtOf(successor),
      seal: byId.get(evacuee.instance)?.seal ?? null,
    };
  });
}

/** Who took its place, in the order of their making: also one that filled it after it had left. Candidates that failed took nobody's. */
function successorsOf({ instance, pool, ordinal, noticedAt }: Evacuee, instances: readonly InstanceView[]): readonly InstanceView[] {
  const fills = (each: InstanceView): boolean =>
    each.replaces === null && each.pool === pool && each.ordinal === ordinal && Date.parse(each.createdAt) >= noticedAt;
  return instances
    .filter((each) => each.failure === null && each.id !== instance && (each.replaces === instance || fills(each)))
    .toSorted((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
}

/** One that drains, or has, served before: its own node was announced too, and nobody may have looked in between. */
function servedAt({ phase, phaseSince, drain, seal }: InstanceView): number | null {
  if (phase === "serving") return Date.parse(phaseSince);
  if (drain === null || (seal === null && phase !== "draining")) return null;
  return Date.parse(drain.since ?? phaseSince);
}

export interface ClassOutcome {
  readonly noticed: number;
  readonly replaced: number;
  readonly byStandby: number;
  /** Whose process was lost before its work was done. */
  readonly forced: number;
  /** From its notice to its successor's service. */
  readonly meanMs: number | null;
  readonly lastMs: number | null;
}

export function outcomeOf(fates: readonly Fate[]): ClassOutcome {
  const times = fates.flatMap(({ servingAt, noticedAt }) => (servingAt === null ? [] : [Math.max(0, servingAt - noticedAt)]));
  return {
    noticed: fates.length,
    replaced: times.length,
    byStandby: fates.filter(({ byStandby, servingAt }) => byStandby && servingAt !== null).length,
    forced: fates.filter(({ seal }) => seal === "forced").length,
    meanMs: times.length === 0 ? null : Math.round(times.reduce((sum, each) => sum + each, 0) / times.length),
    lastMs: times.length === 0 ? null : Math.max(...times),
  };
}

/** In which order they came to serve, by class: `critical ×3, batch ×1, …`. */
export function orderOf(fates: readonly Fate[]): string {
  const inOrder = fates
    .filter((fate): fate is Fate & { readonly servingAt: number } => fate.servingAt !== null)
    .toSorted((a, b) => a.servingAt - b.servingAt || (a.instance < b.instance ? -1 : 1));
  const runs: { readonly priority: Priority; count: number }[] = [];
  for (const { priority } of inOrder) {
    const last = runs.at(-1);
    if (last?.priority === priority) last.count += 1;
    else runs.push({ priority, count: 1 });
  }
  return runs.map(({ priority, count }) => `${priority} ×${count}`).join(", ");
}
