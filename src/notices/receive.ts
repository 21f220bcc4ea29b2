/** Takes messages in: understood, written down, then acknowledged; the same message again changes nothing. */
import type { Clock } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Store } from "../store/port.ts";
import { type Notice, NoticeError, noticeOf, recordOfNotice } from "./notice.ts";
import type { Announcement, NoticeMessage, NoticeSource, ParseContext } from "./source.ts";

export interface ReceiverOptions {
  readonly store: Pick<Store, "saveNotice">;
  readonly clock: Pick<Clock, "now">;
  readonly ids: Ids;
  readonly spotLeadMs?: number;
  /** Throws when the sender may not say this; nothing is written then. */
  readonly assertMay?: (announcements: readonly Announcement[]) => void;
}

/**
 * `received`: it may mean a node of ours; `ignored`: nothing goes because of it; `unknown_kind`: nobody here knows what it means; `duplicate`: it is there
 * already.
 */
export type ReceivedOutcome = "received" | "ignored" | "unknown_kind" | "duplicate";

export interface Received {
  readonly notice: Notice;
  readonly outcome: ReceivedOutcome;
}

/**
 * One entry for each thing that the message says. Acknowledge only after this settles: all of it is durable then. Rejects with NoticeError for a message that
 * cannot be understood (nothing was written) and with the store's error when it cannot be kept (the sender must try again; what was written of it is a
 * duplicate then).
 */
export async function receiveNotice(
  source: NoticeSource,
  message: NoticeMessage,
  { store, clock, ids, spotLeadMs, assertMay }: ReceiverOptions,
): Promise<readonly Received[]> {
  const receivedAt = clock.now();
  const announcements = understand(source, message, { receivedAt, ...(spotLeadMs === undefined ? {} : { spotLeadMs }) });
  assertMay?.(announcements);
  const received: Received[] = [];
  for (const announcement of announcements) {
    const notice = noticeOf(announcement, { id: ids.next("notice"), source: source.name, receivedAt, body: message.body });
    const record = recordOfNotice(notice);
    const isNew = await store.saveNotice(record);
    received.push({ notice, outcome: isNew ? (record.outcome as ReceivedOutcome) : "duplicate" });
  }
  return received;
}

/** A parser that fails in another way has met what nobody thought of: still the message's fault, or it would be tried for ever. */
function understand(source: NoticeSource, message: NoticeMessage, context: ParseContext): readonly Announcement[] {
  try {
    return source.parse(message, context);
  } catch (error) {
    if (error instanceof NoticeError) throw error;
    throw new NoticeError(
      "notice_malformed",
      "",
      `the message cannot be understood: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}
