/**
 * How one request of the load ends. Every request ends exactly once, as one of four, so that `sent = completed + rejected + cut + lost` holds by
 * construction:
 *
 * - `completed`: the whole answer came. A WebSocket also counts when it was closed with 1012 after every message was acknowledged.
 * - `rejected`: any explicit error.
 * - `cut`: a stream, session or transaction that was under way ended by an explicit close or by the word that its instance is gone.
 * - `lost`: neither, as a time-out or a reset without an answer, or acknowledged but absent from the ledger afterwards.
 */
import { HEADERS } from "../../../model/membership.ts";

export const REQUEST_KINDS = ["order", "charge", "export", "live", "tx"] as const;
/** Idempotent POST, non-idempotent POST, stream, WebSocket session, transaction. */
export type RequestKind = (typeof REQUEST_KINDS)[number];

/** Those whose latency is compared. */
export const SHORT_KINDS: readonly RequestKind[] = ["order", "charge"];

export const OUTCOMES = ["completed", "rejected", "cut", "lost"] as const;
export type Outcome = (typeof OUTCOMES)[number];

export interface Ending {
  readonly outcome: Outcome;
  /** Why it did not complete: a code or a few words; null when it did. */
  readonly detail: string | null;
}

export interface RequestRecord extends Ending {
  readonly id: string;
  readonly kind: RequestKind;
  /** Wall time of its start, ms since the epoch. */
  readonly startedAt: number;
  readonly durationMs: number;
  /** By the gateway's headers, on any of its answers. */
  readonly queued: boolean;
  readonly retried: boolean;
  /** Every id that an instance acknowledged for it; each must be in the ledger. */
  readonly acknowledged: readonly string[];
}

/** What came back on one HTTP exchange. */
export type Reply =
  | { readonly kind: "answer"; readonly status: number; readonly headers: ReplyHeaders; readonly text: string }
  /** The connection ended before the answer did. `status` is null when not even the head came. */
  | { readonly kind: "broken"; readonly status: number | null; readonly headers: ReplyHeaders; readonly code: string }
  | { readonly kind: "timeout"; readonly status: number | null; readonly headers: ReplyHeaders };

export type ReplyHeaders = Readonly<Record<string, string | undefined>>;

export const COMPLETED: Ending = { outcome: "completed", detail: null };

export function endingOfShort(reply: Reply): Ending {
  switch (reply.kind) {
    case "answer":
      return reply.status < 400 ? COMPLETED : rejection(reply);
    case "broken":
      // The head of an error is explicit enough.
      return reply.status !== null && reply.status >= 400
        ? { outcome: "rejected", detail: `${reply.status} broken_${reply.code}` }
        : { outcome: "lost", detail: `broken_${reply.code}` };
    case "timeout":
      return { outcome: "lost", detail: "timeout" };
    default:
      return reply satisfies never;
  }
}

/** A stream is whole when its last line says so. */
export function endingOfStream(reply: Reply, id: string): Ending {
  if (reply.kind === "timeout") return { outcome: "lost", detail: "timeout" };
  if (reply.kind === "broken") return { outcome: reply.status === null ? "lost" : "cut", detail: `broken_${reply.code}` };
  if (reply.status >= 400) return rejection(reply);
  const lastLine = reply.text.trimEnd().split("\n").at(-1) ?? "";
  return lastLine.includes('"end":true') && lastLine.includes(`"${id}"`) ? COMPLETED : { outcome: "cut", detail: "truncated" };
}

/** The gateway's words for: the instance that held this is gone. */
const INSTANCE_GONE = ["session_lost", "session_unreachable", "answer_lost", "answer_timeout", "connect_failed", "instance_cut"];

/** Of a later request of an open transaction; null when the transaction goes on. */
export function endingOfFollowUp(reply: Reply): Ending | null {
  if (reply.kind === "timeout") return { outcome: "lost", detail: "timeout" };
  if (reply.kind === "broken") return { outcome: "cut", detail: `broken_${reply.code}` };
  if (reply.status < 400) return null;
  const code = reply.headers[HEADERS.rejected];
  return code !== undefined && INSTANCE_GONE.includes(code) ? { outcome: "cut", detail: code } : rejection(reply);
}

function rejection(reply: Extract<Reply, { kind: "answer" }>): Ending {
  return { outcome: "rejected", detail: `${reply.status} ${reply.headers[HEADERS.rejected] ?? "by the instance"}` };
}

export function wasQueued(headers: ReplyHeaders): boolean {
  return Number(headers[HEADERS.queued] ?? 0) > 0;
}

export function wasRetried(headers: ReplyHeaders): boolean {
  return Number(headers[HEADERS.retried] ?? 0) > 0;
}
