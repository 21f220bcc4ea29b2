/**
 * Deletes what a create step made for an instance that the store does not know: a store that was rewound and recovered has lost its row. Each object by its
 * UID, only with the mark of that instance's own create step, and done only when none of it can be read any more (I8).
 */
import type { StepKind } from "../step-kind.ts";
import { deleteAll, type MadeFor, madeForSchema, probeAbsence } from "./owned-objects.ts";

export type DeleteStranger = MadeFor;

export const deleteStranger: StepKind<DeleteStranger> = {
  kind: "delete_stranger/1",
  schema: madeForSchema,

  act: (payload, { kube }) => deleteAll(payload, kube),

  probe: (payload, { kube }) => probeAbsence(payload, kube),

  settle: () => [],
};
