/**
 * Where requests wait when nothing can serve them: bounded by number, per route and over all, and by time; the more urgent first, then in the order of
 * arrival. When all places are taken a more urgent one displaces the last of the least urgent. Time comes in as an argument.
 */
import { PRIORITIES, type Priority } from "../model/membership.ts";

/** Where those wait that may go to one member only. */
export function laneOf(member: { readonly route: string; readonly instance: string; readonly incarnation: number }): string {
  return `${member.route} ${member.instance} ${member.incarnation}`;
}

export type QueueRefusal = "queue_timeout" | "displaced" | "stopping";

export interface Waiter {
  /** A route's name, or a member's lane. */
  readonly queueRoute: string;
  readonly priority: Priority;
  /** Monotonic ms. */
  readonly queueUntil: number;
  /** It lost its place: the time is over, or a more urgent one came. */
  queueRefused(why: QueueRefusal): void;
}

type Lane = readonly Set<Waiter>[];

export class WaitingRoom {
  readonly #lanes = new Map<string, Lane>();
  readonly #limit: number;
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#size;
  }

  waiting(route: string): number {
    return (this.#lanes.get(route) ?? []).reduce((sum, places) => sum + places.size, 0);
  }

  /** False when it is full: `routeLimit` bounds this route's places. */
  join(waiter: Waiter, routeLimit: number): boolean {
    if (this.waiting(waiter.queueRoute) >= routeLimit && !this.#displace(waiter, waiter.queueRoute)) return false;
    if (this.#size >= this.#limit && !this.#displace(waiter)) return false;
    this.#places(waiter).add(waiter);
    this.#size += 1;
    return true;
  }

  leave(waiter: Waiter): void {
    const lane = this.#lanes.get(waiter.queueRoute);
    if (lane === undefined || !lane.some((places) => places.delete(waiter))) return;
    this.#size -= 1;
    if (lane.every((places) => places.size === 0)) this.#lanes.delete(waiter.queueRoute);
  }

  /** The next of a route, without taking it away. */
  first(route: string): Waiter | undefined {
    const lane = this.#lanes.get(route);
    if (lane === undefined) return undefined;
    for (const places of lane) for (const waiter of places) return waiter;
    return undefined;
  }

  /** Refuses those whose time is over. */
  expire(now: number): void {
    this.#refuseThose((waiter) => waiter.queueUntil <= now, "queue_timeout");
  }

  refuseAll(): void {
    this.#refuseThose(() => true, "stopping");
  }

  #refuseThose(are: (waiter: Waiter) => boolean, why: QueueRefusal): void {
    if (this.#size === 0) return;
    const found = [...this.#lanes.values()].flatMap((lane) => lane.flatMap((places) => [...places].filter(are)));
    for (const waiter of found) this.#refuse(waiter, why);
  }

  /** Takes the last of the least urgent that is less urgent than `waiter`; only of `route` when it is given. */
  #displace(waiter: Waiter, route?: string): boolean {
    const lanes = route === undefined ? [...this.#lanes.values()] : [this.#lanes.get(route) ?? []];
    for (let rank = PRIORITIES.length - 1; rank > PRIORITIES.indexOf(waiter.priority); rank--) {
      for (const lane of lanes) {
        const last = [...(lane[rank] ?? [])].at(-1);
        if (last === undefined) continue;
        this.#refuse(last, "displaced");
        return true;
      }
    }
    return false;
  }

  #refuse(waiter: Waiter, why: QueueRefusal): void {
    this.leave(waiter);
    waiter.queueRefused(why);
  }

  #places(waiter: Waiter): Set<Waiter> {
    let lane = this.#lanes.get(waiter.queueRoute);
    if (lane === undefined) {
      lane = PRIORITIES.map(() => new Set<Waiter>());
      this.#lanes.set(waiter.queueRoute, lane);
    }
    return lane[PRIORITIES.indexOf(waiter.priority)] ?? new Set();
  }
}
