/** From what is known of the sizes of pools to JSON. */
import { formatInstant, type Instant } from "../kernel/clock.ts";
import { isOpen, type PromotionException } from "../model/promotion.ts";
import type { ProvenCapacity } from "../model/proven.ts";
import { sentenceOf, type Reason } from "../model/reasons.ts";
import type { ScaleChange } from "../model/scale.ts";
import type { PoolScale, PoolScaleChange, PoolScaleExplained } from "./scale-state.ts";
import type { ExceptionView, ProvenView, ScaleChangeView, ScaleExplainedView, ScaleView } from "./scale-views.ts";

const maybe = (at: Instant | null): string | null => (at === null ? null : formatInstant(at));
const why = (reason: Reason) => ({ code: reason.code, sentence: sentenceOf(reason) });

export function renderScale(scale: PoolScale): ScaleView {
  const { demand, slots, proven, next, changedAt, holds, isGrowthHeld, ...rest } = scale;
  const { signal, flow, target, desired, floor, max, proof, pausedAt, wanted } = rest;
  const { reading, readAt, trouble } = demand;
  return {
    ...{ signal, flow, target, desired, floor, max, proof, pausedAt, wanted },
    backlog: reading?.backlog ?? null,
    inFlight: reading?.inFlight ?? null,
    oldestAgeMs: reading?.oldestAgeMs ?? null,
    readAt: maybe(readAt),
    trouble: trouble && { ...trouble, since: formatInstant(trouble.since) },
    slots: slots && { ...slots },
    proven: proven && renderProven(proven),
    changedAt: maybe(changedAt),
    next: next && { size: next.size, reason: why(next.reason) },
    holds: holds.map(why),
    growthHeld: isGrowthHeld,
  };
}

export function renderScaleExplained(scale: PoolScaleExplained): ScaleExplainedView {
  return {
    ...renderScale(scale),
    owner: scale.owner,
    otherOwners: [...scale.otherOwners],
    jobs: scale.jobs && { ...scale.jobs },
    exceptions: scale.exceptions.map(renderException),
    changes: scale.changes.map(renderChange),
  };
}

export function renderProven({ at, ...proven }: ProvenCapacity): ProvenView {
  return { ...proven, at: formatInstant(at) };
}

export function renderScaleChange({ pool, ...change }: PoolScaleChange): ScaleChangeView {
  return { ...renderChange(change), pool };
}

function renderChange({ at, from, to, reason, message }: ScaleChange): Omit<ScaleChangeView, "pool"> {
  return { at: formatInstant(at), from, to, reason, message };
}

export function renderException(exception: PromotionException): ExceptionView {
  return {
    ...exception,
    at: formatInstant(exception.at),
    followUps: exception.followUps.map(({ what, doneAt }) => ({ what, doneAt: maybe(doneAt) })),
    open: isOpen(exception),
  };
}
