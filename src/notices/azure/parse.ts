/**
 * What `relevo agent` read of Azure's scheduled events.
 *
 * 1. An event counts only when its `Resources` hold the machine that sends it: Azure tells all machines of a group of each other's events.
 * 2. An event that is not listed any more was cancelled or is over.
 * 3. One that has started has no time any more: its time is when that was seen.
 * 4. A short freeze is understood, and nothing goes because of it.
 */
import { z } from "zod";
import { parseWith } from "../parse-body.ts";
import { announcementOf, type CheckedReport, parseAgentReport, unknownKind } from "../parse-agent-report.ts";
import { NoticeError } from "../notice.ts";
import { parseGmt } from "../read-metadata.ts";
import type { Announcement, NoticeMessage, NoticeReason, NoticeSource, ParseContext } from "../source.ts";
import { AZURE_PATH, AZURE_TYPES, type AzureType, concerns, isShortFreeze } from "./read.ts";

export const AZURE = "azure";

export const azureSource: NoticeSource = { name: AZURE, sender: "agent", parse: (message, context) => [parseAzure(message, context)] };

const eventSchema = z.object({
  EventId: z.string().min(1).max(256),
  EventType: z.string().min(1).max(256),
  EventStatus: z.string().min(1).max(256),
  Resources: z.array(z.string().max(256)).max(1_000),
  NotBefore: z
    .string()
    .refine((text) => text === "" || parseGmt(text) !== undefined, "a time such as Mon, 30 Nov 2026 10:00:00 GMT, or nothing"),
  DurationInSeconds: z.number().default(-1),
});
type Event = z.output<typeof eventSchema>;

const REASONS = {
  Preempt: "spot_interruption",
  Terminate: "instance_state_change",
  Reboot: "scheduled_maintenance",
  Redeploy: "scheduled_maintenance",
  Freeze: "scheduled_maintenance",
} as const satisfies Readonly<Record<AzureType, NoticeReason>>;

/** Throws NoticeError and nothing else. */
export function parseAzure(message: Pick<NoticeMessage, "body">, context: ParseContext): Announcement {
  const report = parseAgentReport(message, context);
  if (report.kind !== AZURE_PATH) return unknownKind(report);
  const event = parseWith(eventSchema, report.document, ["document"]);
  if (report.machineName === undefined)
    throw new NoticeError("notice_malformed", "machineName", "says which of the event's Resources the machine is", { found: "nothing" });
  const { EventType } = event;
  if (!isKnown(EventType)) return unknownKind(report);
  const isOurs = concerns(event, report.machineName);
  return announcementOf(report, {
    part: event.EventId,
    identity: `${event.EventStatus} ${event.NotBefore}`,
    reason: isOurs && !isShortFreeze(event) ? REASONS[EventType] : null,
    deadline: isOurs && !isShortFreeze(event) ? deadlineOf(event, report) : null,
  });
}

const isKnown = (type: string): type is AzureType => (AZURE_TYPES as readonly string[]).includes(type);

function deadlineOf({ NotBefore }: Event, { saidAt }: CheckedReport): number {
  return parseGmt(NotBefore) ?? saidAt;
}
