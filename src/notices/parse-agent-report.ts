/** What an agent sent, checked: who the machine is, what was said of it and how long ago. */
import { z } from "zod";
import type { Instant } from "../kernel/clock.ts";
import { instantSchema } from "../kube/types.ts";
import { MAX_AGE_MS } from "./agent-report.ts";
import { machineIdOf } from "./machine.ts";
import { parseNoticeBody, parseWith } from "./parse-body.ts";
import type { Announcement, NoticeMessage, ParseContext } from "./source.ts";

const reportSchema = z.object({
  providerID: z
    .string()
    .max(1_024)
    .refine((text) => machineIdOf(text) !== undefined, "a providerID such as aws:///eu-west-1a/i-0123456789abcdef0"),
  kind: z.string().min(1).max(128),
  state: z.enum(["present", "gone"]),
  document: z.unknown(),
  seenAt: instantSchema,
  ageMs: z.int().min(0).max(MAX_AGE_MS),
  bootId: z.string().min(1).max(64).nullable(),
  machineName: z.string().min(1).max(256).optional(),
});

export interface CheckedReport {
  readonly machineId: string;
  readonly kind: string;
  readonly isGone: boolean;
  readonly document: unknown;
  /** By the node's clock: for keys only. */
  readonly seenAt: Instant;
  /** When it was seen first, by the clock of whoever receives it. */
  readonly saidAt: Instant;
  readonly bootId: string | null;
  readonly machineName: string | undefined;
}

export function parseAgentReport({ body }: Pick<NoticeMessage, "body">, { receivedAt }: ParseContext): CheckedReport {
  const { providerID, state, ageMs, machineName, ...rest } = parseWith(reportSchema, parseNoticeBody(body));
  return {
    ...rest,
    machineName,
    machineId: machineIdOf(providerID) ?? "",
    isGone: state === "gone",
    saidAt: receivedAt - ageMs,
  };
}

/** Of something whose meaning is known: it, or its end. `part` tells several of one kind apart, `identity` what is said of it. */
export function announcementOf(
  { machineId, kind, isGone, seenAt }: CheckedReport,
  {
    part,
    identity,
    ...meaning
  }: Pick<Announcement, "reason" | "deadline"> & { readonly part?: string; readonly identity: string | number },
): Announcement {
  const subject = [machineId, kind, ...(part === undefined ? [] : [part])].join(" ");
  const common = { subject, machineIds: [machineId] };
  // What was never acted upon is not taken back either.
  if (isGone && meaning.reason === null)
    return { ...common, dedupeKey: `${subject} ${identity} gone ${seenAt}`, reason: null, deadline: null };
  if (isGone) return { ...common, dedupeKey: `${subject} ${identity} gone ${seenAt}`, reason: "withdrawn", deadline: null };
  return { ...common, dedupeKey: `${subject} ${identity}`, ...meaning };
}

export function unknownKind({ machineId, kind, seenAt, isGone }: CheckedReport): Announcement {
  return {
    dedupeKey: `${machineId} ${kind} ${isGone ? "gone " : ""}${seenAt}`,
    reason: "unknown_kind",
    machineIds: [machineId],
    deadline: null,
  };
}
