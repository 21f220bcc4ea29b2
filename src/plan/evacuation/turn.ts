/** What the schedule says about one replacement, for the planner that obeys it. */
import { formatInstant, type Instant } from "../../kernel/clock.ts";
import { reason, type Reason } from "../../model/reasons.ts";
import type { Draft } from "../draft.ts";
import type { PoolSnapshot } from "../snapshot.ts";
import type { Grant } from "./types.ts";

/** The standby of a pool, as the schedule names it. */
export function standbySupplyId(pool: string): string {
  return `standby/${pool}`;
}

export type Turn =
  /** With `standby` false its place is elsewhere: the standby is promised to another. */
  { readonly mayGo: true; readonly standby: boolean } | { readonly mayGo: false; readonly reason: Reason; readonly until: Instant | null };

/** Whom the schedule does not name goes as if there were none: it never blocks what it does not know (D12). */
export function turnOf(pool: PoolSnapshot, instance: string, now: Instant): Turn {
  const grant = pool.evacuation.get(instance);
  if (grant === undefined) return { mayGo: true, standby: true };
  const { supply, startAt } = placeOf(grant, now);
  if (supply === null) return { mayGo: false, reason: unsavable(grant), until: null };
  if (startAt <= now) return { mayGo: true, standby: supply === standbySupplyId(pool.pool) };
  return { mayGo: false, reason: waitsFor(grant, supply, startAt), until: startAt };
}

function waitsFor(grant: Grant, supply: string, startAt: Instant): Reason {
  if (grant.kind === "unsavable") return unsavable(grant);
  const isHeldBack = grant.kind === "wait" && grant.heldBack === true;
  return reason(isHeldBack ? "evacuation_held_back" : "evacuation_wait", { supply, until: formatInstant(startAt) });
}

function placeOf(grant: Grant, now: Instant): { readonly supply: string | null; readonly startAt: Instant } {
  if (grant.kind === "go") return { supply: grant.supply, startAt: now };
  const placement = grant.kind === "wait" ? grant : grant.late;
  return { supply: placement?.supply ?? null, startAt: placement?.startAt ?? now };
}

/** Said as soon as it is known, also of one that goes nevertheless (S12). */
export function sayUnsavable(pool: PoolSnapshot, instance: string, draft: Draft): void {
  const grant = pool.evacuation.get(instance);
  if (grant?.kind === "unsavable" && grant.late !== null) draft.hold(instance, unsavable(grant));
}

function unsavable(grant: Grant): Reason {
  if (grant.kind !== "unsavable") return reason("evacuation_unsavable", { why: "supply", missing: "a place" });
  const { why, missing, late } = grant;
  if (late === null) return reason("evacuation_unsavable", { why, missing });
  return reason("evacuation_late", { why, missing, servingAt: formatInstant(late.servingAt) });
}
