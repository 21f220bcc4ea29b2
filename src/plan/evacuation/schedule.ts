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
 * 6. Standby that higher ones may need in a moment is held back; who has nothing else gets it at the last moment, or at once when that is over.
 * 7. A reservation stays where it is until it ends; one whose supply fails its check is given up (S4).
 */
import type { Instant } from "../../kernel/clock.ts";
import { PRIORITIES } from "../../model/membership.ts";
import { compareText } from "../view.ts";
import { Book, type Group, isLeft, type Option, SAME_TIME_MS } from "./book.ts";
import { holdBack, isHeldBack, lastCall } from "./held-back.ts";
import { type Missing, missingFor } from "./missing.ts";
import { type Mover, moversOf, type Turn } from "./movers.ts";
import { predict } from "./prediction.ts";
import type { EvacuationInput, EvacuationPlan, Grant, Placement, Reservation } from "./types.ts";

/** A place that is not used within this time is given to somebody else. */
export const RESERVATION_MS = 15_000;
/** How many of those who hold a place are asked whether they can go elsewhere: of one group for one that found none, and in all of a class. */
const MOST_ASKED_AT_ONCE = 32;
const MOST_ASKED = 4_000;
const MOST_SWEEPS = 3;

export function planEvacuation({ now, evacuees, supplies, reservations, exposed = [] }: EvacuationInput): EvacuationPlan {
  const book = new Book(supplies, now);
  const wanted = moversOf(evacuees, book);
  const kept = keepReservations(wanted, reservations, book, now);
  const movers: Mover[] = [...kept.keys()];
  const grants: Grant[] = [...kept.values()];
  for (const priority of PRIORITIES) {
    const waiting = wanted.filter((mover) => mover.evacuee.priority === priority && !kept.has(mover));
    if (waiting.length === 0) continue;
    movers.push(...waiting);
    holdBack(book, priority, exposed);
    grants.push(...new ClassSchedule(book, now).plan(waiting));
  }
  return { grants, prediction: predict(movers, grants, book), nextLookAt: nextLook(grants, now) };
}

function keepReservations(
  wanted: readonly Mover[],
  reservations: readonly Reservation[],
  book: Book,
  now: Instant,
): ReadonlyMap<Mover, Grant> {
  const live = new Map<string, Reservation>();
  for (const each of reservations.toSorted((a, b) => compareText(a.supply, b.supply) || a.until - b.until))
    if (each.until > now && !live.has(each.evacuee)) live.set(each.evacuee, each);
  const kept = new Map<Mover, Grant>();
  for (const mover of live.size === 0 ? [] : wanted) {
    const { evacuee, workMs } = mover;
    const held = live.get(evacuee.id);
    const place = held && book.places.find(({ supply }) => supply.id === held.supply);
    if (!held || !place?.supply.passing) continue;
    kept.set(mover, {
      kind: "go",
      evacuee: evacuee.id,
      supply: held.supply,
      servingAt: held.servingAt ?? now + place.supply.readyInMs + workMs,
      breach: place.supply.latencyMs > evacuee.latencyLimitMs,
      preempts: held.preempts ?? null,
      reservedUntil: held.until,
    });
  }
  return kept;
}

function nextLook(grants: readonly Grant[], now: Instant): Instant | null {
  let earliest = Infinity;
  for (const grant of grants) {
    const at = changesAt(grant);
    if (at > now && at < earliest) earliest = at;
  }
  return earliest === Infinity ? null : earliest;
}

function changesAt(grant: Grant): Instant {
  if (grant.kind === "wait") return grant.startAt;
  return grant.reservedUntil ?? (grant.kind === "unsavable" ? grant.late?.startAt : undefined) ?? Infinity;
}

/** The turns of one class. */
class ClassSchedule {
  readonly #book: Book;
  readonly #now: Instant;
  /** By site and group: in the order in which they were given: from the most to the least urgent. */
  readonly #bySite = new Map<string, Map<Group, Turn[]>>();
  #asks = MOST_ASKED;

  constructor(book: Book, now: Instant) {
    this.#book = book;
    this.#now = now;
  }

