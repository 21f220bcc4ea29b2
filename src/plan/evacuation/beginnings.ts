/** What of a plan begins now: it takes a token of its site, and its place is kept for it. */
import type { EvacuationPlan, Reservation } from "./types.ts";

/** In the order of turns; who has a reservation already has begun. Late ones begin too when a place is left over for them. */
export function beginningsOf({ grants }: EvacuationPlan, isReserved: (evacuee: string) => boolean): readonly Required<Reservation>[] {
  return grants.flatMap((grant) => {
    if (grant.kind === "wait" || isReserved(grant.evacuee)) return [];
    const place = grant.kind === "go" ? grant : grant.late;
    if (place === null || grant.reservedUntil === null) return [];
    const { supply, servingAt, preempts } = place;
    return [{ evacuee: grant.evacuee, supply, until: grant.reservedUntil, servingAt, preempts }];
  });
}

/** Whether somebody waits for a turn: the pace holds them back. */
export function isPaced({ grants }: EvacuationPlan): boolean {
  return grants.some(({ kind }) => kind === "wait");
}
