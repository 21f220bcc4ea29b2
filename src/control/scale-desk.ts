/** What people ask and record of the sizes of pools: changes, proofs, exceptions (K7, K10). */
import type { Clock } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import { isOpen, type PromotionDraft, type PromotionException } from "../model/promotion.ts";
import type { ProvenCapacity } from "../model/proven.ts";
import type { JobOutcome } from "../model/slots.ts";
import type { RecordQuery } from "../server/control-plane.ts";
import type { PoolScaleChange, PoolScaleExplained, ProvenDraft } from "../server/scale-state.ts";
import type { Store } from "../store/port.ts";
import type { Pass } from "./pass.ts";
import type { PoolEntry } from "./pool-informer.ts";
import { configHashOf, slotsPerInstanceOf, slotTotalsOf } from "./proof.ts";
import { otherOwnersOf, ownerOf } from "./scale-owner-report.ts";
import { scaleReportOf } from "./scale-report.ts";

/** Of changes and exceptions in an explanation: it is to fit on a screen. */
const SHOWN = 5;

export interface ScaleDeskParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly jobs?: (pool: string) => Readonly<Record<JobOutcome, number>> | null;
}

export async function explainScale(parts: ScaleDeskParts, pool: string, pass: Pass | undefined): Promise<PoolScaleExplained | null> {
  const report = pass && scaleReportOf(pass);
  if (pass === undefined || report === undefined) return null;
  return {
    ...report,
    owner: ownerOf(pass.snapshot),
    otherOwners: otherOwnersOf(pass.snapshot),
    jobs: parts.jobs?.(pool) ?? null,
    exceptions: (await parts.store.listExceptions(pool, 100)).filter(isOpen).slice(0, SHOWN),
    changes: await parts.store.listScaleChanges(pool, SHOWN),
  };
}

export async function listScaleChanges({ store }: ScaleDeskParts, { pool, limit }: RecordQuery): Promise<readonly PoolScaleChange[]> {
  const pools = pool === undefined ? await store.listPools() : [pool];
  const changes = await Promise.all(
    pools.map(async (each) => (await store.listScaleChanges(each, limit)).map((change) => ({ ...change, pool: each }))),
  );
  return changes
    .flat()
    .toSorted((a, b) => b.at - a.at)
    .slice(0, limit);
}

/** Of the configuration that the pool has now: the load test has just ended. */
export async function recordProven(
  { store, clock }: ScaleDeskParts,
  entry: PoolEntry,
  pass: Pass | undefined,
  draft: ProvenDraft,
  by: string,
): Promise<ProvenCapacity> {
  // What the newest pass was made of is what ran: a document that has just changed may say otherwise.
  const tested = pass?.snapshot ?? { spec: entry.document.spec, blueprintHash: entry.blueprintHash };
  const slotsPerInstance = pass === undefined ? null : slotsPerInstanceOf(pass.snapshot);
  const slotTotals = pass === undefined ? null : slotTotalsOf(pass.snapshot);
  const proof = { ...draft, at: clock.now(), by, configHash: configHashOf(tested), slotsPerInstance, slotTotals };
  await store.recordProven(entry.key, proof);
  return proof;
}

export async function recordException(
  { store, clock, ids }: ScaleDeskParts,
  entry: PoolEntry,
  { followUps, ...draft }: PromotionDraft,
  by: string,
): Promise<PromotionException> {
  const exception = {
    ...draft,
    id: ids.next("exception"),
    pool: entry.key,
    by,
    at: clock.now(),
    followUps: followUps.map((what) => ({ what, doneAt: null })),
  };
  await store.recordException(exception);
  return exception;
}

export async function finishFollowUp({ store, clock }: ScaleDeskParts, id: string, index: number): Promise<PromotionException> {
  try {
    return await store.finishFollowUp(id, index, clock.now());
  } catch (error) {
    if (!(error instanceof RelevoError) || error.code !== "store_conflict") throw error;
    throw new RelevoError("follow_up_not_found", `there is no follow-up ${index} of exception ${id}`, {
      found: `${id} ${index}`,
      todo: "see relevo get exceptions",
    });
  }
}
