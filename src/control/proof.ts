/** Whether what a load test has shown of a pool is shown of the pool as it is now (K7). */
import { createHash } from "node:crypto";
import type { PoolSpec } from "../model/pool.ts";
import type { ProvenCapacity } from "../model/proven.ts";
import type { ScalePolicy } from "../model/scale.ts";
import type { PoolSnapshot } from "../plan/snapshot.ts";
import { servingOf } from "../plan/view.ts";
import { canonicalJson } from "../kernel/canonical-json.ts";
import type { PoolScale } from "../server/scale-state.ts";

/** What a load test tests, besides the workers themselves. */
interface Tested {
  readonly spec: PoolSpec;
  readonly blueprintHash: string;
}

/** What was tested, and by what decides the size: both give throughput and recovery. Twelve hexadecimal digits, as of a blueprint. */
export function configHashOf({ spec: { target, worker, scale }, blueprintHash }: Tested): string {
  return createHash("sha256")
    .update(canonicalJson([blueprintHash, target ?? null, worker, scale === undefined ? null : decisive(scale)]))
    .digest("hex")
    .slice(0, 12);
}

/**
 * A size that somebody holds for a while, and what is done while nobody can say what the demand is, change nothing of what was shown. `size` is not in it either: it
 * is compared with the instances that worked at once.
 */
function decisive({ pausedAt: _, fallback: __, maxAge: ___, ...rest }: ScalePolicy): Omit<ScalePolicy, "pausedAt" | "fallback" | "maxAge"> {
  return rest;
}

const MAX_TOTALS = 1_000;

/** Of those that serve; null: none says. */
export function slotsPerInstanceOf(snapshot: PoolSnapshot): number | null {
  const totals = servingOf(snapshot).flatMap(({ slots }) => slots?.total ?? []);
  return totals.length === 0 ? null : totals.reduce((sum, total) => sum + total, 0) / totals.length;
}

/** The different ones of those that serve, ascending; null: none says. */
export function slotTotalsOf(snapshot: PoolSnapshot): number[] | null {
  const totals = new Set(servingOf(snapshot).flatMap(({ slots }) => slots?.total ?? []));
  return totals.size === 0 ? null : [...totals].sort((a, b) => a - b).slice(0, MAX_TOTALS);
}

/** Up to as many as worked at once in the test. */
export function proofOf(snapshot: PoolSnapshot, desired: number): PoolScale["proof"] {
  const { proven } = snapshot;
  if (proven === null) return "nothing_proven";
  if (proven.configHash !== configHashOf(snapshot) || hasOtherSlots(snapshot, proven)) return "proven_for_other";
  return desired > proven.instances ? "above_proven" : "within_proven";
}

/** Workers of a size that was not in the test. Their mix may change: each that comes or goes does that. A proof of an older version has only a mean, or nothing. */
function hasOtherSlots(snapshot: PoolSnapshot, { slotsPerInstance = null, slotTotals = null }: Partial<ProvenCapacity>): boolean {
  if (slotTotals !== null) return slotTotalsOf(snapshot)?.some((total) => !slotTotals.includes(total)) ?? false;
  const now = slotsPerInstanceOf(snapshot);
  return slotsPerInstance !== null && now !== null && slotsPerInstance !== now;
}
