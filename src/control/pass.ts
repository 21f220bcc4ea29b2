/** One look at a pool: what was seen, and what was planned. */
import type { Instant } from "../kernel/clock.ts";
import type { Plan } from "../plan/decision.ts";
import type { PoolSnapshot } from "../plan/snapshot.ts";

export interface Pass {
  readonly snapshot: PoolSnapshot;
  readonly plan: Plan;
  readonly at: Instant;
}

/** Where the parts of the controller say what they do; the host decides on the format. */
export type ControllerLog = (
  level: "debug" | "info" | "warn" | "error",
  message: string,
  fields: Readonly<Record<string, unknown>>,
) => void;
