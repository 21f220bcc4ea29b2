/** The gateway as a landing of results: an answer under an epoch that is no longer accepted for its workload is stale and not passed on (I1, I2). */
import { compareEpochs, type Epoch, EPOCH_PATTERN } from "../kernel/epoch.ts";
import type { Member } from "../model/membership.ts";
import { isAcceptedWriter, WRITER_EPOCH_HEADER } from "../model/writer.ts";
import type { AnswerHeaders } from "./headers.ts";

export type AcceptedWriter = NonNullable<Member["writer"]>;

/** What an instance says of itself; null when it says nothing, and then there is nothing to compare. Two values are as good as a malformed one. */
export function writerEpochOf(headers: AnswerHeaders): string | null {
  const value = headers[WRITER_EPOCH_HEADER];
  return value === undefined ? null : String(value);
}

/** What cannot be read cannot be shown to be accepted. */
export function isStaleEpoch(epoch: string, minAccepted: Epoch): boolean {
  return !EPOCH_PATTERN.test(epoch) || !isAcceptedWriter(epoch as Epoch, minAccepted);
}

export function isStale(writer: AcceptedWriter, headers: AnswerHeaders): boolean {
  const epoch = writerEpochOf(headers);
  return epoch !== null && isStaleEpoch(epoch, writer.minAccepted);
}

/** A tombstone never falls, and does not go away either. */
export function newerWriter(known: AcceptedWriter | null, offered: AcceptedWriter | null): AcceptedWriter | null {
  if (known === null || offered === null) return known ?? offered;
  // Of another place: only after a recovery of the store, and no epoch of one place says anything about another.
  if (known.ordinal !== offered.ordinal) return offered;
  return compareEpochs(offered.minAccepted, known.minAccepted) > 0 ? offered : known;
}

export function sameWriter(a: AcceptedWriter | null, b: AcceptedWriter | null): boolean {
  return a?.ordinal === b?.ordinal && a?.minAccepted === b?.minAccepted;
}
