/** What makes the schedule exchangeable: the baselines of the simulator stand in the place of `planEvacuation`. */
import type { EvacuationInput, EvacuationPlan } from "./types.ts";

export type EvacuationPolicy = (input: EvacuationInput) => EvacuationPlan;
