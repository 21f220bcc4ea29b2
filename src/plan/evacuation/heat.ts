/**
 * Capacity health of a spot (S2): 0 is well, 1 is dying. Pure.
 *
 *   d(t, H) = 2^(-(now - t) / H)                          what happened at t counts half as much after each H
 *   losses   L = Σ d(loss, 10 min)
 *   exposure E = Σ over running machines of min(1, age / 10 min)
 *   failures F = Σ d(failed launch, 3 min),  successes S = Σ d(launch, 3 min)
 *   heat = 1 - (1 - L / (L + E + 1)) · (1 - F / (F + S + 1))
 *
 * Each factor is the share of bad outcomes among recent ones, with one good outcome put in beforehand, so that a single event at a spot of which nothing else
 * is known gives ½ and many survivors dampen it. Losses and launches are independent signs, so their complements multiply. A notice counts as a loss when it
 * comes, not when the machine goes.
 *
 * Where the numbers come from: price is no input, since 2017 it carries no signal, and recent losses and the age of machines do; age enters as exposure, a
 * machine proves its spot only by the time that it has lived. 3 min is how long Karpenter leaves out an offering that had no capacity. 10 min is our own
 * choice: five times a spot warning's two minutes, so that one wave of reclaims is over before its spot counts as well again.
 */
import type { Instant } from "../../kernel/clock.ts";
import type { Placement, Spot } from "../../model/placement.ts";

export const LOSS_HALF_LIFE_MS = 10 * 60_000;
export const LAUNCH_HALF_LIFE_MS = 3 * 60_000;
/** From here on a spot is avoided while another one is there. */
export const HOT = 0.5;

/** What is known of one spot. */
export interface SpotHistory {
  readonly spot: Spot;
  /** When machines were lost, or announced to be. */
  readonly losses: readonly Instant[];
  readonly failedLaunches: readonly Instant[];
  readonly launches: readonly Instant[];
  /** Since when each machine that is there and well has been there. */
  readonly running: readonly Instant[];
}

export function heatOf(history: Omit<SpotHistory, "spot">, now: Instant): number {
  const lost = decayed(history.losses, LOSS_HALF_LIFE_MS, now);
  const exposure = history.running.reduce((sum, since) => sum + Math.min(1, Math.max(0, now - since) / LOSS_HALF_LIFE_MS), 0);
  const failed = decayed(history.failedLaunches, LAUNCH_HALF_LIFE_MS, now);
  const launched = decayed(history.launches, LAUNCH_HALF_LIFE_MS, now);
  return 1 - (1 - lost / (lost + exposure + 1)) * (1 - failed / (failed + launched + 1));
}

function decayed(times: readonly Instant[], halfLifeMs: number, now: Instant): number {
  return times.reduce((sum, at) => sum + 2 ** (-Math.max(0, now - at) / halfLifeMs), 0);
}

/** Several spots as one: a zone, or all that is spot. */
export function merged(histories: readonly SpotHistory[]): Omit<SpotHistory, "spot"> {
  return {
    losses: histories.flatMap(({ losses }) => losses),
    failedLaunches: histories.flatMap(({ failedLaunches }) => failedLaunches),
    launches: histories.flatMap(({ launches }) => launches),
    running: histories.flatMap(({ running }) => running),
  };
}

/**
 * Away from where capacity is dying, and never away from everything: what is avoided leaves a zone and a type that is not hot. On demand is asked for when
 * spot is hot in every zone and on demand is not. `offered` are the spots that could be had; one that nobody has seen is cold. `going` are nodes, by name.
 */
export function placementOf(
  histories: readonly SpotHistory[],
  offered: readonly Spot[],
  now: Instant,
  going: readonly string[] = [],
): Placement {
  const heat = (concerns: (spot: Spot) => boolean): number => heatOf(merged(histories.filter(({ spot }) => concerns(spot))), now);
  const hasOnDemand = offered.some(({ capacityType }) => capacityType === "on-demand");
  const spotZones = [...histories.map(({ spot }) => spot), ...offered].flatMap(({ capacityType, zone }) =>
    capacityType === "spot" ? [zone] : [],
  );
  const isHot = (zone: string): boolean => heat((spot) => spot.capacityType === "spot" && spot.zone === zone) >= HOT;
  const isSpotDying = spotZones.length > 0 && [...new Set(spotZones)].every(isHot);
  const onDemand = isSpotDying && hasOnDemand && heat(({ capacityType }) => capacityType === "on-demand") < HOT;
  const inQuestion = ({ capacityType }: Spot): boolean => !onDemand || capacityType === "on-demand";
  const spots = [...histories.map(({ spot }) => spot), ...offered].filter(inQuestion);
  const zones = hottest(
    spots.map(({ zone }) => zone),
    (zone) => heat((spot) => inQuestion(spot) && spot.zone === zone),
  );
  const left = spots.filter(({ zone }) => !zones.includes(zone));
  const instanceTypes = hottest(
    left.map(({ instanceType }) => instanceType),
    (type) => heat((spot) => inQuestion(spot) && !zones.includes(spot.zone) && spot.instanceType === type),
  );
  return { avoid: { zones, instanceTypes, nodes: [...going] }, capacityType: onDemand ? "on-demand" : null };
}

/** The hot ones by name, sorted; none when all are: then nothing is gained by going elsewhere. */
function hottest(names: readonly string[], heat: (name: string) => number): string[] {
  const all = [...new Set(names)].filter((name) => name !== "").toSorted();
  const hot = all.filter((name) => heat(name) >= HOT);
  return hot.length < all.length ? hot : [];
}
