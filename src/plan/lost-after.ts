/** After which silence a process counts as lost. */
import type { Instant } from "../kernel/clock.ts";
import type { InstanceRecord } from "../model/instance.ts";
import type { PoolSpec } from "../model/pool.ts";
import { isCluster } from "./cluster.ts";
import type { HealthState } from "./snapshot.ts";

/** As health answers are told: it was asked, and says itself that it is not well. */
export const UNHEALTHY = "unhealthy";

type Failing = Extract<HealthState, { readonly state: "failing" }>;

/** Its lead answers, and what it lacks is members: they are made anew beneath it, as long as a cluster may take to be ready. */
export function isLeadThere(spec: PoolSpec, { code }: Failing): boolean {
  return isCluster({ spec }) && code === UNHEALTHY;
}

/** Since when its failing counts: while it was still prepared nobody expected an answer. */
export function failingFrom({ phase, phaseSince }: Pick<InstanceRecord, "phase" | "phaseSince">, { since }: Failing): Instant {
  return phase === "validating" ? Math.max(since, phaseSince) : since;
}

/** In ms. */
export function lostAfter(spec: PoolSpec, health: Failing): number {
  const { unreachableAfter, candidates } = spec.disruption;
  return isLeadThere(spec, health) ? Math.max(unreachableAfter, candidates.readyWithin) : unreachableAfter;
}
