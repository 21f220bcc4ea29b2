/** Who is to be moved, each once, in the order of urgency. */
import type { Instant } from "../../kernel/clock.ts";
import { compareText } from "../view.ts";
import { type Book, type Group, type Option, rankOf } from "./book.ts";
import type { Evacuee } from "./types.ts";

export interface Mover {
  readonly evacuee: Evacuee;
  readonly group: Group;
  /** At a place that is ready. */
  readonly workMs: number;
  /** Infinite when there is none. */
  readonly deadline: Instant;
  readonly rank: number;
  /** At a place that is ready; infinite without a deadline. */
  readonly lastStart: Instant;
  /** Where it goes, once that is known. */
  turn: Turn | null;
}

export interface Turn {
  readonly mover: Mover;
  readonly option: Option;
  readonly startAt: Instant;
  readonly isHeldBack?: true;
}

/** One for each id: its first notice and its earliest deadline; by class, then by when it must start at the latest, then by its notice and id. */
export function moversOf(evacuees: readonly Evacuee[], book: Book): readonly Mover[] {
  const byId = new Map<string, Mover>();
  for (const each of evacuees) {
    const known = byId.get(each.id);
    const mover = moverOf(each, book);
    byId.set(each.id, known ? merged(known, mover, book) : mover);
  }
  return [...byId.values()].toSorted(compareTurns);
}

function moverOf(evacuee: Evacuee, book: Book): Mover {
  const workMs = Math.max(0, evacuee.stateMoveMs) + Math.max(0, evacuee.warmUpMs);
  const deadline = evacuee.deadline ?? Infinity;
  return {
    evacuee,
    group: book.groupOf(evacuee),
    workMs,
    deadline,
    rank: rankOf(evacuee.priority),
    lastStart: deadline - workMs,
    turn: null,
  };
}

function merged(a: Mover, b: Mover, book: Book): Mover {
  const first = compareTurns(a, b) <= 0 ? a : b;
  const deadline = Math.min(a.deadline, b.deadline);
  return moverOf(
    {
      ...first.evacuee,
      noticedAt: Math.min(a.evacuee.noticedAt, b.evacuee.noticedAt),
      deadline: deadline === Infinity ? null : deadline,
    },
    book,
  );
}

function compareTurns(a: Mover, b: Mover): number {
  return (
    a.rank - b.rank ||
    compareTimes(a.lastStart, b.lastStart) ||
    a.evacuee.noticedAt - b.evacuee.noticedAt ||
    compareText(a.evacuee.id, b.evacuee.id) ||
    compareText(a.evacuee.pool, b.evacuee.pool) ||
    a.evacuee.latencyLimitMs - b.evacuee.latencyLimitMs ||
    a.workMs - b.workMs
  );
}

/** The difference of two infinities is none. */
function compareTimes(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
