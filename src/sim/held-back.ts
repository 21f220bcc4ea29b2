/**
 * What of a schedule breaks the rule that standby is held back for higher classes that are expected to follow (S12, I13), in the one case that needs no second
 * schedule to judge: all that could be held is needed, and who took of it had time.
 */
import { PRIORITIES, type Priority } from "../model/membership.ts";
import type { EvacuationInput, Grant, Supply } from "../plan/evacuation/types.ts";

/** Nothing is kept from anybody for longer. */
const KEPT_MS = 120_000;
/** What the schedule leaves itself before the last moment, and a second of the checker's own. */
const MARGIN_MS = 3_000;

/** `goes`: what this schedule gives anew. Undefined: nobody took anything. */
export function takenFromThoseExpected(input: EvacuationInput, goes: readonly Extract<Grant, { kind: "go" }>[]): string | undefined {
  const evacuees = new Map(input.evacuees.map((each) => [each.id, each]));
  for (const grant of goes) {
    const evacuee = evacuees.get(grant.evacuee);
    const taken = input.supplies.find(({ id }) => id === grant.supply);
    if (evacuee === undefined || evacuee.deadline === null || taken === undefined || grant.preempts !== null) continue;
    if (!canBeHeld(taken, evacuee.priority)) continue;
    const expected = (input.exposed ?? []).filter(
      ({ priority, until }) => rankOf(priority) < rankOf(evacuee.priority) && until > input.now,
    );
    const givers = input.supplies.filter((supply) => canBeHeld(supply, evacuee.priority));
    const isInTime = givers.every(({ preemptible }) =>
      expected.every(({ leadMs, workMs }) => (preemptible?.readyInMs ?? Infinity) + workMs <= leadMs),
    );
    const theirs = input.supplies.filter(({ passing, pool }) => passing && (pool === null || expected.some((each) => each.pool === pool)));
    const needed = sum(expected.map(({ count }) => count)) - sum(theirs.map(({ free }) => free));
    const preempted = goes.filter(({ preempts, supply }) => preempts !== null && givers.some(({ id }) => id === supply)).length;
    const room = sum(givers.map(({ preemptible }) => preemptible?.count ?? 0)) - preempted;
    if (!isInTime || expected.length === 0 || needed < room) continue;
    const startsMs = (room / taken.absorption.perSecond) * 1_000;
    const lastMoment = evacuee.deadline - evacuee.stateMoveMs - evacuee.warmUpMs - taken.readyInMs - startsMs - MARGIN_MS;
    const until = Math.min(...expected.map((each) => each.until), evacuee.noticedAt + KEPT_MS, lastMoment);
    if (input.now < until)
      return `${evacuee.id} (${evacuee.priority}) gets ${taken.id} at once, ${needed} higher ones are expected and find ${room} places`;
  }
  return undefined;
}

/** Standby of a class that is no higher, from which a higher one may take. */
function canBeHeld({ kind, passing, preemptible }: Supply, priority: Priority): boolean {
  return kind === "standby" && passing && preemptible !== null && rankOf(preemptible.priority) >= rankOf(priority);
}

function rankOf(priority: Priority): number {
  return PRIORITIES.indexOf(priority);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
