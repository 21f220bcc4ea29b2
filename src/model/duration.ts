/** Durations of documents: text such as `90s` there, milliseconds in code. */
import { z } from "zod";
import { parseDuration } from "../kernel/units.ts";

/** Beyond it no time can be told any more, and no timer set. */
const LONGEST_MS = 365 * 86_400_000;

/** In the JSON Schema: what a pattern cannot say of a duration, `{ leastMs, mostMs, message }`. */
export const DURATION_RANGE = "x-relevo-duration";

/** Text such as `90s` in documents, milliseconds in code; at least `leastMs`. */
export const durationOf = (leastMs: number, what: string) =>
  z
    .string()
    .max(40, { error: "a duration such as 90s, 2m or 1h30m, at most 40 characters", abort: true })
    .regex(/^(\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/, "a duration such as 90s, 2m or 1h30m")
    .refine((text) => within(parseDuration(text), leastMs), { error: what })
    .meta({ [DURATION_RANGE]: { leastMs, mostMs: LONGEST_MS, message: what } })
    .transform((text) => parseDuration(text) ?? 0);

function within(ms: number | undefined, leastMs: number): boolean {
  return ms === undefined || (ms >= leastMs && ms <= LONGEST_MS); // what is no duration at all is told by its form
}

export const duration = durationOf(0, "is longer than 365d");
/** Of what cannot be done in no time: a limit of 0 would refuse everything. */
export const someTime = durationOf(1, "must be longer than 0s and at most 365d");
