/**
 * What a source of notices is: a name, and a parser that turns one message into announcements. Each has a folder of its own beside this file and a line in
 * `registry.ts`.
 */
import type { Instant } from "../kernel/clock.ts";
import type { EvidenceReason } from "../model/evidence.ts";

/** `withdrawn`: what was said before of the same subject is taken back. `unknown_kind`: well-formed, and of a kind that nobody here knows. */
export type NoticeReason = EvidenceReason | "withdrawn" | "unknown_kind";

/** One thing that a message says. */
export interface Announcement {
  /** What makes two deliveries the same notice, within its source: the sender's own id, else the machine, the kind and the sender's time of it. */
  readonly dedupeKey: string;
  /**
   * What it is about, within its source: a later `withdrawn` of the same subject ends it. An event's own id where there is one, else machine and kind.
   * Absent: it is never withdrawn.
   */
  readonly subject?: string;
  /** Why the machines will go; null when it was understood and nothing goes because of it. */
  readonly reason: NoticeReason | null;
  /** As `machineIdOf` (machine.ts) writes them; in any order, repeated or not. Never a node's name. */
  readonly machineIds: readonly string[];
  /** When the machines go, where known. */
  readonly deadline: Instant | null;
  /** Where the sender says to what the machines belong: an account and region, a group. Only shown, never matched. */
  readonly clusterHint?: string | null;
}

/** One delivery, as it came. */
export interface NoticeMessage {
  readonly body: string;
  /** Lower-case names. Only those that some source has in `headers`; none from a queue. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What a parser may not know by itself. */
export interface ParseContext {
  readonly receivedAt: Instant;
  /** Between a spot warning and the end of its machine, where the message has no time of its own; the cloud's own when absent. */
  readonly spotLeadMs?: number;
}

export interface NoticeSource {
  /** As in the path `POST /v1/notices/<name>`, in metrics and in `relevo get notices`. */
  readonly name: string;
  /** Lower-case names of the headers that `parse` reads. */
  readonly headers?: readonly string[];
  /** Whose word it is. `agent`: of `relevo agent` on a node, whose token is good for that node alone. */
  readonly sender: "anybody" | "agent";
  /** A message may say several things, or nothing. Throws NoticeError and nothing else, whatever the body is. */
  readonly parse: (message: NoticeMessage, context: ParseContext) => readonly Announcement[];
}
