/** The JSON of what is told of the sizes of pools. */
import { z } from "zod";
import { DEMAND_TROUBLES, signalSchema } from "../model/demand.ts";
import { provenCapacitySchema } from "../model/proven.ts";
import { JOB_OUTCOMES } from "../model/slots.ts";
import { FINDING_STATES } from "../model/finding.ts";
import { PREFLIGHT_CHECKS } from "../model/preflight.ts";
import { PROOFS } from "./scale-state.ts";

const time = z.iso.datetime();
const why = z.object({ code: z.string(), sentence: z.string() });

export const provenView = provenCapacitySchema.omit({ at: true }).extend({ at: time });
export type ProvenView = z.infer<typeof provenView>;

/** What a load test hands over: when, by whom and of which configuration is the controller's to say. */
export const provenBody = provenCapacitySchema.omit({ at: true, by: true, configHash: true, slotsPerInstance: true, slotTotals: true });

export const scaleView = z.object({
  signal: z.string(),
  flow: z.string().nullable(),
  target: z.number().meta({ description: "work that one instance is to have" }),
  backlog: z.number().nullable(),
  inFlight: z.number().nullable(),
  oldestAgeMs: z.number().nullable(),
  readAt: time.nullable(),
  trouble: z.object({ code: z.enum(DEMAND_TROUBLES), detail: z.string(), since: time }).nullable(),
  slots: z
    .object({
      instances: z.int().meta({ description: "that said something" }),
      total: z.int(),
      free: z.int(),
      progressing: z.int(),
      stuck: z.int(),
      throughput: z.number().nullable().meta({ description: "jobs per second over the last minute" }),
      perBusySlot: z.number().nullable(),
      usualPerBusySlot: z.number().nullable(),
    })
    .nullable(),
  desired: z.int(),
  floor: z.int(),
  max: z.int().meta({ description: "what somebody configured" }),
  proven: provenView.nullable().meta({ description: "what a load test has shown" }),
  proof: z.enum(PROOFS),
  pausedAt: z.int().nullable(),
  wanted: z.int().nullable().meta({ description: "what the demand wants now, within the bounds" }),
  changedAt: time.nullable(),
  next: z.object({ size: z.int(), reason: why }).nullable().meta({ description: "what is about to be done" }),
  holds: z.array(why),
  growthHeld: z.boolean(),
});
export type ScaleView = z.infer<typeof scaleView>;

export const scaleChangeView = z.object({
  at: time,
  pool: z.string(),
  from: z.int(),
  to: z.int(),
  reason: z.string(),
  message: z.string(),
});
export type ScaleChangeView = z.infer<typeof scaleChangeView>;

/** What a pool's size follows, as its document says with defaults. Durations are in ms. */
export const followedView = z.object({
  sites: z.array(z.string()),
  flow: z.string().nullable(),
  signal: signalSchema,
  target: z.number(),
  tolerance: z.number(),
  stuckAfterMs: z.number(),
  floor: z.int(),
  max: z.int(),
});
export type FollowedView = z.infer<typeof followedView>;

export const preflightView = z.object({
  site: z.string().meta({ description: "several, separated by commas, where they have it in common" }),
  check: z.enum(PREFLIGHT_CHECKS),
  state: z.enum(FINDING_STATES),
  message: z.string(),
  todo: z.string().nullable(),
});
export type PreflightView = z.infer<typeof preflightView>;

export const exceptionView = z.object({
  id: z.string(),
  pool: z.string(),
  what: z.string(),
  gate: z.string(),
  why: z.string(),
  by: z.string(),
  at: time,
  followUps: z.array(z.object({ what: z.string(), doneAt: time.nullable() })),
  open: z.boolean(),
});
export type ExceptionView = z.infer<typeof exceptionView>;

export const scaleExplainedView = scaleView.extend({
  owner: z.string(),
  otherOwners: z.array(z.string()),
  jobs: z.record(z.enum(JOB_OUTCOMES), z.int()).nullable().meta({ description: "how they ended since this controller began" }),
  exceptions: z.array(exceptionView),
  changes: z.array(scaleChangeView.omit({ pool: true })),
});
export type ScaleExplainedView = z.infer<typeof scaleExplainedView>;
