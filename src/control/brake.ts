/**
 * The brake: when more than half of all instances fail our check at once, nobody announced it and nobody else sees it, the observer is suspected first.
 * What the gateway also sees failing, or the API server calls not ready, has its second witness and is no longer held.
 */
import type { Instant } from "../kernel/clock.ts";
import type { InstanceSnapshot, PoolSnapshot } from "../plan/snapshot.ts";

export const BRAKE_SHARE = 0.5;
export const BRAKE_WINDOW_MS = 60_000;

/** From the last snapshot of each pool: what the observer believed of everything that it watches. */
export function brakeOf(pools: readonly PoolSnapshot[]): PoolSnapshot["brake"] {
  const watched = pools.flatMap(({ instances }) => instances.filter(isWatched));
  const suspect = mostAtOnce(watched.flatMap((instance) => suspectSince(instance) ?? []));
  return suspect > watched.length * BRAKE_SHARE ? { suspect, total: watched.length } : null;
}

function isWatched({ record }: InstanceSnapshot): boolean {
  return record.phase === "serving" || record.phase === "admitted" || record.phase === "draining";
}

/** Undefined when it is none: it is well, or somebody else says that it is not. */
function suspectSince({ health, pods, evidence, witnessed }: InstanceSnapshot): Instant | undefined {
  if (health.state !== "failing" || witnessed || evidence.length > 0) return undefined;
  return pods.every(({ node }) => node?.ready === true) ? health.since : undefined;
}

/** How many began within one window. That they began together is what is suspicious, however long ago it was: time is no second witness. */
function mostAtOnce(begun: readonly Instant[]): number {
  const inOrder = begun.toSorted((a, b) => a - b);
  let most = 0;
  for (let first = 0, last = 0; last < inOrder.length; last += 1) {
    while ((inOrder[last] ?? 0) - (inOrder[first] ?? 0) > BRAKE_WINDOW_MS) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}
