/** The common form of what others say about capacity, and the errors of what cannot be understood. */
import type { Instant } from "../kernel/clock.ts";
import { RelevoError, showable } from "../kernel/errors.ts";
import type { EvidenceReason } from "../model/evidence.ts";
import type { NoticeRecord } from "../store/port.ts";

/** A message that is longer is refused. */
export const MAX_NOTICE_BYTES = 64 * 1024;

export interface Notice {
  readonly id: string;
  readonly source: string;
  /** What makes two deliveries the same notice, within its source. */
  readonly dedupeKey: string;
  readonly receivedAt: Instant;
  /** Why the machines will go; null when the message was understood and nothing goes because of it. */
  readonly reason: EvidenceReason | null;
  /** A cloud's ids, each once, sorted. */
  readonly machineIds: readonly string[];
  /** Where the sender says to what the machines belong: an account and region, a group. Only shown, never matched. */
  readonly clusterHint: string | null;
  /** When the machines go, where known. */
  readonly deadline: Instant | null;
  /** As received. */
  readonly body: string;
}

/** What a parser may not know by itself. */
export interface Reception {
  readonly id: string;
  readonly receivedAt: Instant;
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

/** The object that a message holds; throws NoticeError when it holds none. */
export function parseNoticeBody(body: string): Readonly<Record<string, unknown>> {
  const bytes = Buffer.byteLength(body);
  if (bytes > MAX_NOTICE_BYTES)
    throw new NoticeError("notice_too_large", "", "the message is too long", {
      found: `${bytes} bytes`,
      allowed: `${MAX_NOTICE_BYTES} bytes`,
    });
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw new NoticeError("notice_malformed", "", "the message is not JSON", { found: excerpt(body), allowed: "one JSON object" });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new NoticeError("notice_malformed", "", "the message is no JSON object", { found: excerpt(value), allowed: "one JSON object" });
  return value as Readonly<Record<string, unknown>>;
}

/** Enough of a foreign value to recognise it, and no more. */
export function excerpt(value: unknown): string {
  const known = showable(value);
  const text = typeof known === "string" ? known : (JSON.stringify(known) ?? "nothing");
  return text.length <= 100 ? text : `${text.slice(0, 100)}…`;
}

/** As the store keeps it: `received` until it is matched with a node, `ignored` when nothing goes because of it. */
export function recordOfNotice(notice: Notice): NoticeRecord {
  const { id, source, dedupeKey, receivedAt, body, machineIds, deadline, reason } = notice;
  return {
    id,
    source,
    dedupeKey,
    receivedAt,
    body,
    machineIds,
    deadline,
    reason,
    outcome: reason === null || machineIds.length === 0 ? "ignored" : "received",
  };
}
