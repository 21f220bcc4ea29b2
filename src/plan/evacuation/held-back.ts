/**
 * Standby that is held back for a higher class (S12, I13). Where some of a pool had to go, others follow within minutes, and nobody tells of them beforehand. What
 * they would find neither in their own standby nor on demand in time is held back in the standby of lower classes, the lowest first. Whom it belongs to, or who may
 * take its room, goes elsewhere while that is in time, and else has it at the last moment that is, or at once when that is over: nothing is kept for who may never come
 * from one who is there, and no lower class gets it before a higher one that has nothing.
 */
import type { Instant } from "../../kernel/clock.ts";
import type { Priority } from "../../model/membership.ts";
import { compareText } from "../view.ts";
import { type Book, type Option, type Place, rankOf } from "./book.ts";
import { EXPOSED_FOR_MS } from "./exposure.ts";
import type { Mover } from "./movers.ts";
import type { Exposed } from "./types.ts";

/** So long before the last moment, besides what the starts of all that is held back take at its site: a look must come in time. */
const MARGIN_MS = 2_000;

/** Before the turns of a class, after those of the higher ones. */
export function holdBack(book: Book, priority: Priority, exposed: readonly Exposed[]): void {
  for (const place of book.places) place.held = 0;
  const higher = exposed
    .filter((each) => rankOf(each.priority) < rankOf(priority))
    .toSorted((a, b) => rankOf(a.priority) - rankOf(b.priority) || compareText(a.pool, b.pool));
  if (higher.length === 0) return;
  const left = new Map(book.places.map((place) => [place, place.free]));
  const givers = book.places
    .filter(({ supply: { kind, passing, preemptible } }) => kind === "standby" && passing && preemptible !== null)
    .filter(({ supply: { preemptible } }) => preemptible !== null && rankOf(preemptible.priority) >= rankOf(priority))
    .toSorted((a, b) => rankOfRoom(b) - rankOfRoom(a));
  for (const each of higher) {
    let open = each.count;
    const inTime = (readyInMs: number): boolean => readyInMs + each.workMs <= each.leadMs;
    for (const { place, preempts, readyInMs } of book.groupOf(each).options) {
      if (preempts !== null || !inTime(readyInMs)) continue;
      const own = Math.min(open, left.get(place) ?? 0);
      left.set(place, (left.get(place) ?? 0) - own);
      open -= own;
    }
    for (const place of givers) {
      if (!inTime(place.supply.preemptible?.readyInMs ?? place.supply.readyInMs)) continue;
      const more = Math.max(0, Math.min(open, place.preemptible - place.held));
      if (more === 0) continue;
      place.held += more;
      place.heldUntil = Math.max(place.heldUntil, each.until);
      open -= more;
    }
  }
}

/** It is there, and kept for others. */
export function isHeldBack({ place, preempts }: Option): boolean {
  return place.held > 0 && (preempts === null ? place.free : place.preemptible) > 0;
}

/**
 * The last moment at which one that has nothing else is given a place that is held back; undefined when it would not be in time there. Whoever comes and goes above
 * it, nobody waits longer for that than others are expected to follow.
 */
export function lastCall({ evacuee, deadline, workMs }: Mover, option: Option): Instant | undefined {
  const { place, readyInMs } = option;
  if (!isHeldBack(option)) return undefined;
  const latest = deadline - workMs - readyInMs;
  const at = place.lane.next(place.floor);
  if (at > latest || at === Infinity) return undefined;
  const startsMs = (place.held / place.lane.perSecond) * 1_000;
  return Math.max(at, Math.min(place.heldUntil, evacuee.noticedAt + EXPOSED_FOR_MS, Math.floor(latest - startsMs - MARGIN_MS)));
}

function rankOfRoom({ supply: { preemptible } }: Place): number {
  return preemptible === null ? 0 : rankOf(preemptible.priority);
}
