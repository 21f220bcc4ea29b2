/**
 * Tells the process to finish what it has and to take nothing new. The drain is committed before the process hears of it, so that the gateway stops
 * sending first. A lost process is not called: only its drain is committed (D13).
 */
import { z } from "zod";
import { LOSSES } from "../../model/phase.ts";
import type { Change } from "../../store/port.ts";
import { done, NOT_HAPPENED, type StepKind } from "../step-kind.ts";
import { callProcess, isOutcome, processSchema } from "./process.ts";

const drainInstanceSchema = z.object({
  instance: z.string(),
  incarnation: z.int().min(1),
  /** `draining`: it drains already, and its deadline became known since. */
  from: z.enum(["preparing", "validating", "admitted", "serving", "draining"]),
  loss: z.enum(LOSSES),
  /** In ms since the epoch; null: as long as its work lasts. */
  deadline: z.number().nullable(),
  /** Null when none was ever seen. */
  process: processSchema.nullable(),
});
export type DrainInstance = z.infer<typeof drainInstanceSchema>;

export const drainInstance: StepKind<DrainInstance> = {
  kind: "drain_instance/1",
  schema: drainInstanceSchema,

  begin({ instance, incarnation, from, loss, deadline }): readonly Change[] {
    const set = { drainLoss: loss, drainDeadline: deadline };
    if (from === "draining") return [{ kind: "update_instance", instance, phase: "draining", set }];
    return [{ kind: "move_instance", instance, incarnation, from, to: "draining", set }];
  },

  guard: ({ instance }) => [{ kind: "update_instance", instance, phase: "draining", set: {} }],

  async act({ process, loss, deadline }, ports) {
    if (loss === "forced" || process === null) return done("nobody_to_tell");
    const answer = await callProcess(process, ports, deadline, (target, call) => ports.driver.drain(target, call));
    return isOutcome(answer) ? answer : done("told");
  },

  /** The step's id is the key of the call: the process answers a repetition as it answered first, so telling it again is the probe. */
  async probe() {
    return NOT_HAPPENED;
  },

  settle: () => [],
};
