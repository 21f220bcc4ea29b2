/** What stands in the place of the schedule, to be compared with it: first in first out, and everybody at once. Pure, as it is. */
import { Lane } from "../../plan/evacuation/lane.ts";
import type { EvacuationPolicy } from "../../plan/evacuation/policy.ts";
import type { EvacuationInput, Evacuee, Grant, Supply } from "../../plan/evacuation/types.ts";

const RESERVATION_MS = 15_000;

/** As they were noticed, each to the nearest free place, at the pace that the sites absorb: no classes, no deadlines, nobody is told early. */
export const fifo: EvacuationPolicy = (input) => inOrder(input, true);

/** As they were noticed, each to the nearest free place, all at once. */
export const herd: EvacuationPolicy = (input) => inOrder(input, false);

function inOrder({ now, evacuees, supplies }: EvacuationInput, isPaced: boolean): ReturnType<EvacuationPolicy> {
  const lanes = new Map<string, Lane>();
  for (const { absorption } of supplies) if (!lanes.has(absorption.site)) lanes.set(absorption.site, new Lane(absorption, now));
  const left = new Map(supplies.map(({ id, free }) => [id, free]));
  const nearest = supplies.toSorted((a, b) => a.latencyMs - b.latencyMs || a.readyInMs - b.readyInMs || (a.id < b.id ? -1 : 1));
  const grants: Grant[] = [];
  for (const evacuee of evacuees.toSorted((a, b) => a.noticedAt - b.noticedAt || (a.id < b.id ? -1 : 1))) {
    const supply = nearest.find((each) => serves(each, evacuee) && (left.get(each.id) ?? 0) > 0);
    const lane = supply && lanes.get(supply.absorption.site);
    if (supply === undefined || lane === undefined) {
      grants.push({ kind: "unsavable", evacuee: evacuee.id, why: "supply", missing: "a place", late: null, reservedUntil: null });
      continue;
    }
    left.set(supply.id, (left.get(supply.id) ?? 0) - 1);
    const startAt = isPaced ? lane.take(now) : now;
    const servingAt = startAt + supply.readyInMs + evacuee.stateMoveMs + evacuee.warmUpMs;
    const where = { evacuee: evacuee.id, supply: supply.id, servingAt, breach: supply.latencyMs > evacuee.latencyLimitMs, preempts: null };
    grants.push(startAt <= now ? { kind: "go", ...where, reservedUntil: now + RESERVATION_MS } : { kind: "wait", ...where, startAt });
  }
  const starts = grants.flatMap((grant) => (grant.kind === "wait" && grant.startAt > now ? [grant.startAt] : []));
  const none = { withinMs: 0, within: 0, beforeDeadline: 0, of: evacuees.length, breaches: 0, attainable: true, bottleneck: null };
  return { grants, prediction: none, nextLookAt: starts.length === 0 ? null : Math.min(...starts) };
}

function serves({ pool, passing }: Supply, evacuee: Evacuee): boolean {
  return passing && (pool === null || pool === evacuee.pool);
}
