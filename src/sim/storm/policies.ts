/** What stands in the place of the schedule, to be compared with it: first in first out, and everybody at once. Pure, as it is. */
import { Lane } from "../../plan/evacuation/lane.ts";
import type { EvacuationPolicy } from "../../plan/evacuation/policy.ts";
import type { EvacuationInput, Evacuee, Grant, Supply } from "../../plan/evacuation/types.ts";

const RESERVATION_MS = 15_000;
/** Of two that are ready within the same second the nearer is taken. */
const SAME_TIME_MS = 1_000;

/** As they were noticed, each to the place that serves it first, at the pace that the sites absorb: no classes, no deadlines, nobody is told early. */
export const fifo: EvacuationPolicy = (input) => inOrder(input, true);

/** As they were noticed, each to the place that is ready first, all at once. */
export const herd: EvacuationPolicy = (input) => inOrder(input, false);

function inOrder({ now, evacuees, supplies }: EvacuationInput, isPaced: boolean): ReturnType<EvacuationPolicy> {
  const lanes = new Map<string, Lane>();
  for (const { absorption } of supplies) if (!lanes.has(absorption.site)) lanes.set(absorption.site, new Lane(absorption, now));
  const left = new Map(supplies.map(({ id, free }) => [id, free]));
  const nearestFirst = supplies.toSorted((a, b) => a.latencyMs - b.latencyMs || (a.id < b.id ? -1 : 1));
  const startOf = ({ absorption }: Supply): number => (isPaced ? (lanes.get(absorption.site)?.next(now) ?? now) : now);
  const grants: Grant[] = [];
  for (const evacuee of evacuees.toSorted((a, b) => a.noticedAt - b.noticedAt || (a.id < b.id ? -1 : 1))) {
    let best: { readonly supply: Supply; readonly readyAt: number } | undefined;
    for (const supply of nearestFirst) {
      if (!serves(supply, evacuee) || (left.get(supply.id) ?? 0) <= 0) continue;
      const readyAt = startOf(supply) + supply.readyInMs;
      if (best === undefined || readyAt < best.readyAt - SAME_TIME_MS) best = { supply, readyAt };
    }
    if (best === undefined) {
      grants.push({ kind: "unsavable", evacuee: evacuee.id, why: "supply", missing: "a place", late: null, reservedUntil: null });
      continue;
    }
    const { supply } = best;
    left.set(supply.id, (left.get(supply.id) ?? 0) - 1);
    const startAt = isPaced ? (lanes.get(supply.absorption.site)?.take(now) ?? now) : now;
    const servingAt = startAt + supply.readyInMs + evacuee.stateMoveMs + evacuee.warmUpMs;
    const where = { evacuee: evacuee.id, supply: supply.id, servingAt, breach: supply.latencyMs > evacuee.latencyLimitMs, preempts: null };
    grants.push(startAt <= now ? { kind: "go", ...where, reservedUntil: now + RESERVATION_MS } : { kind: "wait", ...where, startAt });
  }
  const starts = grants.flatMap((grant) => (grant.kind === "wait" && grant.startAt > now ? [grant.startAt] : []));
  const none = { withinMs: 0, within: 0, beforeDeadline: 0, of: evacuees.length, breaches: 0, attainable: true, bottleneck: null };
  return { grants, prediction: none, nextLookAt: starts.reduce<number | null>((first, at) => Math.min(first ?? at, at), null) };
}

function serves({ pool, passing }: Supply, evacuee: Evacuee): boolean {
  return passing && (pool === null || pool === evacuee.pool);
}
