/**
 * The evacuation schedule: who goes where and when, over all pools that share supply. Pure; the order of the input has no meaning (I17).
 *
 * 1. Class after class, critical first: no lower class starts at a place that a higher one waits for and could have used sooner (I13). Within a class the
 *    one that must start earliest comes first; what has no deadline any more comes after those that can still be in time.
 * 2. Each start takes a token of its site and a place of its supply: never more than there are (I12).
 * 3. Of the places that serve in time: within the latency limit before beyond it (S5), cool spots before hot ones, free room before preempted room; then
 *    what serves first, and within the same second the nearest, standby before on demand.
 * 4. One that finds nothing may have the place of another of its class that can go elsewhere.
 * 5. Who cannot be in time is told so at once, with what is missing, and comes after those of its class who can: a late place is better than none.
 * 6. A reservation stays where it is until it ends; one whose supply fails its check is given up (S4).
 */
import type { Instant } from "../../kernel/clock.ts";
import { PRIORITIES } from "../../model/membership.ts";
import { compareText } from "../view.ts";
import { Book, groupOf, isLeft, type Option, rankOf, SAME_TIME_MS } from "./book.ts";
import { missingFor } from "./missing.ts";
import { predict } from "./prediction.ts";
import type { EvacuationInput, EvacuationPlan, Evacuee, Grant, Reservation } from "./types.ts";

/** A place that is not used within this time is given to somebody else. */
export const RESERVATION_MS = 15_000;
/** How many of those who hold a place are asked whether they can go elsewhere: of one group for one that found none, and in all of a class. */
const MOST_ASKED_AT_ONCE = 32;
const MOST_ASKED = 4_000;
const MOST_SWEEPS = 3;

interface Turn {
  readonly evacuee: Evacuee;
  readonly option: Option;
  startAt: Instant;
}

export function planEvacuation({ now, evacuees, supplies, reservations }: EvacuationInput): EvacuationPlan {
  const book = new Book(supplies, now);
  const wanted = distinct(evacuees);
  const kept = keepReservations(wanted, reservations, book, now);
  const grants: Grant[] = [...kept.values()];
  for (const priority of PRIORITIES) {
    const waiting = wanted.filter((each) => each.priority === priority && !kept.has(each.id));
    if (waiting.length > 0) grants.push(...new ClassSchedule(book, now).plan(waiting));
  }
  return { grants, prediction: predict(wanted, grants, book), nextLookAt: nextLook(grants, now) };
}

/** One entry for each id: the first notice, the earliest deadline, and of all else the first in order. */
function distinct(evacuees: readonly Evacuee[]): readonly Evacuee[] {
  const byId = new Map<string, Evacuee>();
  for (const each of evacuees) {
    const known = byId.get(each.id);
    byId.set(each.id, known ? merged(known, each) : each);
  }
  return [...byId.values()].toSorted(compareTurns);
}

function merged(a: Evacuee, b: Evacuee): Evacuee {
  const [first] = [a, b].toSorted(compareTurns);
  return {
    ...(first ?? a),
    noticedAt: Math.min(a.noticedAt, b.noticedAt),
    deadline: a.deadline === null || b.deadline === null ? (a.deadline ?? b.deadline) : Math.min(a.deadline, b.deadline),
  };
}

function compareTurns(a: Evacuee, b: Evacuee): number {
  return (
    rankOf(a.priority) - rankOf(b.priority) ||
    lastStart(a) - lastStart(b) ||
    a.noticedAt - b.noticedAt ||
    compareText(a.id, b.id) ||
    compareText(groupOf(a), groupOf(b)) ||
    workOf(a) - workOf(b)
  );
}

function workOf({ stateMoveMs, warmUpMs }: Evacuee): number {
  return stateMoveMs + warmUpMs;
}

/** When it must start at the latest, at a place that is ready; without a deadline far away, but a number: differences are taken of it. */
function lastStart(evacuee: Evacuee): Instant {
  return (evacuee.deadline ?? Number.MAX_SAFE_INTEGER) - workOf(evacuee);
}

