/** The errors of the API, in the words and with the reasons of the real server. */
import { KubeApiError, type KubeStatus, type ResourceType, type StatusCause } from "../../kube/api.ts";

type Named = Pick<ResourceType, "group" | "plural" | "kind">;

const qualified = (type: Named): string => (type.group === "" ? type.plural : `${type.plural}.${type.group}`);
const details = (
  type: Named,
  name: string,
  more: Partial<NonNullable<KubeStatus["details"]>> = {},
): NonNullable<KubeStatus["details"]> => ({
  ...(name === "" ? {} : { name }),
  ...(type.group === "" ? {} : { group: type.group }),
  kind: type.plural,
  ...more,
});

function failure(status: KubeStatus): KubeApiError {
  return new KubeApiError(status, "the API server refused it");
}

export function notFound(type: Named, name: string): KubeApiError {
  return failure({ code: 404, reason: "NotFound", message: `${qualified(type)} "${name}" not found`, details: details(type, name) });
}

export function alreadyExists(type: Named, name: string): KubeApiError {
  return failure({
    code: 409,
    reason: "AlreadyExists",
    message: `${qualified(type)} "${name}" already exists`,
    details: details(type, name),
  });
}

export function conflict(type: Named, name: string, sentence: string, causes?: readonly StatusCause[]): KubeApiError {
  return failure({
    code: 409,
    reason: "Conflict",
    message: `Operation cannot be fulfilled on ${qualified(type)} "${name}": ${sentence}`,
    details: details(type, name, causes === undefined ? {} : { causes }),
  });
}

export function modified(type: Named, name: string): KubeApiError {
  return conflict(type, name, "the object has been modified; please apply your changes to the latest version and try again");
}

export function applyConflict(causes: readonly StatusCause[]): KubeApiError {
  const message = `Apply failed with ${causes.length} conflict${causes.length === 1 ? "" : "s"}: ${causes.map((cause) => cause.message).join(", ")}`;
  return failure({ code: 409, reason: "Conflict", message, details: { causes } });
}

export function badRequest(sentence: string): KubeApiError {
  return failure({ code: 400, reason: "BadRequest", message: sentence });
}

export function forbidden(type: Named, name: string, sentence: string, causes?: readonly StatusCause[]): KubeApiError {
  return failure({
    code: 403,
    reason: "Forbidden",
    message: `${qualified(type)} "${name}" is forbidden: ${sentence}`,
    details: details(type, name, causes === undefined ? {} : { causes }),
  });
}

/** What is wrong with a field of an object. */
export interface FieldProblem {
  /** `spec.size.floor`. */
  readonly field: string;
  readonly message: string;
  /** `FieldValueInvalid` when absent. */
  readonly reason?:
    | "FieldValueInvalid"
    | "FieldValueRequired"
    | "FieldValueForbidden"
    | "FieldValueNotSupported"
    | "FieldValueDuplicate"
    | "FieldValueTooLong"
    | undefined;
}

const CAUSE_SENTENCE = {
  FieldValueInvalid: "Invalid value",
  FieldValueRequired: "Required value",
  FieldValueForbidden: "Forbidden",
  FieldValueNotSupported: "Unsupported value",
  FieldValueDuplicate: "Duplicate value",
  FieldValueTooLong: "Too long",
} as const;

export function invalid(type: Named, name: string, problems: readonly FieldProblem[]): KubeApiError {
  const causes = problems.map(({ field, message, reason = "FieldValueInvalid" }) => ({
    reason,
    message: `${CAUSE_SENTENCE[reason]}: ${message}`,
    field,
  }));
  const sentences = causes.map((cause) => `${cause.field}: ${cause.message}`);
  const kind = type.group === "" ? type.kind : `${type.kind}.${type.group}`;
  return failure({
    code: 422,
    reason: "Invalid",
    message: `${kind} "${name}" is invalid: ${sentences.length === 1 ? sentences[0] : `[${sentences.join(", ")}]`}`,
    details: details({ ...type, plural: type.kind }, name, { causes }),
  });
}

/** A JSON patch whose `test` failed, or that does not fit the object. */
export function unprocessablePatch(sentence: string): KubeApiError {
  return failure({
    code: 422,
    reason: "Invalid",
    message: `the server rejected our request due to an error in our request: ${sentence}`,
    details: {},
  });
}

/** What a patch makes of an object cannot be read as one of its kind. */
export function undecodablePatch(sentence: string): KubeApiError {
  const cause = { reason: "FieldValueInvalid", message: `Invalid value: ${sentence}`, field: "patch" };
  return failure({ code: 422, reason: "Invalid", message: ` "" is invalid: patch: ${cause.message}`, details: { causes: [cause] } });
}

/** Custom resources are replaced only by who says from which state. */
export function unconditional(type: Named, name: string): KubeApiError {
  const message = "Invalid value: 0: must be specified for an update";
  const cause = { reason: "FieldValueInvalid", message, field: "metadata.resourceVersion" };
  return failure({
    code: 422,
    reason: "Invalid",
    message: `${qualified(type)} "${name}" is invalid: metadata.resourceVersion: ${message}`,
    details: details(type, name, { causes: [cause] }),
  });
}

/** There is no such resource below a version that is served. */
export function noSuchResource(): KubeApiError {
  return failure({ code: 404, reason: "NotFound", message: "the server could not find the requested resource", details: {} });
}

export function unsupportedMediaType(sentence: string): KubeApiError {
  return failure({ code: 415, reason: "UnsupportedMediaType", message: sentence });
}

export function methodNotAllowed(sentence: string): KubeApiError {
  return failure({ code: 405, reason: "MethodNotAllowed", message: sentence });
}

export function requestTooLarge(sentence: string): KubeApiError {
  return failure({ code: 413, reason: "RequestEntityTooLarge", message: sentence });
}

/** `continueWith` is a token for the rest of the list at the current version. */
export function expired(sentence: string, continueWith?: string): KubeApiError {
  return failure({
    code: 410,
    reason: "Expired",
    message: sentence,
    ...(continueWith === undefined ? {} : { metadata: { continue: continueWith } }),
  });
}

export function tooLargeResourceVersion(asked: number, current: number): KubeApiError {
  return failure({
    code: 504,
    reason: "Timeout",
    message: `Timeout: Too large resource version: ${asked}, current: ${current}`,
    details: { causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }], retryAfterSeconds: 1 },
  });
}

export function tooManyRequests(
  sentence: string,
  more: { readonly causes?: readonly StatusCause[]; readonly retryAfterSeconds?: number } = {},
): KubeApiError {
  return failure({ code: 429, reason: "TooManyRequests", message: sentence, details: more });
}

export function internalError(sentence: string): KubeApiError {
  return failure({ code: 500, message: sentence });
}

/** The store is full: it holds a bounded number of objects. */
export function storeFull(limit: number): KubeApiError {
  return failure({ code: 507, reason: "InsufficientStorage", message: `the embedded cluster holds at most ${limit} objects` });
}
