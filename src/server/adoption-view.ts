/** The JSON of a hand-over. */
import { z } from "zod";

export const adoptionView = z.object({
  pool: z.string(),
  target: z.string(),
  uid: z.string(),
  replicas: z.number(),
  outcome: z.enum(["adopted", "already_adopted", "would_adopt", "released"]),
  at: z.string(),
  removed: z.string().nullable(),
  owners: z.array(z.object({ kind: z.string(), name: z.string(), uid: z.string(), does: z.string() })),
  resetTo: z.number().nullable(),
});
export type AdoptionView = z.output<typeof adoptionView>;
