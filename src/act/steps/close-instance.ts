/**
 * Shuts the door at the instance, for a gateway replica that was silent for its TTL and may still send. What arrives afterwards is refused, provably not
 * taken. Such a seal is assumed: counted apart, outside the zero-loss claim.
 */
import { z } from "zod";
import { LOSSES } from "../../model/phase.ts";
import type { Change } from "../../store/port.ts";
import { done, failed, NOT_HAPPENED, type StepKind } from "../step-kind.ts";
import { callProcess, isOutcome, processSchema } from "./process.ts";

const closeInstanceSchema = z.object({
  instance: z.string(),
  incarnation: z.int().min(1),
  loss: z.enum(LOSSES),
  process: processSchema,
});
export type CloseInstance = z.infer<typeof closeInstanceSchema>;

export const closeInstance: StepKind<CloseInstance> = {
  kind: "close_instance/1",
  schema: closeInstanceSchema,

  guard: ({ instance }) => [{ kind: "update_instance", instance, phase: "draining", set: {} }],

  async act({ process }, ports) {
    if (process.target.protocol !== "relevo/v1") return failed("no_door");
    const answer = await callProcess(process, ports, null, (target, call) => ports.driver.close(target, call));
    return isOutcome(answer) ? answer : done("closed");
  },

  /** As with a drain, telling it again is the probe. */
  async probe() {
    return NOT_HAPPENED;
  },

  settle({ instance, incarnation, loss }, outcome): readonly Change[] {
    if (outcome.state !== "done") return [];
    return [
      { kind: "move_instance", instance, incarnation, from: "draining", to: "sealed", set: { seal: "assumed" } },
      { kind: "count_loss", instance, loss, obligations: 0, seal: "assumed" },
    ];
  },
};
