/** One HTTP call, bounded in time and size. Over Node's own client: the agent is on every node, and every other one would double its memory. */
import { type IncomingHttpHeaders, type IncomingMessage, request as plainRequest, type RequestOptions } from "node:http";
import type { Clock } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";

export interface HttpCall {
  readonly method?: "GET" | "POST" | "PUT";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** From connecting to the last byte. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** PEM; else what the system trusts. */
  readonly ca?: string | undefined;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Rejects with `http_timeout`, `http_unreachable` or `answer_too_large`, or with the signal's reason; any status is an answer. */
export type HttpCaller = (call: HttpCall, signal?: AbortSignal) => Promise<HttpAnswer>;

export function httpCaller(clock: Clock): HttpCaller {
  return async (call, signal) => {
    const open = call.url.startsWith("https:") ? (await import("node:https")).request : plainRequest;
    signal?.throwIfAborted();
    const end = new AbortController();
    const timer = clock.after(call.timeoutMs, () => end.abort(timedOut(call)));
    const stop = (): void => end.abort(signal?.reason);
    signal?.addEventListener("abort", stop, { once: true });
    try {
      return await send(open, call, end.signal);
    } catch (error) {
      if (end.signal.aborted) throw end.signal.reason;
      throw faultOf(error, call);
    } finally {
      timer.cancel();
      signal?.removeEventListener("abort", stop);
    }
  };
}

function send(
  open: (url: string, options: RequestOptions & { readonly ca?: string }) => ReturnType<typeof plainRequest>,
  { method = "GET", url, headers = {}, body, maxBytes, ca }: HttpCall,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    const outgoing = open(url, { method, headers: { ...headers, ...length }, agent: false, signal, ...(ca === undefined ? {} : { ca }) });
    outgoing.once("error", reject);
    outgoing.once("response", (response) => {
      readBounded(response, maxBytes).then(
        (text) => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
        (error: unknown) => {
          outgoing.destroy();
          reject(error instanceof Error ? error : new Error(String(error)));
        },
      );
    });
    outgoing.end(body);
  });
}

async function readBounded(response: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += (chunk as Buffer).length;
    if (bytes > maxBytes)
      throw new RelevoError("answer_too_large", "An answer is too long.", {
        found: `over ${maxBytes} bytes`,
        allowed: `${maxBytes} bytes`,
      });
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Without the query: it may hold what is nobody's business. */
const nameOf = ({ method = "GET", url }: HttpCall): string => `${method} ${url.split("?", 1)[0]}`;

function timedOut(call: HttpCall): RelevoError {
  return new RelevoError("http_timeout", `${nameOf(call)} was not answered within ${call.timeoutMs} ms.`, { class: "retryable" });
}

function faultOf(error: unknown, call: HttpCall): RelevoError {
  if (error instanceof RelevoError) return error;
  const found = error instanceof Error && "code" in error ? String(error.code) : String(error);
  return new RelevoError("http_unreachable", `${nameOf(call)} failed.`, { class: "retryable", found, cause: error });
}
