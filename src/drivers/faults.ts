/** What became of a call whose answer did not come: the drivers say it with the same codes, whatever they speak. */
import { type ErrorClass, RelevoError } from "../kernel/errors.ts";

export function authorityOf({ host, port }: { readonly host: string; readonly port: number }): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** No connection came about, so nothing can have happened there. */
const NOT_CONNECTED = [
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EHOSTDOWN",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EADDRNOTAVAIL",
  "UND_ERR_CONNECT_TIMEOUT",
  "CONNECT_LIMIT",
];
/** `HTTPParserError` is a name: undici gives it no code when the first bytes are not HTTP at all. */
const NOT_THE_PROTOCOL = ["UND_ERR_RES_EXCEEDED_MAX_SIZE", "HTTPParserError", "TOO_LONG", "NOT_HTTP"];
/** A header with a character that none may have. */
const NOT_SENT = ["UND_ERR_INVALID_ARG", "ERR_INVALID_CHAR"];
/** The reason of our own abort. */
export const TIMED_OUT = Object.assign(new Error("the limit of the call"), { code: "LIMIT" });

/** What a failed call means for whoever made it. `where`: the host and the port, as `authorityOf` says them. */
export function faultOf(cause: unknown, where: string, limitMs: number): RelevoError {
  const found = codeOf(cause);
  const describe = (code: string, sentence: string, errorClass: ErrorClass) =>
    new RelevoError(code, sentence, { class: errorClass, found, cause });
  if (NOT_CONNECTED.includes(found)) return describe("instance_unreachable", `The instance at ${where} cannot be reached.`, "retryable");
  if (found === "LIMIT" || found === "ETIMEDOUT")
    return describe("instance_timeout", `The instance at ${where} did not answer within ${limitMs} ms.`, "retryable");
  if (NOT_SENT.includes(found))
    return describe("instance_call_invalid", `The call of ${where} cannot be written down as HTTP.`, "terminal");
  if (NOT_THE_PROTOCOL.includes(found))
    return describe("instance_answer_invalid", `What listens at ${where} does not speak the protocol.`, "terminal");
  return describe("instance_connection_lost", `The connection to the instance at ${where} was lost before its answer.`, "retryable");
}

function codeOf(error: unknown): string {
  if (typeof error === "object" && error !== null && "code" in error && typeof error.code === "string" && !error.code.startsWith("HPE_"))
    return error.code;
  return error instanceof Error ? error.name : "unknown";
}
