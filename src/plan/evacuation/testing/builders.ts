/** Says only what matters to a case. */
import type { Evacuee, Supply } from "../types.ts";

export const NOON = Date.UTC(2026, 0, 5, 12);

export function evacuee(id: string, given: Partial<Evacuee> = {}): Evacuee {
  return {
    id,
    pool: "default/orders",
    priority: "standard",
    noticedAt: NOON,
    deadline: NOON + 120_000,
    stateMoveMs: 0,
    warmUpMs: 0,
    latencyLimitMs: 100,
    ...given,
  };
}

export interface SupplyGiven extends Partial<Omit<Supply, "absorption">> {
  readonly perSecond?: number;
  readonly burst?: number;
  readonly tokens?: number;
}

export function supply(id: string, { perSecond = 1_000, burst = 10_000, tokens = burst, ...given }: SupplyGiven = {}): Supply {
  const site = given.site ?? id;
  return {
    id,
    site,
    provider: "aws",
    zone: `${site}-1`,
    instanceType: "m5.large",
    kind: "standby",
    pool: null,
    latencyMs: 20,
    free: 1,
    readyInMs: 0,
    heat: 0,
    passing: true,
    preemptible: null,
    ...given,
    absorption: { site, perSecond, burst, tokens },
  };
}
