/**
 * What `relevo agent` read from GCP's metadata server.
 *
 * 1. Its values have no time: it counts from when the agent saw them, told as an age, so that no two clocks are compared.
 * 2. A preemption happens once in a life of the machine's kernel: the machine exists on, stopped, and may be started again under the same name.
 * 3. A machine that is moved while it runs goes on: that is understood, and nothing goes because of it.
 */
import { z } from "zod";
import { parseWith } from "../parse-body.ts";
import { announcementOf, type CheckedReport, parseAgentReport, unknownKind } from "../parse-agent-report.ts";
import type { Announcement, NoticeMessage, NoticeSource, ParseContext } from "../source.ts";
import { GCP_PATHS, MIGRATE, TERMINATE } from "./read.ts";

export const GCP = "gcp";

/** From the word to the end, as Compute Engine promises. */
const PREEMPTION_LEAD_MS = 30_000;
const MAINTENANCE_LEAD_MS = 60_000;

export const gcpSource: NoticeSource = { name: GCP, sender: "agent", parse: (message, context) => [parseGcp(message, context)] };

/** Throws NoticeError and nothing else. */
export function parseGcp(message: Pick<NoticeMessage, "body">, context: ParseContext): Announcement {
  const report = parseAgentReport(message, context);
  const value = parseWith(z.string().max(64), report.document, ["document"]).toUpperCase();
  switch (report.kind) {
    case GCP_PATHS.preempted:
      return value === "TRUE" ? preemption(report, context) : unknownKind(report);
    case GCP_PATHS.maintenance:
      return maintenance(report, value);
    default:
      return unknownKind(report);
  }
}

/** The controller's lead is for spot in general; it makes this one shorter, never longer. */
function preemption(report: CheckedReport, { spotLeadMs = PREEMPTION_LEAD_MS }: ParseContext): Announcement {
  return announcementOf(report, {
    identity: report.bootId ?? report.seenAt,
    reason: "spot_interruption",
    deadline: report.saidAt + Math.min(spotLeadMs, PREEMPTION_LEAD_MS),
  });
}

function maintenance(report: CheckedReport, value: string): Announcement {
  const identity = `${value} ${report.seenAt}`;
  if (value === TERMINATE)
    return announcementOf(report, { identity, reason: "scheduled_maintenance", deadline: report.saidAt + MAINTENANCE_LEAD_MS });
  if (value === MIGRATE || value === "NONE") return announcementOf(report, { identity, reason: null, deadline: null });
  return unknownKind(report);
}
