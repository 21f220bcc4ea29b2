/** What the gateway itself answers: one registry of codes, statuses and sentences. The code goes out in the header `relevo-rejected`. */
import { HEADERS } from "../model/membership.ts";
import { LIMITS } from "./limits.ts";

export const REJECTIONS = {
  no_route: { status: 404, sentence: "no route is known for this host" },
  not_ready: { status: 503, sentence: "the gateway does not know any route yet" },
  queue_full: { status: 503, sentence: "no instance can take the request now and too many wait already" },
  queue_timeout: { status: 503, sentence: "no instance could take the request within the time that requests may wait" },
  displaced: { status: 503, sentence: "a more urgent request took the place of this one in the queue" },
  not_taken: { status: 503, sentence: "none of the instances that were tried took the request" },
  stopping: { status: 503, sentence: "the gateway is stopping; whether the request had an effect is not known" },
  answer_lost: {
    status: 502,
    sentence: "the instance may have taken the request, but its answer was lost; whether it had an effect is not known",
  },
  connect_failed: { status: 502, sentence: "no connection to the instance could be made" },
  bad_answer: { status: 502, sentence: "the instance's answer is not valid HTTP" },
  answer_timeout: { status: 504, sentence: "the instance did not answer in time; whether the request had an effect is not known" },
  instance_cut: { status: 502, sentence: "the instance was sealed while it held the request; whether it had an effect is not known" },
  stale_writer: {
    status: 502,
    sentence: "the instance that answered may no longer write: its answer is stale; whether the request had an effect is not known",
  },
  token_malformed: { status: 400, sentence: "the token in relevo-token cannot be read" },
  token_forged: { status: 403, sentence: "the token in relevo-token was not signed by this gateway" },
  token_expired: { status: 401, sentence: "the token in relevo-token has expired" },
  token_other_route: { status: 403, sentence: "the token in relevo-token belongs to another route" },
  session_lost: { status: 410, sentence: "the instance that held this session is gone; begin anew" },
  session_unreachable: { status: 503, sentence: "the instance that holds this session cannot be reached" },
  query_lost: { status: 410, sentence: "the cluster that ran this query is gone, and the query with it" },
  cluster_unknown: { status: 503, sentence: "this gateway does not know the cluster that this belongs to, or not yet; another one may" },
  query_unknown: { status: 404, sentence: "the cluster does not know this query, or not any more" },
  coordinator_ambiguous: { status: 409, sentence: "two clusters have the same coordinator id: whose query this is cannot be told" },
  transaction_unknown: { status: 400, sentence: "the transaction's id was not given out by this gateway" },
  transaction_forged: { status: 403, sentence: "the transaction's id was not signed by this gateway" },
  transaction_lost: { status: 410, sentence: "the cluster that held this transaction is gone, and the transaction with it" },
  segment_unknown: { status: 403, sentence: "the segment's address was not given out by this gateway" },
  segment_lost: { status: 410, sentence: "the cluster that held this segment is gone" },
  no_group: { status: 404, sentence: "no pool takes statements of this routing group, user and source" },
  body_timeout: { status: 408, sentence: "the request's body did not come in time" },
  body_aborted: { status: 400, sentence: "the request's body ended early" },
  bad_request: { status: 400, sentence: "the request cannot be passed on" },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly sentence: string }>>;

export type RejectionCode = keyof typeof REJECTIONS;

/** Flat headers. */
export interface RejectionAnswer {
  readonly status: number;
  readonly headers: string[];
  readonly body: Buffer;
}

/** The whole answer for a rejection, with a body that says the same to people. */
export function rejectionAnswer(code: RejectionCode): RejectionAnswer {
  const { status, sentence } = REJECTIONS[code];
  const body = Buffer.from(`${JSON.stringify({ error: { code, message: sentence } })}\n`);
  const headers = [HEADERS.rejected, code, "content-type", "application/json", "content-length", String(body.length)];
  if (status === 503) headers.push("retry-after", String(LIMITS.retryAfterS));
  return { status, headers, body };
}
