/** Who is to be moved, each once, in the order of urgency. */
import type { Instant } from "../../kernel/clock.ts";
import { compareText } from "../view.ts";
import { type Book, type Group, rankOf } from "./book.ts";
import type { Evacuee } from "./types.ts";

export interface Mover {
  readonly evacuee: Evacuee;
  readonly group: Group;
  /** At a place that is ready. */
  readonly workMs: number;
  /** Infinite when there is none. */
  readonly deadline: Instant;
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
  return { evacuee, group: book.groupOf(evacuee), workMs, deadline: evacuee.deadline ?? Infinity };
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
    rankOf(a.evacuee.priority) - rankOf(b.evacuee.priority) ||
    compareTimes(a.deadline - a.workMs, b.deadline - b.workMs) ||
    a.evacuee.noticedAt - b.evacuee.noticedAt ||
    compareText(a.evacuee.id, b.evacuee.id) ||
    compareText(a.group.key, b.group.key) ||
    a.workMs - b.workMs
  );
}

/** The difference of two infinities is none. */
function compareTimes(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
