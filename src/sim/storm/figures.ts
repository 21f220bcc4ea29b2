/** What a storm came to, in the form that the issue of figures and baselines is printed in. */
import { PRIORITIES, type Priority } from "../../model/membership.ts";
import type { Storm } from "./storm.ts";
import type { Workload } from "./workload.ts";

export interface ClassFigures {
  readonly instances: number;
  readonly evacuated: number;
  readonly within90s: number;
  readonly unsavable: number;
  readonly lost: number;
}

/** Counts, but for `availability` and `ratioToBound`, which are shares, and `addedMs`. */
export interface StormFigures {
  /** Those whose machine was taken. */
  readonly instances: number;
  /** Serving at the new place before the old one was lost. */
  readonly evacuated: number;
  /** Serving at the new place at most 90 s after the instance's own first notice. */
  readonly within90s: number;
  readonly byClass: Readonly<Partial<Record<Priority, ClassFigures>>>;
  /** Said to be, at the last look before the loss, and not evacuated. */
  readonly unsavable: number;
  /** No schedule could have evacuated more. */
  readonly bound: number;
  readonly ratioToBound: number;
  /** Completed of completed, rejected and lost. */
  readonly availability: number;
  /** Over the requests in flight at a switch or begun within a second of it. */
  readonly addedMs: { readonly mean: number; readonly p99: number };
  readonly over50Ms: number;
  /** Acknowledged requests that are gone. */
  readonly lost: number;
}

const WITHIN_MS = 90_000;

export function figuresOf(storm: Storm, bound: number): StormFigures {
  const { workloads, traffic } = storm;
  const all = classFigures(workloads);
  const present = PRIORITIES.filter((priority) => workloads.some(({ of }) => of.priority === priority));
  const { completed, rejected, cut } = traffic.counts;
  return {
    instances: all.instances,
    evacuated: all.evacuated,
    within90s: all.within90s,
    byClass: Object.fromEntries(
      present.map((priority) => [priority, classFigures(workloads.filter(({ of }) => of.priority === priority))]),
    ),
    unsavable: all.unsavable,
    bound,
    ratioToBound: bound === 0 ? 1 : round(all.evacuated / bound, 4),
    availability: round(completed / Math.max(1, completed + rejected + cut + all.lost), 6),
    addedMs: { mean: round(traffic.added.mean(), 2), p99: round(traffic.added.quantile(0.99), 1) },
    over50Ms: traffic.over50Ms,
    lost: all.lost,
  };
}

function classFigures(workloads: readonly Workload[]): ClassFigures {
  const evacuated = workloads.filter(({ isEvacuated: saved }) => saved);
  return {
    instances: workloads.length,
    evacuated: evacuated.length,
    within90s: workloads.filter(
      ({ servingAt, noticedAt }) => servingAt !== null && noticedAt !== null && servingAt - noticedAt <= WITHIN_MS,
    ).length,
    unsavable: workloads.filter((each) => !each.isEvacuated && each.unsavable !== null).length,
    lost: workloads.reduce((sum, { lost }) => sum + lost, 0),
  };
}

function round(value: number, digits: number): number {
  const factor = 10 ** digits;
  return Math.round(value * factor) / factor;
}

/** Until the end of the time, so many: counted at whole tens of seconds. */
export interface TimelineRow {
  readonly atMs: number;
  readonly noticed: number;
  readonly serving: number;
  /** Their machine is gone and they do not serve. */
  readonly away: number;
}

const ROW_MS = 10_000;

export function timelineOf({ workloads, startedAt, fleet }: Storm): readonly TimelineRow[] {
  const rows: TimelineRow[] = [];
  for (let atMs = 0; atMs <= fleet.measureFor; atMs += ROW_MS) {
    const now = startedAt + atMs;
    const isPast = (at: number | null): boolean => at !== null && at <= now;
    const row = {
      atMs,
      noticed: workloads.filter(({ noticedAt }) => isPast(noticedAt)).length,
      serving: workloads.filter(({ servingAt }) => isPast(servingAt)).length,
      away: workloads.filter(({ servingAt, doom }) => doom.lostAt <= atMs && !isPast(servingAt)).length,
    };
    rows.push(row);
    if (row.serving === workloads.length) break;
  }
  return rows;
}
