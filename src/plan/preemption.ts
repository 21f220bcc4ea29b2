/**
 * Who makes room for whom (S12, I13): a replacement of a more important pool that has found no place for a while takes that of a standby of a less important
 * one. Pure. The schedule foresees this where it knows what there is; what nobody foresaw is seen here, by who waits.
 */
import type { Instant } from "../kernel/clock.ts";
import { PRIORITIES, type Priority } from "../model/membership.ts";
import { compareText, isHeld, isStandby } from "./view.ts";
import type { InstanceSnapshot, PoolSnapshot } from "./snapshot.ts";

/** A machine that runs has its room at once; only who waits longer takes somebody else's. */
export const MAKES_ROOM_AFTER_MS = 5_000;

/** How many of its standby this pool must do without now. `pools`: the last snapshots of all, this one's may be among them. */
export function roomToMake(pool: PoolSnapshot, pools: readonly PoolSnapshot[], now: Instant): number {
  if (pool.spec.standby.count === 0 || !pool.instances.some(isStandby)) return 0;
  const others = pools.filter((other) => other.pool !== pool.pool);
  const wanted = others
    .filter((other) => isMoreImportant(other.spec.priority, pool.spec.priority))
    .flatMap(({ instances }) => instances.filter((instance) => waitsForPlace(instance, now))).length;
  if (wanted === 0) return 0;
  // The least important give first; what they have is no longer asked of the others.
  const given = others
    .filter((other) => givesBefore(other, pool))
    .reduce(
      (sum, { instances, spec }) => sum + Math.min(spec.standby.count, instances.filter((each) => isStandby(each) && isHeld(each)).length),
      0,
    );
  return Math.min(pool.spec.standby.count, Math.max(0, wanted - given));
}

function waitsForPlace({ record, pods }: InstanceSnapshot, now: Instant): boolean {
  if (record.purpose !== "replace" || record.phase !== "preparing" || now < record.phaseSince + MAKES_ROOM_AFTER_MS) return false;
  return pods.every(({ scheduledAt }) => scheduledAt === null);
}

function isMoreImportant(a: Priority, b: Priority): boolean {
  return PRIORITIES.indexOf(a) < PRIORITIES.indexOf(b);
}

function givesBefore(other: PoolSnapshot, pool: PoolSnapshot): boolean {
  if (other.spec.priority !== pool.spec.priority) return isMoreImportant(pool.spec.priority, other.spec.priority);
  return compareText(other.pool, pool.pool) < 0;
}
