/** The bodies that the queue takes. */
import { z } from "zod";
import { EPOCH_PATTERN, type Epoch } from "../../kernel/epoch.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { problemsOf } from "../../model/problems.ts";
import { JOB_OUTCOMES } from "../../sdk/queue-client.ts";
import type { QueueLimits } from "./limits.ts";

const MAX_WAIT_MS = 60_000;
const MAX_LEASE_MS = 24 * 3_600_000;
const MAX_TAKEN = 1_000;
export const MAX_LISTED = 1_000;

export const queueName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$/, "letters, digits, dots, dashes and underscores, at most 120 characters");
const jobId = z
  .string()
  .regex(/^[A-Za-z0-9][\x21-\x7e]{0,199}$/, "a letter or digit, then at most 199 printable characters without a space");
const word = z.string().min(1).max(250);
const leaseMs = z.int().min(100).max(MAX_LEASE_MS);
const lease = z.string().min(1).max(100);
const stamp = z.strictObject({
  workload: word,
  epoch: z
    .string()
    .regex(EPOCH_PATTERN, "ERA.COUNTER")
    .transform((text) => text as Epoch),
});
const maybeStamp = stamp.optional();

export type Forms = ReturnType<typeof formsWithin>;

export function formsWithin(limits: QueueLimits) {
  const json = (chars: number, what: string) =>
    z.unknown().refine((value) => lengthOf(value) <= chars, `${what} of at most ${chars} characters of JSON`);
  return {
    put: z.strictObject({ maxAttempts: z.int().min(1).max(1_000).optional() }),
    add: z.strictObject({
      jobs: z
        .array(z.strictObject({ id: jobId.optional(), payload: json(limits.payloadChars, "a payload") }))
        .min(1)
        .max(limits.jobsPerCall),
    }),
    take: z.strictObject({
      worker: word,
      max: z.int().min(1).max(MAX_TAKEN),
      leaseMs,
      waitMs: z.int().min(0).max(MAX_WAIT_MS).default(0),
      stamp: maybeStamp,
    }),
    extend: z.strictObject({ lease, leaseMs, stamp: maybeStamp }),
    complete: z.strictObject({
      lease,
      outcome: z.enum(JOB_OUTCOMES),
      result: json(limits.resultChars, "a result").optional(),
      stamp: maybeStamp,
    }),
    return: z.strictObject({
      lease,
      reason: z.string().min(1).max(1_000),
      dead: z.literal(true).optional(),
      untried: z.literal(true).optional(),
      stamp: maybeStamp,
    }),
    tagged: z.strictObject({ prefix: z.string().regex(/^[A-Za-z0-9][\x21-\x7e]{7,199}$/, "the first 8 characters of ids, or more") }),
    dead: z.strictObject({ limit: z.coerce.number().int().min(1).max(MAX_LISTED).default(100) }),
  };
}

/** Throws `body_invalid` with the field. */
export function parseForm<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const parsed = schema.safeParse(value ?? {});
  if (parsed.success) return parsed.data;
  const [problem] = problemsOf(schema, parsed.error, value);
  throw new RelevoError("body_invalid", problem?.sentence ?? "the body has another form", {
    field: problem?.field,
    found: problem?.found,
    ...(problem?.allowed === undefined ? {} : { allowed: problem.allowed }),
  });
}

/** What is nested too deeply can be parsed, and not be written again. */
function lengthOf(value: unknown): number {
  try {
    return JSON.stringify(value)?.length ?? 0;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
