/**
 * Deletes what a create step made for an instance that the store does not know: a store that was rewound and recovered has lost its row. Each object by its
 * UID, only with the mark of that instance's own create step, and done only when none of it can be read any more (I8).
 */
import { z } from "zod";
import { done, happened, NOT_HAPPENED, type StepKind } from "../step-kind.ts";
import { deleteExactly, remaining, stillThere } from "./owned-objects.ts";
import { ownedObjectSchema } from "./objects.ts";

const deleteStrangerSchema = z.object({
  instance: z.string(),
  namespace: z.string(),
  objects: z.array(ownedObjectSchema),
  /** The create step, without its attempt: what carries its mark is ours. */
  createdBy: z.string(),
});
export type DeleteStranger = z.infer<typeof deleteStrangerSchema>;

export const deleteStranger: StepKind<DeleteStranger> = {
  kind: "delete_stranger/1",
  schema: deleteStrangerSchema,

  async act(payload, { kube }) {
    for (const object of await remaining(payload, kube)) await deleteExactly(object, kube);
    const left = await remaining(payload, kube);
    if (left.length > 0) throw stillThere(payload.instance, left);
    return done("absent");
  },

  async probe(payload, { kube }) {
    return (await remaining(payload, kube)).length === 0 ? happened("absent") : NOT_HAPPENED;
  },

  settle: () => [],
};
