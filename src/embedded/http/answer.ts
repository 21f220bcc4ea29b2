/** What goes back over the wire. */
import type { ServerResponse } from "node:http";
import { RelevoError } from "../../kernel/errors.ts";
import { KubeApiError, type KubeStatus } from "../../kube/api.ts";

export function sendJson(response: ServerResponse, code: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
  sendJsonText(response, code, JSON.stringify(body), headers);
}

/** What is JSON text already. */
export function sendJsonText(response: ServerResponse, code: number, text: string, headers: Readonly<Record<string, string>> = {}): void {
  const bytes = Buffer.byteLength(text);
  response.writeHead(code, { "content-type": "application/json", "content-length": bytes, ...headers });
  // One byte per character: the cheaper encoding gives the same bytes.
  response.end(text, bytes === text.length ? "latin1" : "utf8");
}

export function sendText(response: ServerResponse, code: number, text: string): void {
  response.writeHead(code, { "content-type": "text/plain; charset=utf-8", "content-length": Buffer.byteLength(text) });
  response.end(text);
}

/** The body of an error, as a client sees it. */
export function statusBody(status: KubeStatus): Readonly<Record<string, unknown>> {
  const { code, reason, message, details, metadata = {} } = status;
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata,
    status: "Failure",
    message: message ?? reason ?? `error ${code}`,
    ...(reason === undefined ? {} : { reason }),
    ...(details === undefined ? {} : { details }),
    code,
  };
}

/** Answers with the error; what is no error of the API is one of ours, and says so without its insides. */
export function sendError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const status = statusOf(error);
  // An unknown path has no Status: clients tell "no such kind" from "no such object" by it.
  if (status.code === 404 && status.reason === undefined) return sendText(response, 404, "404 page not found\n");
  const after = status.details?.retryAfterSeconds;
  sendJson(response, status.code, statusBody(status), after === undefined ? {} : { "retry-after": String(after) });
}

function statusOf(error: unknown): KubeStatus {
  if (error instanceof KubeApiError) return error.status;
  if (error instanceof RelevoError)
    return {
      code: error.class === "retryable" ? 503 : 400,
      reason: error.class === "retryable" ? "ServiceUnavailable" : "BadRequest",
      message: error.message,
    };
  return {
    code: 500,
    reason: "InternalError",
    message: `Internal error occurred: ${error instanceof Error ? error.message : String(error)}`,
  };
}

/** A refusal of what a real server has and this one has not. */
export function notServed(sentence: string): KubeApiError {
  return new KubeApiError({ code: 501, reason: "NotImplemented", message: sentence }, "the embedded API server does not serve it");
}
