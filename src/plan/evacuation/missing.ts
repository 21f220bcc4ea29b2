/** Why one cannot be saved in time, and what is missing (S12). */
import type { Instant } from "../../kernel/clock.ts";
import { type Group, isLeft, type Option } from "./book.ts";
import type { Mover } from "./movers.ts";
import type { UnsavableReason } from "./types.ts";

export interface Missing {
  readonly why: UnsavableReason;
  readonly missing: string;
}

/** At the moment of its turn, when nothing that is left serves it in time. */
export function missingFor({ group, workMs, deadline }: Mover, now: Instant): Missing {
  let earliest: Option | undefined;
  let earliestAt = Infinity;
  for (const option of group.options) {
    if (!isLeft(option)) continue;
    const readyAt = readyAtOf(option);
    if (earliest && readyAt >= earliestAt) continue;
    earliest = option;
    earliestAt = readyAt;
  }
  if (!earliest) return noPlace(group);
  const { place, readyInMs } = earliest;
  if (earliestAt === Infinity) return { why: "time", missing: `${place.lane.site} absorbs nothing` };
  const servingAt = earliestAt + workMs;
  const isPaced = now + readyInMs + workMs <= deadline;
  const pace = isPaced ? `, because ${place.lane.site} absorbs ${rate(place.lane.perSecond)}` : "";
  return {
    why: "time",
    missing: `${Math.ceil(servingAt - deadline)} ms: so much after its node goes ${place.supply.id} would serve it${pace}`,
  };
}

function readyAtOf({ place, readyInMs }: Option): Instant {
  return place.lane.next(place.floor) + readyInMs;
}

function noPlace({ options }: Group): Missing {
  const bound = options.find(({ place: { supply }, preempts }) => preempts === null && supply.boundBy === "quota");
  if (bound) return { why: "quota", missing: `quota for 1 more at ${bound.place.supply.id}` };
  return { why: "supply", missing: options.length === 0 ? "any place that may serve it" : "1 place: all go to more urgent ones" };
}

export function rate(perSecond: number): string {
  return `${Math.round(perSecond * 10) / 10} a second`;
}