function keepReservations(
  wanted: readonly Evacuee[],
  reservations: readonly Reservation[],
  book: Book,
  now: Instant,
): ReadonlyMap<string, Grant> {
  const live = new Map<string, Reservation>();
  for (const each of reservations.toSorted((a, b) => compareText(a.supply, b.supply) || a.until - b.until))
    if (each.until > now && !live.has(each.evacuee)) live.set(each.evacuee, each);
  const kept = new Map<string, Grant>();
  for (const evacuee of live.size === 0 ? [] : wanted) {
    const held = live.get(evacuee.id);
    const place = held && book.places.find(({ supply }) => supply.id === held.supply);
    if (!held || !place?.supply.passing) continue;
    kept.set(evacuee.id, {
      kind: "go",
      evacuee: evacuee.id,
      supply: held.supply,
      servingAt: held.servingAt ?? now + place.supply.readyInMs + workOf(evacuee),
      breach: place.supply.latencyMs > evacuee.latencyLimitMs,
      preempts: held.preempts ?? null,
      reservedUntil: held.until,
    });
  }
  return kept;
}

function nextLook(grants: readonly Grant[], now: Instant): Instant | null {
  const times = grants.flatMap((grant) => {
    if (grant.kind === "go") return [grant.reservedUntil];
    if (grant.kind === "wait") return [grant.startAt];
    return grant.late === null ? [] : [grant.reservedUntil ?? grant.late.startAt];
  });
  return times.reduce<Instant | null>((earliest, at) => (at > now && at < (earliest ?? Infinity) ? at : earliest), null);
}

/** The turns of one class. */
class ClassSchedule {
  readonly #book: Book;
  readonly #now: Instant;
  readonly #turns = new Map<string, Turn>();
  /** By lane, in the order in which they were given: from the most to the least urgent. */
  readonly #byLane = new Map<string, Map<string, Turn[]>>();
  #asks = MOST_ASKED;

  constructor(book: Book, now: Instant) {
    this.#book = book;
    this.#now = now;
  }

