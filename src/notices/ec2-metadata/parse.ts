/**
 * What `relevo agent` read in EC2's instance metadata.
 *
 * 1. A spot interruption has a time of its own, by EC2's clock; it is never taken for later than the promise of two minutes from when it was seen.
 * 2. Maintenance that is over, and whatever is not said any more, takes back what was said before of the same.
 * 3. A lifecycle state that nobody knows, or none, is kept and never acted upon.
 */
import { z } from "zod";
import { instantSchema } from "../../kube/types.ts";
import { parseWith } from "../parse-body.ts";
import { announcementOf, type CheckedReport, parseAgentReport, unknownKind } from "../parse-agent-report.ts";
import { parseGmt } from "../read-metadata.ts";
import type { Announcement, NoticeMessage, NoticeSource, ParseContext } from "../source.ts";
import { EC2_PATHS, ENDED_EVENTS, GOING_STATES, STAYING_STATES } from "./read.ts";

export const EC2_METADATA = "ec2-metadata";

/** EC2's promise for stop and terminate; hibernation begins at once. */
const SPOT_LEAD_MS = 120_000;

export const ec2MetadataSource: NoticeSource = {
  name: EC2_METADATA,
  sender: "agent",
  parse: (message, context) => [parseEc2Metadata(message, context)],
};

/** Throws NoticeError and nothing else. */
export function parseEc2Metadata(message: Pick<NoticeMessage, "body">, context: ParseContext): Announcement {
  const report = parseAgentReport(message, context);
  switch (report.kind) {
    case EC2_PATHS.spot:
      return meaningOfSpot(report, context);
    case EC2_PATHS.rebalance:
      return meaningOfRebalance(report);
    case EC2_PATHS.maintenance:
      return meaningOfMaintenance(report);
    case EC2_PATHS.lifecycle:
      return meaningOfLifecycle(report);
    default:
      return unknownKind(report);
  }
}

const spotSchema = z.object({ action: z.string().min(1).max(64), time: instantSchema });

function meaningOfSpot(report: CheckedReport, { spotLeadMs = SPOT_LEAD_MS }: ParseContext): Announcement {
  const { action, time } = parseWith(spotSchema, report.document, ["document"]);
  const leadMs = action.toLowerCase() === "hibernate" ? 0 : Math.min(spotLeadMs, SPOT_LEAD_MS);
  return announcementOf(report, {
    identity: `${action} ${time}`,
    reason: "spot_interruption",
    deadline: Math.min(time, report.saidAt + leadMs),
  });
}

function meaningOfRebalance(report: CheckedReport): Announcement {
  const { noticeTime } = parseWith(z.object({ noticeTime: instantSchema }), report.document, ["document"]);
  return announcementOf(report, { identity: noticeTime, reason: "node_rebalance", deadline: null });
}

const gmt = z.string().transform((text, context) => {
  const at = parseGmt(text);
  if (at === undefined) context.addIssue({ code: "custom", message: "a time such as 21 Jan 2019 09:00:43 GMT", input: text });
  return at ?? z.NEVER;
});
const maintenanceSchema = z.object({
  EventId: z.string().min(1).max(256),
  Code: z.string().min(1).max(256),
  State: z.string().max(64).default("active"),
  NotBefore: gmt,
});

function meaningOfMaintenance(report: CheckedReport): Announcement {
  const { EventId, Code, State, NotBefore } = parseWith(maintenanceSchema, report.document, ["document"]);
  const isOver = report.isGone || ENDED_EVENTS.includes(State.toLowerCase());
  return announcementOf(
    { ...report, isGone: isOver },
    { part: EventId, identity: `${Code} ${NotBefore}`, reason: "scheduled_maintenance", deadline: NotBefore },
  );
}

/** It has no time: the group's lifecycle hooks decide when the machine goes. */
function meaningOfLifecycle(report: CheckedReport): Announcement {
  const state = parseWith(z.string().max(64), report.document, ["document"]);
  const known = state.trim().toLowerCase();
  if (!GOING_STATES.includes(known) && !STAYING_STATES.includes(known)) return unknownKind(report);
  const identity = `${state} ${report.seenAt}`;
  return announcementOf(report, {
    identity,
    reason: GOING_STATES.includes(known) ? "instance_state_change" : null,
    deadline: null,
  });
}
