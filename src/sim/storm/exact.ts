/**
 * The optimum of a small evacuation, by branch and bound: what the schedule is measured against.
 *
 * All evacuees are noticed by `now`. A solution gives each evacuee at most one place that may serve it, preempted room included, no supply more than it has, and
 * each a token of the place's site. Its worth is, class after class from the most critical, the number that is saved (serving before its deadline) and
 * then the number that has a place at all, compared figure by figure: the first that differs decides.
 *
 * Of the rule that no class is inverted (I13) it keeps what concerns tokens: at one site the starts are in the order of classes, who comes late after those of its
 * class who are in time. It does not keep what concerns two sites, nor latency, heat or the order among equals: every schedule that does is a solution here too,
 * so the optimum is worth at least as much as any of them.
 *
 * Tokens: in that order, and within a class by the latest start (deadline − work − the place's readiness), the k-th start must be able to wait for the k-th token.
 * All are there from the beginning and each takes one token, so that is also enough: to exchange two neighbours of a class that are not in this order makes neither
 * late. A partial solution is therefore kept as the starts of each site in this order.
 */
import { RelevoError } from "../../kernel/errors.ts";
import { Book, isLeft, type Option } from "../../plan/evacuation/book.ts";
import { Lane } from "../../plan/evacuation/lane.ts";
import { type Mover, moversOf } from "../../plan/evacuation/movers.ts";
import type { EvacuationInput } from "../../plan/evacuation/types.ts";
import { PRIORITIES } from "../../model/membership.ts";

export const MOST_EXACT = 12;

/** Of each class: saved in time, and placed at all. */
export type Worth = readonly number[];

export function compareWorth(a: Worth, b: Worth): number {
  const index = a.findIndex((value, at) => value !== b[at]);
  return index === -1 ? 0 : (a[index] ?? 0) - (b[index] ?? 0);
}

/** The greatest worth that any solution has. Throws `too_many_evacuees` beyond `MOST_EXACT`. */
export function exactWorth(input: EvacuationInput): Worth {
  if (new Set(input.evacuees.map(({ id }) => id)).size > MOST_EXACT)
    throw new RelevoError("too_many_evacuees", "an exact search of so many evacuees may not end in any reasonable time", {
      found: input.evacuees.length,
      allowed: `at most ${MOST_EXACT}`,
      todo: "compare with the bound instead",
    });
  return new Search(input).run();
}

class Search {
  readonly #book: Book;
  readonly #movers: readonly Mover[];
  /** When the k-th token of each site is there. */
  readonly #tokens: ReadonlyMap<string, readonly number[]>;
  /** Of each site, in their order. */
  readonly #starts = new Map<string, readonly Start[]>();
  readonly #seen = new Map<string, Worth>();
  readonly #worth: number[] = PRIORITIES.flatMap(() => [0, 0]);
  #best: Worth = PRIORITIES.flatMap(() => [-1, -1]);

  constructor(input: EvacuationInput) {
    this.#book = new Book(input.supplies, input.now);
    this.#movers = moversOf(input.evacuees, this.#book);
    this.#tokens = new Map(
      this.#book.lanes.map(({ site }) => {
        const absorption = input.supplies.find((supply) => supply.absorption.site === site)?.absorption;
        const lane = absorption && new Lane(absorption, input.now);
        return [site, this.#movers.map(() => lane?.take(input.now) ?? Infinity)];
      }),
    );
  }

  run(): Worth {
    this.#branch(0);
    return this.#best;
  }

  #branch(index: number): void {
    const mover = this.#movers[index];
    if (!mover) {
      if (compareWorth(this.#worth, this.#best) > 0) this.#best = [...this.#worth];
      return;
    }
    if (compareWorth(this.#atMost(index), this.#best) <= 0 || this.#wasSeen(index)) return;
    for (const option of mover.group.options) {
      if (!isLeft(option)) continue;
      const { free, preemptible } = option.place;
      this.#book.take(option);
      this.#choose(mover, option, index, false);
      this.#choose(mover, option, index, true);
      option.place.free = free;
      option.place.preemptible = preemptible;
    }
    this.#branch(index + 1);
  }

  #choose(mover: Mover, option: Option, index: number, isLate: boolean): void {
    const { site } = option.place.lane;
    const rank = PRIORITIES.indexOf(mover.evacuee.priority);
    const before = this.#starts.get(site) ?? [];
    const start = { turn: 2 * rank + Number(isLate), latest: isLate ? Infinity : mover.deadline - mover.workMs - option.readyInMs };
    const starts = [...before, start].toSorted(compareStarts);
    const tokens = this.#tokens.get(site) ?? [];
    if (starts.some(({ latest }, which) => (tokens[which] ?? Infinity) > latest)) return;
    this.#starts.set(site, starts);
    if (!isLate) this.#count(2 * rank, 1);
    this.#count(2 * rank + 1, 1);
    this.#branch(index + 1);
    if (!isLate) this.#count(2 * rank, -1);
    this.#count(2 * rank + 1, -1);
    this.#starts.set(site, before);
  }

  #count(at: number, by: number): void {
    this.#worth[at] = (this.#worth[at] ?? 0) + by;
  }

  /** As if all that remain were saved, as far as there are places. */
  #atMost(index: number): Worth {
    const most = [...this.#worth];
    for (const { evacuee, group } of this.#movers.slice(index)) {
      if (!group.options.some(isLeft)) continue;
      const classAt = 2 * PRIORITIES.indexOf(evacuee.priority);
      most[classAt] = (most[classAt] ?? 0) + 1;
      most[classAt + 1] = (most[classAt + 1] ?? 0) + 1;
    }
    return most;
  }

  /** What is left to decide is the same as before, and it was worth no less then. */
  #wasSeen(index: number): boolean {
    const places = this.#book.places.map(({ free, preemptible }) => `${free}/${preemptible}`).join();
    const key = `${index} ${places} ${this.#book.lanes.map(({ site }) => (this.#starts.get(site) ?? []).map(({ turn, latest }) => `${turn}:${latest}`).join()).join(" ")}`;
    const known = this.#seen.get(key);
    if (known && compareWorth(known, this.#worth) >= 0) return true;
    this.#seen.set(key, [...this.#worth]);
    return false;
  }
}

interface Start {
  /** Class after class, those in time before those who are late. */
  readonly turn: number;
  readonly latest: number;
}

function compareStarts(a: Start, b: Start): number {
  // The difference of two infinities is none.
  return a.turn - b.turn || (a.latest < b.latest ? -1 : a.latest > b.latest ? 1 : 0);
}
