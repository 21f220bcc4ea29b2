/** The approaches by name: Relevo's, and what it is compared with. */
import { planEvacuation } from "../../plan/evacuation/schedule.ts";
import type { EvacuationPolicy } from "../../plan/evacuation/policy.ts";
import { installGuards } from "../guards.ts";
import { Budgets, Snapshots } from "./baselines.ts";
import { boundOf } from "./bound.ts";
import { figuresOf, type StormFigures, type TimelineRow, timelineOf } from "./figures.ts";
import type { Fleet } from "./fleet.ts";
import { fifo, herd } from "./policies.ts";
import { Scheduled } from "./scheduled.ts";
import { supplyOf } from "./sites.ts";
import { type Approach, Storm } from "./storm.ts";
import type { StormViolation } from "./checks.ts";

export const BASELINES = ["budgets", "snapshots", "fifo", "herd"] as const;
export type Baseline = (typeof BASELINES)[number];
export type ApproachName = "relevo" | Baseline;

export interface StormRun {
  readonly figures: StormFigures;
  readonly violations: readonly StormViolation[];
  /** Of the log: the same for the same fleet, seed and approach. */
  readonly hash: string;
  readonly log: readonly string[];
  readonly staleResults: number;
  /** Served beyond the latency limit of their class. */
  readonly breaches: number;
  readonly timeline: readonly TimelineRow[];
}

/** What the issue of figures is printed as: one storm, and the same one with each baseline. */
export type StormDocument = StormFigures & { readonly baselines: Readonly<Record<Baseline, StormFigures>> };

/** `policy`: instead of the production schedule, to measure or to break it. */
export async function runStorm(
  fleet: Fleet,
  seed: number,
  name: ApproachName,
  policy: EvacuationPolicy = planEvacuation,
): Promise<StormRun> {
  const lift = installGuards();
  try {
    return await run(fleet, seed, name, policy);
  } finally {
    lift();
  }
}

/** The baselines that did as well as Relevo: such a storm shows nothing. */
export function notBeaten(relevo: StormFigures, baselines: Readonly<Partial<Record<Baseline, StormFigures>>>): readonly Baseline[] {
  return BASELINES.filter((name) => {
    const other = baselines[name];
    return other !== undefined && other.within90s >= relevo.within90s && other.lost <= relevo.lost;
  });
}

async function run(fleet: Fleet, seed: number, name: ApproachName, policy: EvacuationPolicy): Promise<StormRun> {
  const storm = new Storm(fleet, seed, (world) => approachOf(name, world, policy));
  const bound = boundFor(storm);
  await storm.run();
  const { checks, log, staleResults, workloads } = storm;
  return {
    figures: figuresOf(storm, bound),
    violations: checks.violations,
    hash: log.hash(),
    log: log.lines,
    staleResults,
    breaches: workloads.filter(({ isBreach }) => isBreach).length,
    timeline: timelineOf(storm),
  };
}

function approachOf(name: ApproachName, storm: Storm, policy: EvacuationPolicy): Approach {
  switch (name) {
    case "relevo":
      return new Scheduled(storm, { policy, isJudged: true });
    case "fifo":
      return new Scheduled(storm, { policy: fifo, isJudged: false });
    case "herd":
      return new Scheduled(storm, { policy: herd, isJudged: false });
    case "budgets":
      return new Budgets(storm);
    case "snapshots":
      return new Snapshots(storm);
    default:
      return name satisfies never;
  }
}

/**
 * How many could be evacuated by one who knows everything from the beginning. A site that lands P a second has landed at most P × t by t, so everybody who
 * is saved has one of the first P × deadline of its landings: as tokens of which those of the longest way are there already. Who is not noticed in time for
 * the quickest way there is cannot be saved by anybody.
 */
function boundFor(storm: Storm): number {
  const { fleet, startedAt: now, sites, workloads } = storm;
  const quickestMs = Math.min(...fleet.supplies.map(({ kind, nodeStart }) => (kind === "standby" ? 0 : nodeStart[0])));
  const slowestMs =
    Math.max(0, ...fleet.classes.map(({ warmUp }) => warmUp)) + Math.max(0, ...fleet.supplies.map(({ nodeStart }) => nodeStart[0]));
  const supplies = sites.places.map((place) => {
    const seen = supplyOf(place, now, 0, 0);
    const { perSecond } = place.site.spec.lands;
    const readyInMs = place.spec.kind === "standby" ? 0 : place.spec.nodeStart[0];
    const tokens = (perSecond * slowestMs) / 1_000;
    return { ...seen, readyInMs, absorption: { site: place.spec.site, perSecond, burst: Number.MAX_SAFE_INTEGER, tokens } };
  });
  const evacuees = workloads
    .filter(({ doom, of }) => doom.noticesAt.length > 0 && (doom.noticesAt[0] ?? 0) + quickestMs + of.warmUp <= doom.lostAt)
    .map(({ id, of, doom }) => ({
      id,
      pool: of.name,
      priority: of.priority,
      noticedAt: now + (doom.noticesAt[0] ?? 0),
      deadline: now + doom.lostAt,
      stateMoveMs: 0,
      warmUpMs: of.warmUp,
      latencyLimitMs: of.latencyLimit,
    }));
  return boundOf({ now, evacuees, supplies, reservations: [] }).total;
}
