/** What could take over, as the schedule sees it: the warm standby of each pool, and machines that may still be made. Pure. */
import type { Priority } from "../model/membership.ts";
import { isCandidate } from "../model/phase.ts";
import type { CapacityView } from "../plan/evacuation/capacity-view.ts";
import { SITE } from "../observe/spots.ts";
import { roomFor } from "../plan/evacuation/book.ts";
import { standbySupplyId } from "../plan/evacuation/turn.ts";
import type { Absorption, Supply } from "../plan/evacuation/types.ts";
import { sizeOf } from "../plan/scaling/size-of.ts";
import type { PoolSnapshot } from "../plan/snapshot.ts";
import { isWarm } from "../plan/standby.ts";

export const ON_DEMAND = `on_demand/${SITE}`;
/**
 * Beyond what NodePools let be made, running machines may have room that nobody tells of: so many candidates of a pool, or a quarter of its size, may look
 * for it at once, whatever the others do. One that has found its place lets the next one look.
 */
export const MOST_UNPLACED = 10;
/** Room that the candidates of a pool may look for. */
export function roomSupplyId(pool: string): string {
  return `room/${pool}`;
}

/** Nobody says that there is an end. */
const BOUNDLESS = 1_000_000;

/** What of a pool counts for the schedules of all pools. */
export interface PoolSupply {
  readonly pool: string;
  readonly priority: Priority;
  readonly warm: number;
  /** Candidates that have no machine yet. */
  readonly unplaced: number;
  /** More candidates that may look for room. */
  readonly mayLook: number;
}

export function poolSupplyOf(pool: PoolSnapshot): PoolSupply {
  const unplaced = pool.instances.filter(({ record, pods }) => isCandidate(record.phase) && pods.every(({ node }) => node === null)).length;
  return {
    pool: pool.pool,
    priority: pool.spec.priority,
    warm: pool.instances.filter((instance) => isWarm(pool, instance)).length,
    unplaced,
    mayLook: Math.max(0, MOST_UNPLACED - unplaced, Math.ceil(sizeOf(pool) / 4) - unplaced),
  };
}

/** `reserved` tells how many of a supply are promised and not used yet. */
export function suppliesOf(
  pools: readonly PoolSupply[],
  capacity: CapacityView,
  absorption: Absorption,
  reserved: (supply: string) => number,
): readonly Supply[] {
  // One site is all there is: its distance is the same for every place.
  const here = { site: SITE, provider: "local", zone: "", instanceType: "", latencyMs: 0, heat: 0, passing: true, absorption };
  const standby = pools
    .filter(({ warm }) => warm > 0)
    .map(({ pool, priority, warm }): Supply => {
      const id = standbySupplyId(pool);
      const free = Math.max(0, warm - reserved(id));
      return { ...here, id, kind: "standby", pool, free, readyInMs: 0, preemptible: roomFor(priority, free, capacity.readyInMs) };
    });
  const made = { ...here, kind: "on_demand", boundBy: "quota", readyInMs: capacity.readyInMs, preemptible: null } as const;
  // Those on their way take machines that are not counted yet.
  const coming = pools.reduce((sum, { unplaced }) => sum + unplaced, 0);
  const machines = machinesLeft(capacity) - reserved(ON_DEMAND) - coming;
  const sought = pools.map(({ pool, mayLook }): Supply => {
    const id = roomSupplyId(pool);
    return { ...made, id, pool, free: Math.max(0, mayLook - reserved(id)) };
  });
  return [...standby, { ...made, id: ON_DEMAND, pool: null, free: Math.max(0, machines) }, ...sought];
}

function machinesLeft({ quotas }: CapacityView): number {
  if (quotas.length === 0 || quotas.some(({ limit }) => limit === null)) return BOUNDLESS;
  return quotas.reduce((sum, { limit, machines }) => sum + Math.max(0, (limit ?? 0) - machines), 0);
}

/** The pool whose standby a supply is; null when it is none. */
export function standbyPoolOf(supply: string): string | null {
  const prefix = standbySupplyId("");
  return supply.startsWith(prefix) ? supply.slice(prefix.length) : null;
}

/** For comparisons: whether anything that a schedule is made from is different. */
export function isSameSupply(a: PoolSupply | undefined, b: PoolSupply): boolean {
  return a !== undefined && a.priority === b.priority && a.warm === b.warm && a.unplaced === b.unplaced && a.mayLook === b.mayLook;
}