  plan(evacuees: readonly Evacuee[]): readonly Grant[] {
    let left = evacuees;
    for (let sweep = 0; sweep < MOST_SWEEPS && left.length > 0; sweep += 1) {
      const failed = left.filter((evacuee) => !this.#give(evacuee, true) && !this.#exchange(evacuee));
      // What an exchange has made free may be what an earlier one looked for.
      if (failed.length === left.length || (sweep === 0 && this.#turns.size === 0)) break;
      left = failed;
    }
    const unsaved = evacuees.filter(({ id }) => !this.#turns.has(id));
    const why = new Map(unsaved.map((evacuee) => [evacuee.id, missingFor(evacuee, this.#book, workOf(evacuee), this.#now)]));
    for (const evacuee of unsaved) this.#give(evacuee, false);
    this.#raiseFloors();
    return evacuees.map((evacuee) => this.#grantOf(evacuee, why.get(evacuee.id)));
  }

  /** The best place that is left; with `inTime` only where it serves before its deadline. */
  #give(evacuee: Evacuee, inTime: boolean): boolean {
    const best = this.#best(evacuee, inTime ? (evacuee.deadline ?? Infinity) : Infinity, null);
    if (!best) return false;
    this.#enter({ evacuee, option: best, startAt: best.place.lane.take(best.place.floor) });
    this.#book.take(best);
    return true;
  }

  #best(evacuee: Evacuee, deadline: Instant, notOn: string | null): Option | undefined {
    const work = workOf(evacuee);
    let best: Option | undefined;
    let bestSlot = Infinity;
    for (const option of this.#book.optionsOf(evacuee)) {
      if (best && option.tier > best.tier) break;
      if (!isLeft(option) || option.place.lane.site === notOn) continue;
      const servingAt = option.place.lane.next(option.place.floor) + option.readyInMs + work;
      if (servingAt > deadline || servingAt === Infinity) continue;
      const slot = Math.floor((servingAt - this.#now - work) / SAME_TIME_MS);
      if (slot >= bestSlot) continue;
      best = option;
      bestSlot = slot;
    }
    return best;
  }

  #enter(turn: Turn): void {
    this.#turns.set(turn.evacuee.id, turn);
    const site = turn.option.place.lane.site;
    const groups = this.#byLane.get(site) ?? new Map<string, Turn[]>();
    this.#byLane.set(site, groups);
    const group = groupOf(turn.evacuee);
    const turns = groups.get(group);
    if (turns) turns.push(turn);
    else groups.set(group, [turn]);
  }

  #leave(turn: Turn): void {
    const turns = this.#byLane.get(turn.option.place.lane.site)?.get(groupOf(turn.evacuee));
    const index = turns?.indexOf(turn) ?? -1;
    if (index >= 0) turns?.splice(index, 1);
  }

  /** Another of the class gives up its place, or its turn, because it can go elsewhere. */
  #exchange(evacuee: Evacuee): boolean {
    if (this.#asks <= 0 || this.#book.places.every(({ free }) => free === 0)) return false;
    for (const option of this.#book.optionsOf(evacuee)) {
      const latest = (evacuee.deadline ?? Infinity) - workOf(evacuee) - option.readyInMs;
      for (const turns of this.#byLane.get(option.place.lane.site)?.values() ?? []) {
        const found = this.#movable(turns, option, latest);
        if (!found) continue;
        this.#swap(evacuee, option, found.turn, found.to);
        return true;
      }
    }
    return false;
  }

  #movable(turns: readonly Turn[], wanted: Option, latest: Instant): { readonly turn: Turn; readonly to: Option } | undefined {
    const needsPlace = !isLeft(wanted);
    const least = Math.max(0, turns.length - MOST_ASKED_AT_ONCE);
    for (let index = turns.length - 1; index >= least && this.#asks > 0; index -= 1) {
      const turn = turns[index];
      this.#asks -= 1;
      if (!turn || turn.startAt > latest) continue;
      if (needsPlace && (turn.option.place !== wanted.place || turn.option.preempts !== wanted.preempts)) continue;
      const to = this.#best(turn.evacuee, turn.evacuee.deadline ?? Infinity, needsPlace ? null : wanted.place.lane.site);
      if (to) return { turn, to };
    }
    return undefined;
  }

  #swap(evacuee: Evacuee, option: Option, turn: Turn, to: Option): void {
    this.#leave(turn);
    this.#book.release(turn.option);
    this.#book.take(option);
    this.#enter({ evacuee, option, startAt: turn.startAt });
    this.#enter({ evacuee: turn.evacuee, option: to, startAt: to.place.lane.take(to.place.floor) });
    this.#book.take(to);
  }

  /** Where one that waits could have started sooner, nobody of a lower class does. */
  #raiseFloors(): void {
    const latest = Math.max(...[...this.#turns.values()].map(({ startAt }) => startAt));
    const open = new Set(
      this.#book.places.filter((place) => (place.free > 0 || place.preemptible > 0) && place.lane.next(place.floor) < latest),
    );
    if (open.size === 0) return;
    for (const { evacuee, option, startAt } of this.#turns.values()) {
      for (const other of this.#book.optionsOf(evacuee)) {
        if (other.tier > option.tier) break;
        if (!open.has(other.place) || !isLeft(other)) continue;
        if (other.place.lane.next(other.place.floor) + other.readyInMs >= startAt + option.readyInMs) continue;
        other.place.floor = Math.max(other.place.floor, startAt);
      }
    }
  }

  #grantOf(evacuee: Evacuee, why: ReturnType<typeof missingFor> | undefined): Grant {
    const turn = this.#turns.get(evacuee.id);
    const placement = turn && {
      supply: turn.option.place.supply.id,
      startAt: turn.startAt,
      servingAt: turn.startAt + turn.option.readyInMs + workOf(evacuee),
      breach: turn.option.breach,
      preempts: turn.option.preempts,
    };
    const isNow = placement !== undefined && placement.startAt <= this.#now;
    const reservedUntil = isNow ? this.#now + RESERVATION_MS : null;
    if (why || !placement)
      return {
        kind: "unsavable",
        evacuee: evacuee.id,
        why: why?.why ?? "supply",
        missing: why?.missing ?? "a place",
        late: placement ?? null,
        reservedUntil,
      };
    if (reservedUntil === null) return { kind: "wait", evacuee: evacuee.id, ...placement };
    const { startAt: _, ...where } = placement;
    return { kind: "go", evacuee: evacuee.id, reservedUntil, ...where };
  }
}
