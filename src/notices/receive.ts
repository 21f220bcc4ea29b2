/** Takes messages in: understood, written down, then acknowledged; the same message again changes nothing. */
import type { Clock } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Store } from "../store/port.ts";
import { type Notice, type Reception, recordOfNotice } from "./notice.ts";

export interface ReceiverOptions {
  readonly parse: (body: string, reception: Reception) => Notice;
  readonly store: Pick<Store, "saveNotice">;
  readonly clock: Pick<Clock, "now">;
  readonly ids: Ids;
}

export interface Received {
  readonly notice: Notice;
  /** `received`: it may mean a node of ours; `ignored`: nothing goes because of it; `duplicate`: it is there already. */
  readonly outcome: "received" | "ignored" | "duplicate";
}

/**
 * Acknowledge only after this settles: it is durable then. Rejects with NoticeError for a message that cannot be understood (nothing was written) and with
 * the store's error when it cannot be kept (the sender must try again).
 */
export async function receiveNotice(body: string, { parse, store, clock, ids }: ReceiverOptions): Promise<Received> {
  const notice = parse(body, { id: ids.next("notice"), receivedAt: clock.now() });
  const record = recordOfNotice(notice);
  if (!(await store.saveNotice(record))) return { notice, outcome: "duplicate" };
  return { notice, outcome: record.outcome === "ignored" ? "ignored" : "received" };
}
