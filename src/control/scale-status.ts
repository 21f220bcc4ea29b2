/** What the status of a Pool says of a size that follows its demand. */
import { formatInstant } from "../kernel/clock.ts";
import { sentenceOf } from "../model/reasons.ts";
import type { PoolScale } from "../server/scale-state.ts";
import type { Condition, PoolStatus } from "./status.ts";

export function scaleStatus(scale: PoolScale | undefined): Pick<PoolStatus, "demand" | "slots" | "capacity"> {
  if (scale === undefined) return { demand: null, slots: null, capacity: null };
  const { reading, trouble } = scale.demand;
  const { slots, proven } = scale;
  const whole = (ms: number | null): number | null => (ms === null ? null : Math.round(ms / 1_000));
  return {
    demand: {
      backlog: reading?.backlog ?? null,
      inFlight: reading?.inFlight ?? null,
      oldestAge: whole(reading?.oldestAgeMs ?? null),
      trouble: trouble?.code ?? null,
    },
    slots: slots && { total: slots.total, free: slots.free, progressing: slots.progressing, stuck: slots.stuck },
    capacity: { configured: scale.max, proven: proven?.instances ?? null, provenAt: proven && formatInstant(proven.at) },
  };
}

export function scaleConditions(scale: PoolScale): readonly Condition[] {
  return [ready(scale), withinProven(scale)];
}

function ready({ demand, holds, isGrowthHeld, desired, max, pausedAt, proven }: PoolScale): Condition {
  const type = "ScaleReady";
  const { trouble, reading } = demand;
  if (pausedAt !== null) return { type, status: "True", reason: "Paused", message: `scale.pausedAt is ${pausedAt}` };
  if (trouble !== null) return { type, status: "False", reason: `Demand${pascal(trouble.code)}`, message: trouble.detail };
  if (reading === null) return { type, status: "False", reason: "DemandUnread", message: "the demand was not read yet" };
  const [hold] = holds;
  if (isGrowthHeld && hold !== undefined) return { type, status: "False", reason: pascal(hold.code), message: sentenceOf(hold) };
  if (desired >= max) {
    const shown = `size.max is ${max}, ${provenText(proven)} proven`;
    return { type, status: "True", reason: "AtMaximum", message: `${shown}: more demand changes nothing` };
  }
  return { type, status: "True", reason: "FollowsDemand", message: "the size follows the demand" };
}

function withinProven({ proof, proven, desired, max }: PoolScale): Condition {
  const type = "WithinProven";
  const shown = `${desired} desired, ${max} configured at most, ${provenText(proven)} proven`;
  return proof === "within_proven"
    ? { type, status: "True", reason: "WithinProven", message: shown }
    : { type, status: "False", reason: pascal(proof), message: `${shown}: run relevo loadtest` };
}

function provenText(proven: PoolScale["proven"]): string {
  return proven === null ? "nothing" : String(proven.instances);
}

function pascal(code: string): string {
  return code.replaceAll(/(^|_)([a-z])/g, (_, __, letter: string) => letter.toUpperCase());
}
