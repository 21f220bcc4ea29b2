/** The places that are left while the schedule is made, and who may have which. Never gives more than there is (I12). */
import type { Instant } from "../../kernel/clock.ts";
import { PRIORITIES, type Priority } from "../../model/membership.ts";
import { compareText } from "../view.ts";
import { Lane } from "./lane.ts";
import type { Evacuee, Supply } from "./types.ts";

/** From here on a spot loses more than it keeps: it is taken only when nothing cooler is left. */
export const HOT = 0.5;
/** Of two that would serve within the same second the nearer is taken: nobody notices the difference. */
export const SAME_TIME_MS = 1_000;

export interface Place {
  readonly supply: Supply;
  readonly lane: Lane;
  /** Places, and how many of them may be taken by preemption. */
  free: number;
  preemptible: number;
  /** How many of them wait for higher ones that may have to go too, and until when; only who has nothing else gets one, and late (`held-back.ts`). */
  held: number;
  heldUntil: Instant;
  /** Lower classes start here no earlier: a higher one waits for a place until then and could have had this one (I13). */
  floor: Instant;
}

/** One way to be served: a supply, as it is to evacuees of one group. */
export interface Option {
  readonly place: Place;
  readonly breach: boolean;
  readonly preempts: Priority | null;
  readonly readyInMs: number;
  /** What is worse whatever the time: farther than the limit, then hot, then by preemption. Lower is better. */
  readonly tier: number;
}

/** Evacuees of one pool, class and limit: the same supplies serve them. */
export interface Group {
  readonly pool: string;
  readonly priority: Priority;
  readonly latencyLimitMs: number;
  readonly options: readonly Option[];
}

/** What decides which group one belongs to. */
export type Grouped = Pick<Evacuee, "pool" | "priority" | "latencyLimitMs">;

export class Book {
  readonly places: readonly Place[];
  readonly lanes: readonly Lane[];
  /** By pool: it has one priority and one limit, else the others follow. */
  readonly #groups = new Map<string, Group[]>();

  constructor(supplies: readonly Supply[], now: Instant) {
    const inOrder = supplies.toSorted((a, b) => compareText(a.id, b.id));
    const lanes = new Map<string, Lane>();
    for (const { absorption } of inOrder) if (!lanes.has(absorption.site)) lanes.set(absorption.site, new Lane(absorption, now));
    this.lanes = [...lanes.values()];
    this.places = inOrder.flatMap((supply) => {
      const lane = lanes.get(supply.absorption.site);
      const free = Math.max(0, Math.floor(supply.free));
      const preemptible = Math.min(free, Math.max(0, Math.floor(supply.preemptible?.count ?? 0)));
      return lane ? [{ supply, lane, free, preemptible, held: 0, heldUntil: now, floor: now }] : [];
    });
  }

  /** The group of one, with all that may serve it in the order in which equals are taken. */
  groupOf(evacuee: Grouped): Group {
    const { pool, priority, latencyLimitMs } = evacuee;
    const own = this.#groups.get(pool) ?? [];
    const known = own.find((group) => group.priority === priority && group.latencyLimitMs === latencyLimitMs);
    if (known) return known;
    const options = this.places
      .flatMap((place) => optionOf(place, evacuee) ?? [])
      .toSorted(
        (a, b) =>
          a.tier - b.tier ||
          // The least important makes room first.
          (b.preempts === null ? 0 : rankOf(b.preempts)) - (a.preempts === null ? 0 : rankOf(a.preempts)) ||
          Number(a.place.supply.kind === "on_demand") - Number(b.place.supply.kind === "on_demand") ||
          a.place.supply.latencyMs - b.place.supply.latencyMs ||
          compareText(a.place.supply.id, b.place.supply.id),
      );
    const group = { pool, priority, latencyLimitMs, options };
    this.#groups.set(pool, [...own, group]);
    return group;
  }

  take(option: Option): void {
    option.place.free -= 1;
    if (option.preempts !== null) option.place.preemptible -= 1;
    else option.place.preemptible = Math.min(option.place.preemptible, option.place.free);
  }

  release(option: Option): void {
    option.place.free += 1;
    if (option.preempts !== null) option.place.preemptible += 1;
  }
}

/** And not held back for somebody else. */
export function isLeft({ place, preempts }: Option): boolean {
  return (preempts === null ? place.free : place.preemptible) > place.held;
}

/** 0 is the most urgent class. */
export function rankOf(priority: Priority): number {
  return PRIORITIES.indexOf(priority);
}

/** Standby of a class makes room for every higher one; that of the highest for nobody. */
export function roomFor(priority: Priority, count: number, readyInMs: number): Supply["preemptible"] {
  return rankOf(priority) === 0 ? null : { priority, count, readyInMs };
}

function optionOf(place: Place, { pool, priority, latencyLimitMs }: Grouped): Option | undefined {
  const { supply } = place;
  if (!supply.passing) return undefined;
  const isOwn = supply.pool === null || supply.pool === pool;
  const room = supply.preemptible;
  if (!isOwn && (room === null || rankOf(room.priority) <= rankOf(priority))) return undefined;
  const breach = supply.latencyMs > latencyLimitMs;
  return {
    place,
    breach,
    preempts: isOwn || room === null ? null : room.priority,
    readyInMs: isOwn ? supply.readyInMs : (room?.readyInMs ?? supply.readyInMs),
    tier: (breach ? 4 : 0) + (supply.heat >= HOT ? 2 : 0) + (isOwn ? 0 : 1),
  };
}
