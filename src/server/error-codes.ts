/** One registry of HTTP statuses: which code answers with which. A code that is not here gets the status of its class. */
import { RelevoError, type ErrorClass } from "../kernel/errors.ts";

const STATUS: Readonly<Record<string, number>> = {
  body_invalid: 400,
  query_invalid: 400,
  notice_malformed: 400,
  unauthorized: 401,
  notice_unauthorized: 401,
  host_not_allowed: 403,
  origin_not_allowed: 403,
  role_missing: 403,
  replica_not_yours: 403,
  node_not_yours: 403,
  source_not_yours: 403,
  machine_not_yours: 403,
  too_many_failures: 429,
  auth_unavailable: 503,
  route_not_found: 404,
  pool_not_found: 404,
  instance_not_found: 404,
  node_not_found: 404,
  follow_up_not_found: 404,
  scale_missing: 409,
  preflight_refused: 409,
  subject_not_found: 404,
  notice_source_unknown: 404,
  instance_leaving: 409,
  route_taken: 409,
  not_our_cordon: 409,
  step_not_held: 409,
  instance_not_draining: 409,
  frozen: 409,
  stale_epoch: 409,
  store_conflict: 409,
  replica_unknown: 409,
  lease_token_invalid: 401,
  lease_not_held: 409,
  lease_fenced: 410,
  lease_too_often: 429,
  lease_epoch_unproven: 503,
  path_invalid: 400,
  body_too_large: 413,
  path_too_long: 414,
  notice_too_large: 413,
  media_type_unsupported: 415,
  document_invalid: 422,
  too_many_streams: 503,
  store_unavailable: 503,
  shutting_down: 503,
};

const STATUS_OF_CLASS: Readonly<Record<ErrorClass, number>> = { terminal: 500, retryable: 503, conflict: 409, cancelled: 503 };

export function httpStatusOf(error: RelevoError): number {
  const kube = error as { readonly httpCode?: unknown };
  // What the Kubernetes API refused for the caller's sake stays the caller's error; its other faults are ours.
  if (typeof kube.httpCode === "number" && kube.httpCode >= 400 && kube.httpCode < 500 && kube.httpCode !== 401 && kube.httpCode !== 429)
    return kube.httpCode;
  return STATUS[error.code] ?? STATUS_OF_CLASS[error.class];
}

/** Fastify's own refusals in our words. */
const FASTIFY_CODES: Readonly<Record<string, readonly [code: string, sentence: string]>> = {
  FST_ERR_BAD_URL: ["path_invalid", "The path is not valid percent-encoded UTF-8."],
  FST_ERR_MAX_PARAM_LENGTH: ["path_too_long", "A part of the path is too long."],
  FST_ERR_CTP_BODY_TOO_LARGE: ["body_too_large", "The body is too large."],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ["media_type_unsupported", "The content type is not supported."],
  FST_ERR_CTP_EMPTY_JSON_BODY: ["body_invalid", "The body is empty."],
  FST_ERR_CTP_INVALID_JSON_BODY: ["body_invalid", "The body is not JSON."],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ["body_invalid", "The body is not as long as Content-Length says."],
};

/** Any thrown value as one of our errors; what we do not know is an `internal` one, whose details stay in the log. */
export function toRelevoError(thrown: unknown): RelevoError {
  if (thrown instanceof RelevoError) return thrown;
  const { code, statusCode } = (thrown ?? {}) as { readonly code?: unknown; readonly statusCode?: unknown };
  const known = typeof code === "string" ? FASTIFY_CODES[code] : undefined;
  if (known) return new RelevoError(known[0], known[1], { cause: thrown });
  if (thrown instanceof SyntaxError && statusCode === 400)
    return new RelevoError("body_invalid", "The body is not JSON.", { found: thrown.message });
  if (typeof statusCode === "number" && statusCode >= 400 && statusCode < 500)
    return new RelevoError("body_invalid", thrown instanceof Error ? thrown.message : "The request is not valid.", { cause: thrown });
  return new RelevoError("internal", "The controller failed to answer.", { cause: thrown, todo: "see the controller's log" });
}
