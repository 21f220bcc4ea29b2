/**
 * The brake: when more than half of all instances fail our check at once, nobody announced it and nobody else sees it, the observer is suspected first.
 * What the gateway also sees failing, or the API server calls not ready, has its second witness and is no longer held.
 */
import type { Instant } from "../kernel/clock.ts";
import type { InstanceSnapshot, PoolSnapshot } from "../plan/snapshot.ts";

export const BRAKE_SHARE = 0.5;
export const BRAKE_WINDOW_MS = 60_000;

/** From the last snapshot of each pool: what the observer believed of everything that it watches. */
export function brakeOf(pools: readonly PoolSnapshot[], now: Instant): PoolSnapshot["brake"] {
  const watched = pools.flatMap(({ instances }) => instances.filter(isWatched));
  const suspect = watched.filter((instance) => isSuspect(instance, now)).length;
  return suspect > watched.length * BRAKE_SHARE ? { suspect, total: watched.length } : null;
}

function isWatched({ record }: InstanceSnapshot): boolean {
  return record.phase === "serving" || record.phase === "admitted" || record.phase === "draining";
}

function isSuspect(instance: InstanceSnapshot, now: Instant): boolean {
  const { health, pods, evidence } = instance;
  if (health.state !== "failing" || now - health.since > BRAKE_WINDOW_MS || instance.witnessed) return false;
  return evidence.length === 0 && pods.every(({ node }) => node?.ready === true);
}
