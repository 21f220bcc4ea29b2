/**
 * What the gateway itself answers to a statement or to the polls of a query, in a shape and with a status that Trino's clients understand. They repeat a request
 * on 502, 503 and 504, POSTs included, and take any other status but 200 for a failure of the transport. So what may run already is never answered 50x, and what
 * is lost for ever is a page that says that the query failed.
 */
import { HEADERS } from "../../model/membership.ts";
import { REJECTIONS, type RejectionAnswer, type RejectionCode, rejectionAnswer } from "../codes.ts";
import { LIMITS } from "../limits.ts";

type ErrorType = "USER_ERROR" | "INTERNAL_ERROR" | "INSUFFICIENT_RESOURCES";

/** Above all ranges that Trino and its connectors use, within 31 bits. */
const FIRST_ERROR_CODE = 0x7265_0000;
const CODES = Object.keys(REJECTIONS);

export interface FailedQuery {
  readonly queryId: string;
  /** Where the client believes the server to be: `http://host:port`. */
  readonly base: string;
}

/** A page of a query that has failed, and that has no next one. */
export function failedPage(code: RejectionCode, { queryId, base }: FailedQuery): RejectionAnswer {
  const body = Buffer.from(
    `${JSON.stringify({
      id: queryId,
      infoUri: `${base}/ui/query.html?${queryId}`,
      stats: FAILED,
      error: {
        message: REJECTIONS[code].sentence,
        errorCode: FIRST_ERROR_CODE + CODES.indexOf(code),
        errorName: `RELEVO_${code.toUpperCase()}`,
        errorType: errorTypeOf(code),
        failureInfo: { type: "relevo.gateway", message: REJECTIONS[code].sentence, suppressed: [], stack: [] },
      },
      warnings: [],
    })}\n`,
  );
  const headers = [HEADERS.rejected, code, "content-type", "application/json", "content-length", String(body.length)];
  return { status: 200, headers, body };
}

/** Provably nothing of it runs: its client tries again by itself, and finds whoever can serve then. */
export function tryAgain(code: RejectionCode): RejectionAnswer {
  const { headers, body, status } = rejectionAnswer(code);
  if (status === 503) return { status, headers, body };
  return { status: 503, headers: [...headers, "retry-after", String(LIMITS.retryAfterS)], body };
}

function errorTypeOf(code: RejectionCode): ErrorType {
  switch (code) {
    case "transaction_unknown":
    case "transaction_forged":
    case "no_group":
      return "USER_ERROR";
    case "queue_full":
    case "queue_timeout":
    case "displaced":
      return "INSUFFICIENT_RESOURCES";
    default:
      return "INTERNAL_ERROR";
  }
}

/** Every field that a client may ask for, since some take a missing one for a broken answer. */
const FAILED = {
  state: "FAILED",
  queued: false,
  scheduled: false,
  nodes: 0,
  totalSplits: 0,
  queuedSplits: 0,
  runningSplits: 0,
  completedSplits: 0,
  planningTimeMillis: 0,
  analysisTimeMillis: 0,
  cpuTimeMillis: 0,
  wallTimeMillis: 0,
  queuedTimeMillis: 0,
  elapsedTimeMillis: 0,
  finishingTimeMillis: 0,
  physicalInputTimeMillis: 0,
  processedRows: 0,
  processedBytes: 0,
  physicalInputBytes: 0,
  physicalWrittenBytes: 0,
  internalNetworkInputBytes: 0,
  peakMemoryBytes: 0,
  spilledBytes: 0,
} as const;
