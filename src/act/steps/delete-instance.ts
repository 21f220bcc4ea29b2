/**
 * Deletes what an instance was made of, each object by its UID, and is done only when none of it can be read any more (D5, I8). Beside the recorded objects
 * it takes those that carry the instance's label and a mark of its own create step: a create that was overtaken leaves no record of what it made. Pods and
 * nodes are never deleted here, and nothing is evicted.
 */
import { z } from "zod";
import type { Change } from "../../store/port.ts";
import type { StepKind } from "../step-kind.ts";
import { deleteAll, madeForSchema, probeAbsence } from "./owned-objects.ts";

const deleteInstanceSchema = madeForSchema.extend({
  /** `retiring`: an earlier attempt ended in vain. */
  from: z.enum(["sealed", "failed", "retiring"]),
});
export type DeleteInstance = z.infer<typeof deleteInstanceSchema>;

export const deleteInstance: StepKind<DeleteInstance> = {
  kind: "delete_instance/1",
  schema: deleteInstanceSchema,
  /** A create that still runs could make an object after the last look for it. */
  after: ["create_instance/1"],

  begin: ({ instance, from }) =>
    from === "retiring"
      ? [{ kind: "update_instance", instance, phase: "retiring", set: {} }]
      : [{ kind: "move_instance", instance, from, to: "retiring" }],

  guard: ({ instance }) => [{ kind: "update_instance", instance, phase: "retiring", set: {} }],

  act: (payload, { kube }) => deleteAll(payload, kube),

  probe: (payload, { kube }) => probeAbsence(payload, kube),

  settle: ({ instance }, outcome): readonly Change[] =>
    outcome.state === "done" ? [{ kind: "move_instance", instance, from: "retiring", to: "retired" }] : [],
};
