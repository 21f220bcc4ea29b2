/** What was promoted before its gate: recorded as an exception with what is to be done about it, never as a pass (K10). */
import { z } from "zod";
import type { Instant } from "../kernel/clock.ts";

/** Shown on terminals as it is. */
const line = z
  .string()
  .min(1)
  .max(1_000)
  .regex(/^\P{Cc}*$/u, "one line without control characters");

export const promotionDraftSchema = z.strictObject({
  what: line,
  /** The gate that it went past. */
  gate: line,
  why: line,
  followUps: z.array(line).min(1, "an exception without a follow-up is a pass").max(20),
});
export type PromotionDraft = z.output<typeof promotionDraftSchema>;

export interface FollowUp {
  readonly what: string;
  /** Null: open. */
  readonly doneAt: Instant | null;
}

export interface PromotionException extends Omit<PromotionDraft, "followUps"> {
  readonly id: string;
  readonly pool: string;
  readonly by: string;
  readonly at: Instant;
  readonly followUps: readonly FollowUp[];
}

/** Shown until all of its follow-ups are done. */
export function isOpen({ followUps }: PromotionException): boolean {
  return followUps.some(({ doneAt }) => doneAt === null);
}
