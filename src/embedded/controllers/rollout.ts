/** How far a rolling update may go now: pure arithmetic after Kubernetes' deployment controller. */
import { resolveIntOrPercent } from "./views.ts";

export interface RolloutSet {
  readonly name: string;
  readonly replicas: number;
  readonly available: number;
}

export interface RolloutState {
  readonly desired: number;
  readonly maxSurge: number;
  readonly maxUnavailable: number;
  /** Absent until the new set is made. */
  readonly fresh: RolloutSet | undefined;
  /** Oldest first. */
  readonly old: readonly RolloutSet[];
}

/** Absolute bounds; when both come to nothing, one unavailable is allowed, or it would never move. */
export function rolloutBounds(
  desired: number,
  surge: number | string | undefined,
  unavailable: number | string | undefined,
): { readonly maxSurge: number; readonly maxUnavailable: number } {
  const maxSurge = resolveIntOrPercent(surge ?? "25%", desired, "up");
  const maxUnavailable = Math.min(desired, resolveIntOrPercent(unavailable ?? "25%", desired, "down"));
  return maxSurge === 0 && maxUnavailable === 0 ? { maxSurge, maxUnavailable: 1 } : { maxSurge, maxUnavailable };
}

/** The size of the new set in the next step. */
export function nextFreshSize({ desired, maxSurge, fresh, old }: RolloutState): number {
  const present = fresh?.replicas ?? 0;
  if (present >= desired) return desired;
  const total = present + old.reduce((sum, set) => sum + set.replicas, 0);
  return Math.min(desired, present + Math.max(0, desired + maxSurge - total));
}

/** The sizes of the old sets in the next step: what is not available goes first, then what is spare. */
export function nextOldSizes({ desired, maxUnavailable, fresh, old }: RolloutState): ReadonlyMap<string, number> {
  const sizes = new Map(old.map((set) => [set.name, set.replicas]));
  const minAvailable = desired - maxUnavailable;
  const total = (fresh?.replicas ?? 0) + old.reduce((sum, set) => sum + set.replicas, 0);
  const freshUnavailable = fresh === undefined ? 0 : fresh.replicas - fresh.available;
  let mayGo = total - minAvailable - freshUnavailable;
  for (const set of old) mayGo -= shrink(sizes, set.name, Math.min(mayGo, set.replicas - set.available));

  const available = (fresh?.available ?? 0) + old.reduce((sum, set) => sum + Math.min(set.available, sizes.get(set.name) ?? 0), 0);
  let spare = Math.min(mayGo, available - minAvailable);
  for (const set of old) spare -= shrink(sizes, set.name, Math.min(spare, sizes.get(set.name) ?? 0));
  return sizes;
}

function shrink(sizes: Map<string, number>, name: string, by: number): number {
  const taken = Math.max(0, by);
  sizes.set(name, (sizes.get(name) ?? 0) - taken);
  return taken;
}
