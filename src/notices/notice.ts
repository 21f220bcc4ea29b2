/** The common form of what others say about capacity, and how the store keeps it. */
import { createHash } from "node:crypto";
import type { Instant } from "../kernel/clock.ts";
import { RelevoError, showable } from "../kernel/errors.ts";
import type { NoticeRecord } from "../store/port.ts";
import type { Announcement, NoticeReason } from "./source.ts";

/** A message that is longer is refused. */
export const MAX_NOTICE_BYTES = 64 * 1024;
/** What one message names is cut to this many machines, in sorted order: AWS Health names at most 100 at once. */
const MAX_MACHINES = 1_000;

export interface Notice {
  readonly id: string;
  readonly source: string;
  /** What makes two deliveries the same notice, within its source; holds the subject too (`subjectOf`). */
  readonly dedupeKey: string;
  readonly receivedAt: Instant;
  /** Why the machines will go; null when the message was understood and nothing goes because of it. */
  readonly reason: NoticeReason | null;
  /** As `machineIdOf` writes them, each once, sorted. */
  readonly machineIds: readonly string[];
  /** Where the sender says to what the machines belong: an account and region, a group. Only shown, never matched. */
  readonly clusterHint: string | null;
  /** When the machines go, where known. */
  readonly deadline: Instant | null;
  /** As received. */
  readonly body: string;
}

/** What is given to a notice where it is taken in. */
export interface Reception {
  readonly id: string;
  readonly source: string;
  readonly receivedAt: Instant;
  readonly body: string;
}

export function noticeOf(announcement: Announcement, reception: Reception): Notice {
  const { dedupeKey, subject, reason, machineIds, deadline, clusterHint = null } = announcement;
  return {
    ...reception,
    dedupeKey: subject === undefined ? keyPart(dedupeKey) : `${keyPart(subject)}${SUBJECT_END}${keyPart(dedupeKey)}`,
    reason,
    machineIds: [...new Set(machineIds)].toSorted().slice(0, MAX_MACHINES),
    clusterHint,
    deadline,
  };
}

/** Between the subject and the rest of a key, in neither of which it is. */
const SUBJECT_END = "#";
/** Two parts and what is between them fit into any store's index, so that what is read back still has its subject. */
const MAX_PART_BYTES = 240;

/** Two texts are never written alike, or the second would pass for a delivery of the first; a long one is known by its hash. No database keeps a zero byte. */
function keyPart(text: string): string {
  const written = text.toWellFormed().replaceAll("%", "%25").replaceAll(SUBJECT_END, "%23").replaceAll("\0", "%00");
  return Buffer.byteLength(written) <= MAX_PART_BYTES ? written : `sha256:${createHash("sha256").update(written).digest("hex")}`;
}

/** What a notice is about, so that a withdrawal of the same finds it; undefined: it is never withdrawn. */
export function subjectOf({ source, dedupeKey }: Pick<Notice, "source" | "dedupeKey">): string | undefined {
  const end = dedupeKey.indexOf(SUBJECT_END);
  return end < 0 ? undefined : `${source} ${dedupeKey.slice(0, end)}`;
}

/** As the store keeps it: `received` until it is matched with a node, `ignored` when nothing goes because of it. */
export function recordOfNotice(notice: Notice): NoticeRecord {
  const { id, source, dedupeKey, receivedAt, body, machineIds, deadline, reason } = notice;
  return { id, source, dedupeKey, receivedAt, body, machineIds, deadline, reason, outcome: firstOutcome(notice) };
}

function firstOutcome(notice: Notice): "received" | "ignored" | "unknown_kind" {
  switch (notice.reason) {
    case null:
      return "ignored";
    case "unknown_kind":
      return "unknown_kind";
    case "withdrawn":
      return subjectOf(notice) === undefined ? "ignored" : "received";
    default:
      return notice.machineIds.length === 0 ? "ignored" : "received";
  }
}

/** `notice_malformed` (answer 400 with the field) or `notice_too_large` (413). */
export class NoticeError extends RelevoError {
  /** The field, as `detail.instance-id`; empty for the message as a whole. */
  readonly path: string;

  constructor(
    code: "notice_malformed" | "notice_too_large",
    path: string,
    problem: string,
    details: { readonly found?: unknown; readonly allowed?: string } = {},
  ) {
    super(code, path === "" ? problem : `${path}: ${problem}`, { ...details, field: path === "" ? "body" : path });
    this.name = "NoticeError";
    this.path = path;
  }
}

/** Enough of a foreign value to recognise it, and no more. */
export function excerpt(value: unknown): string {
  const known = showable(value);
  const text = typeof known === "string" ? known : (JSON.stringify(known) ?? "nothing");
  return text.length <= 100 ? text : `${text.slice(0, 100)}…`;
}
