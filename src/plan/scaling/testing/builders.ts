/** Inputs of the policy that say only what matters to the case: two instances serve and have the work that is meant for them. */
import type { Instant } from "../../../kernel/clock.ts";
import type { DemandTrouble, DemandView } from "../../../model/demand.ts";
import { scaleSchema, type ScalePolicy, type ScaleState } from "../../../model/scale.ts";
import type { PoolSlots } from "../../../model/slots.ts";
import type { ScalingInput } from "../types.ts";

export const NOON: Instant = Date.UTC(2026, 10, 30, 12, 0, 0);

export function policyOf(more: Record<string, unknown> = {}): ScalePolicy {
  return scaleSchema.parse({ signal: { kind: "queue", connection: "main", queue: "captures" }, target: 10, ...more });
}

export function demand(backlog: number, inFlight: number | null = 0, readAt: Instant = NOON): DemandView {
  return {
    reading: { backlog, inFlight, oldestAgeMs: null, flow: "queue/captures", valueAt: null, sourceNow: null },
    readAt,
    trouble: null,
  };
}

/** Valid at first, then not: since `since`, a second after the last valid look. */
export function troubled(code: DemandTrouble, since: Instant = NOON, backlog = 20): DemandView {
  return { ...demand(backlog, 0, since - 1_000), trouble: { code, detail: "as the source said", since } };
}

export function slots(more: Partial<PoolSlots> = {}): PoolSlots {
  return {
    instances: 2,
    total: 8,
    free: 0,
    progressing: 8,
    stuck: 0,
    throughput: 2,
    busySeconds: 480,
    perBusySlot: 0.25,
    usualPerBusySlot: 0.25,
    ...more,
  };
}

export function stateOf(more: Partial<ScaleState> = {}): ScaleState {
  return { desired: 2, changedAt: NOON - 600_000, direction: null, lastUp: null, recent: [], ...more };
}

export interface InputParts extends Partial<Omit<ScalingInput, "policy" | "bounds" | "instances">> {
  readonly policy?: Record<string, unknown>;
  readonly bounds?: Partial<ScalingInput["bounds"]>;
  readonly instances?: Partial<ScalingInput["instances"]>;
}

export function scalingInput({ policy, bounds, instances, ...rest }: InputParts = {}): ScalingInput {
  const { desired = 2 } = rest;
  return {
    policy: policyOf(policy),
    bounds: { floor: 1, max: 100, quota: null, ...bounds },
    desired,
    state: stateOf({ desired }),
    demand: demand(20),
    slots: null,
    instances: { serving: desired, coming: 0, since: Array.from({ length: desired }, () => NOON - 600_000), ...instances },
    settledAt: NOON - 60_000,
    // It has been wanted for longer than any window.
    recommended: [{ at: NOON - 3_600_000, size: 0 }],
    heldSince: null,
    ...rest,
  };
}
