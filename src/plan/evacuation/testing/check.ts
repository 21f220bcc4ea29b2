/** What must hold of every schedule, told from its grants alone: a second look, which shares nothing with how they were made. */
import { PRIORITIES, type Priority } from "../../../model/membership.ts";
import { HOT } from "../book.ts";
import type { EvacuationInput, EvacuationPlan, Evacuee, Grant, Placement, Supply } from "../types.ts";

export function placementOf(grant: Grant, now: number): Placement | null {
  if (grant.kind === "unsavable") return grant.late;
  return grant.kind === "wait" ? grant : { ...grant, startAt: now };
}

/** Sentences about what is wrong; empty when nothing is. */
export function faultsOf(input: EvacuationInput, plan: EvacuationPlan): readonly string[] {
  const ids = new Set(input.evacuees.map(({ id }) => id));
  const granted = plan.grants.map(({ evacuee }) => evacuee);
  const faults: string[] = [];
  if (new Set(granted).size !== granted.length || granted.length !== ids.size || granted.some((id) => !ids.has(id)))
    faults.push(`${ids.size} evacuees have ${granted.length} grants for ${new Set(granted).size}`);
  const kept = new Set(
    input.reservations
      .filter(({ until, supply }) => until > input.now && input.supplies.find(({ id }) => id === supply)?.passing === true)
      .map(({ evacuee }) => evacuee),
  );
  const placed = plan.grants.flatMap((grant) => {
    const placement = placementOf(grant, input.now);
    return placement && !kept.has(grant.evacuee) ? [{ ...placement, evacuee: grant.evacuee, isLate: grant.kind === "unsavable" }] : [];
  });
  for (const supply of input.supplies) faults.push(...overReserved(supply, placed));
  for (const site of new Set(input.supplies.map(({ site: name }) => name))) faults.push(...overrun(input, site, placed));
  faults.push(...inversions(input, plan, placed));
  return faults;
}

type Placed = Placement & { readonly evacuee: string; readonly isLate: boolean };

function overReserved(supply: Supply, placed: readonly Placed[]): readonly string[] {
  const here = placed.filter((each) => each.supply === supply.id);
  const preempted = here.filter(({ preempts }) => preempts !== null).length;
  return [
    ...(here.length > supply.free ? [`${supply.id} has ${supply.free} places and gives ${here.length}`] : []),
    ...(preempted > (supply.preemptible?.count ?? 0) ? [`${supply.id} gives up ${preempted} of ${supply.preemptible?.count ?? 0}`] : []),
    ...(here.length > 0 && !supply.passing ? [`${supply.id} fails its check and is used`] : []),
  ];
}

function overrun({ now, supplies }: EvacuationInput, site: string, placed: readonly Placed[]): readonly string[] {
  const own = supplies.filter((each) => each.site === site);
  const absorption = own[0]?.absorption;
  if (!absorption) return [];
  const { perSecond, burst } = absorption;
  const starts = placed
    .filter((each) => own.some(({ id }) => id === each.supply))
    .map(({ startAt }) => startAt)
    .toSorted((a, b) => a - b);
  const tokens = Math.min(absorption.tokens, Math.max(1, burst));
  const tooSoon = starts.filter((at, index) => index + 1 > tokens + ((at - now) / 1_000) * perSecond + 1e-6);
  const tooMany = starts.filter((at, index) =>
    starts.slice(0, index + 1).some((from, first) => index - first + 1 > Math.max(1, burst) + ((at - from + 1) / 1_000) * perSecond + 1e-6),
  );
  return [
    ...(tooSoon.length > 0 ? [`${site} starts ${tooSoon.length} before there is a token`] : []),
    ...(tooMany.length > 0 ? [`${site} starts more at once than its burst`] : []),
  ];
}

/** I13: nobody starts at a place which a higher one, that starts later or is not saved, could have used sooner or in time. */
function inversions({ evacuees, supplies, now }: EvacuationInput, plan: EvacuationPlan, placed: readonly Placed[]): readonly string[] {
  const byId = new Map(evacuees.toReversed().map((each) => [each.id, each]));
  const supplyOf = new Map(supplies.map((each) => [each.id, each]));
  const faults: string[] = [];
  for (const lower of placed) {
    const place = supplyOf.get(lower.supply);
    const low = byId.get(lower.evacuee);
    if (!place || !low || lower.preempts !== null) continue;
    for (const grant of plan.grants) {
      const high = byId.get(grant.evacuee);
      if (!high || rank(high.priority) >= rank(low.priority) || !couldUse(high, place)) continue;
      const own = placementOf(grant, now);
      if (own !== null && own.startAt <= lower.startAt) continue;
      const servingAt = lower.startAt + place.readyInMs + high.stateMoveMs + high.warmUpMs;
      const isInTime = servingAt <= (high.deadline ?? Infinity);
      const wouldHelp =
        own === null ||
        (grant.kind === "unsavable" && isInTime) ||
        (isSoonerWithoutLoss(high, place, supplyOf.get(own.supply), own) && servingAt < own.servingAt);
      if (wouldHelp && (grant.kind === "unsavable" || isInTime))
        faults.push(`${low.id} (${low.priority}) starts at ${place.id} before ${high.id} (${high.priority})`);
    }
  }
  return faults;
}

/** Not by preemption: that is the last resort of one that has nothing else. */
function couldUse(evacuee: Evacuee, supply: Supply): boolean {
  return supply.passing && (supply.pool === null || supply.pool === evacuee.pool);
}

/** Not farther than it may be, nor hotter, than what it waits for. */
function isSoonerWithoutLoss(evacuee: Evacuee, place: Supply, chosen: Supply | undefined, own: Placement): boolean {
  if (place.latencyMs > evacuee.latencyLimitMs && !own.breach) return false;
  return place.heat < HOT || (chosen !== undefined && chosen.heat >= HOT) || (own.breach && place.latencyMs <= evacuee.latencyLimitMs);
}

function rank(priority: Priority): number {
  return PRIORITIES.indexOf(priority);
}

/** What a schedule is judged by, the first figure first: of each class, critical first, how many are served in time, and then how many have a place at all. */
export function worthOf(input: EvacuationInput, plan: EvacuationPlan): readonly number[] {
  const byId = new Map(input.evacuees.map((each) => [each.id, each]));
  return PRIORITIES.flatMap((priority) => {
    const own = plan.grants.filter(({ evacuee }) => byId.get(evacuee)?.priority === priority);
    const inTime = own.filter(({ kind }) => kind !== "unsavable").length;
    return [inTime, inTime + own.filter((grant) => grant.kind === "unsavable" && grant.late !== null).length];
  });
}
