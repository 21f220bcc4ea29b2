/** Why one cannot be saved in time, and what is missing (S12). */
import { formatInstant, type Instant } from "../../kernel/clock.ts";
import { type Book, isLeft } from "./book.ts";
import type { Evacuee, UnsavableReason } from "./types.ts";

export interface Missing {
  readonly why: UnsavableReason;
  readonly missing: string;
}

/** At the moment of its turn, when nothing that is left serves it in time. */
export function missingFor(evacuee: Evacuee, book: Book, workMs: number, now: Instant): Missing {
  const options = book.optionsOf(evacuee);
  const left = options.filter(isLeft);
  if (left.length === 0) {
    const bound = options.find(({ place: { supply }, preempts }) => preempts === null && supply.boundBy === "quota");
    if (bound) return { why: "quota", missing: `quota for 1 more at ${bound.place.supply.id}` };
    return { why: "supply", missing: options.length === 0 ? "any place that may serve it" : "1 place: all go to more urgent ones" };
  }
  const deadline = evacuee.deadline ?? now;
  const earliest = left
    .map(({ place, readyInMs }) => ({
      place,
      servingAt: place.lane.next(place.floor) + readyInMs + workMs,
      leastAt: now + readyInMs + workMs,
    }))
    .reduce((best, each) => (each.servingAt < best.servingAt ? each : best));
  if (earliest.servingAt === Infinity) return { why: "time", missing: `${earliest.place.lane.site} absorbs nothing` };
  const lateMs = Math.ceil(earliest.servingAt - deadline);
  const paced = earliest.leastAt <= deadline ? `, because ${earliest.place.lane.site} absorbs ${rate(earliest.place.lane.perSecond)}` : "";
  return {
    why: "time",
    missing: `${lateMs} ms: its node goes at ${formatInstant(deadline)} and ${earliest.place.supply.id} serves it at ${formatInstant(earliest.servingAt)}${paced}`,
  };
}

export function rate(perSecond: number): string {
  return `${Math.round(perSecond * 10) / 10} a second`;
}