  plan(movers: readonly Mover[]): readonly Grant[] {
    let left = movers;
    for (let sweep = 0; sweep < MOST_SWEEPS && left.length > 0; sweep += 1) {
      const failed = left.filter((mover) => !this.#give(mover, mover.deadline) && !this.#exchange(mover));
      // What an exchange has made free may be what an earlier one looked for.
      if (failed.length === left.length) break;
      left = failed;
    }
    for (const mover of movers) if (mover.turn === null) this.#giveHeld(mover);
    const unsaved = movers.filter(({ turn }) => turn === null);
    const why = new Map(unsaved.map((mover) => [mover, missingFor(mover, this.#now)]));
    for (const mover of unsaved) if (!this.#give(mover, Infinity)) this.#giveHeldLate(mover);
    this.#raiseFloors(movers);
    return movers.map((mover) => this.#grantOf(mover, why.get(mover)));
  }

  /** The best place that is left and serves by then. */
  #give(mover: Mover, by: Instant): boolean {
    const best = this.#best(mover, by, null);
    if (!best) return false;
    this.#enter({ mover, option: best, startAt: best.place.lane.take(best.place.floor) });
    this.#book.take(best);
    return true;
  }

  /** Before its last moment it only waits: no token is taken for that, and a higher one that comes meanwhile is asked first. */
  #giveHeld(mover: Mover): void {
    let best: { readonly option: Option; readonly startAt: Instant } | undefined;
    for (const option of mover.group.options) {
      const startAt = lastCall(mover, option);
      if (startAt !== undefined && (best === undefined || startAt < best.startAt)) best = { option, startAt };
    }
    if (!best) return;
    const { option, startAt } = best;
    const { place } = option;
    if (startAt <= this.#now) place.lane.take(place.floor);
    mover.turn = { mover, option, startAt, isHeldBack: true };
    this.#book.take(option);
    place.held -= 1;
  }

  /** Its last moment is over: what is held back is given to it at once, where it serves soonest. */
  #giveHeldLate(mover: Mover): void {
    const readyAt = ({ place, readyInMs }: Option): Instant => place.lane.next(place.floor) + readyInMs;
    const held = mover.group.options.filter((option) => isHeldBack(option) && readyAt(option) < Infinity);
    const [soonest] = held.toSorted((a, b) => readyAt(a) - readyAt(b));
    if (soonest === undefined) return;
    const { place } = soonest;
    this.#enter({ mover, option: soonest, startAt: place.lane.take(place.floor) });
    this.#book.take(soonest);
    place.held -= 1;
  }

  #best({ group, workMs }: Mover, by: Instant, notOn: string | null): Option | undefined {
    let best: Option | undefined;
    let bestSlot = Infinity;
    for (const option of group.options) {
      const { place, tier, readyInMs } = option;
      if (best && tier > best.tier) break;
      if (!isLeft(option) || place.lane.site === notOn) continue;
      const readyAt = place.lane.next(place.floor) + readyInMs;
      if (readyAt + workMs > by || readyAt === Infinity) continue;
      const slot = Math.floor((readyAt - this.#now) / SAME_TIME_MS);
      if (slot >= bestSlot) continue;
      best = option;
      bestSlot = slot;
    }
    return best;
  }

  #enter(turn: Turn): void {
    turn.mover.turn = turn;
    const { site } = turn.option.place.lane;
    const groups = this.#bySite.get(site) ?? new Map<Group, Turn[]>();
    this.#bySite.set(site, groups);
    const turns = groups.get(turn.mover.group);
    if (turns) turns.push(turn);
    else groups.set(turn.mover.group, [turn]);
  }

  #leave(turn: Turn): void {
    const turns = this.#bySite.get(turn.option.place.lane.site)?.get(turn.mover.group);
    const index = turns?.lastIndexOf(turn) ?? -1;
    if (index >= 0) turns?.splice(index, 1);
  }

  /** Another of the class gives up its place, or its turn, because it can go elsewhere. */
  #exchange(mover: Mover): boolean {
    if (this.#asks <= 0 || this.#book.places.every(({ free }) => free === 0)) return false;
    for (const option of mover.group.options) {
      const latest = mover.deadline - mover.workMs - option.readyInMs;
      for (const turns of this.#bySite.get(option.place.lane.site)?.values() ?? []) {
        const found = this.#movable(turns, option, latest);
        if (!found) continue;
        this.#swap(mover, option, found.turn, found.to);
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
      const to = this.#best(turn.mover, turn.mover.deadline, needsPlace ? null : wanted.place.lane.site);
      if (to) return { turn, to };
    }
    return undefined;
  }

  #swap(mover: Mover, option: Option, turn: Turn, to: Option): void {
    this.#leave(turn);
    this.#book.release(turn.option);
    this.#book.take(option);
    this.#enter({ mover, option, startAt: turn.startAt });
    this.#enter({ mover: turn.mover, option: to, startAt: to.place.lane.take(to.place.floor) });
    this.#book.take(to);
  }

  /** Where one that waits could have started sooner, nobody of a lower class does. */
  #raiseFloors(movers: readonly Mover[]): void {
    const waiting = movers.flatMap(({ turn }) => (turn && turn.startAt > this.#now ? [turn] : []));
    const latest = waiting.reduce((most, { startAt }) => Math.max(most, startAt), this.#now);
    const open = new Map(
      this.#book.places
        .filter((place) => place.free > 0 && place.lane.next(place.floor) < latest)
        .map((place) => [place, place.lane.next(place.floor)]),
    );
    if (open.size === 0) return;
    const soonest = Math.min(...open.values());
    for (const { mover, option, startAt } of waiting) {
      if (startAt <= soonest) continue;
      for (const other of mover.group.options) {
        if (other.tier > option.tier) break;
        const next = open.get(other.place);
        if (next === undefined || !isLeft(other) || next + other.readyInMs >= startAt + option.readyInMs) continue;
        other.place.floor = Math.max(other.place.floor, startAt);
      }
    }
  }

  #grantOf(mover: Mover, why: Missing | undefined): Grant {
    const { turn } = mover;
    const evacuee = mover.evacuee.id;
    const isNow = turn !== null && turn.startAt <= this.#now;
    const reservedUntil = isNow ? this.#now + RESERVATION_MS : null;
    if (!turn || why) {
      const { why: code, missing } = why ?? missingFor(mover, this.#now);
      return { kind: "unsavable", evacuee, why: code, missing, late: turn ? placementOf(turn) : null, reservedUntil };
    }
    const placement = placementOf(turn);
    if (reservedUntil === null) return { kind: "wait", evacuee, ...placement, ...(turn.isHeldBack ? { heldBack: true } : {}) };
    const { startAt: _, ...where } = placement;
    return { kind: "go", evacuee, reservedUntil, ...where };
  }
}

function placementOf({ mover, option, startAt }: Turn): Placement {
  return {
    supply: option.place.supply.id,
    startAt,
    servingAt: startAt + option.readyInMs + mover.workMs,
    breach: option.breach,
    preempts: option.preempts,
  };
}
