/** HTTP/1.1 with kept connections, as ordinary clients use it. */
import { Agent, type IncomingMessage, request as open } from "node:http";
import type { Clock } from "../../../kernel/clock.ts";
import type { Reply, ReplyHeaders } from "./outcome.ts";
import { codeOf, type Exchange, MAX_ANSWER_BYTES, type Transport } from "./transport.ts";

/** An idle connection is dropped well before its server would, so that no request meets a closing one. */
const IDLE_LIMIT_MS = 10_000;

export class Http1Transport implements Transport {
  readonly #origin: URL;
  readonly #host: string | undefined;
  readonly #clock: Clock;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 64, timeout: IDLE_LIMIT_MS });

  /** `host`: for the Host header, when it differs from the address. */
  constructor(options: { readonly origin: string; readonly host?: string | undefined; readonly clock: Clock }) {
    this.#origin = new URL(options.origin);
    this.#host = options.host;
    this.#clock = options.clock;
  }

  send(exchange: Exchange): Promise<Reply> {
    return new Promise((resolve) => {
      let response: IncomingMessage | undefined;
      let settled = false;
      const settle = (reply: Reply): void => {
        if (settled) return;
        settled = true;
        timer.cancel();
        resolve(reply);
        if (reply.kind !== "answer") sent.destroy();
      };
      const head = (): { status: number | null; headers: ReplyHeaders } => ({
        status: response?.statusCode ?? null,
        headers: headersOf(response),
      });
      const timer = this.#clock.after(exchange.limitMs, () => settle({ kind: "timeout", ...head() }));
      const sent = open({
        agent: this.#agent,
        host: this.#origin.hostname,
        port: this.#origin.port,
        method: exchange.method,
        path: exchange.path,
        headers: this.#headersFor(exchange),
      });
      sent.on("error", (error) => settle({ kind: "broken", ...head(), code: codeOf(error) }));
      sent.on("response", (incoming) => {
        response = incoming;
        collect(
          incoming,
          (text) => settle({ kind: "answer", status: incoming.statusCode ?? 0, headers: headersOf(incoming), text }),
          (code) => settle({ kind: "broken", ...head(), code }),
        );
      });
      sent.end(exchange.body ?? undefined);
    });
  }

  close(): void {
    this.#agent.destroy();
  }

  #headersFor(exchange: Exchange): Record<string, string> {
    const headers: Record<string, string> = { ...exchange.headers };
    if (this.#host !== undefined) headers["host"] = this.#host;
    if (exchange.body !== null) headers["content-length"] = String(Buffer.byteLength(exchange.body));
    return headers;
  }
}

function collect(incoming: IncomingMessage, whole: (text: string) => void, broken: (code: string) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  incoming.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    chunks.push(chunk);
    if (bytes > MAX_ANSWER_BYTES) broken("answer_too_large");
  });
  incoming.on("error", (error) => broken(codeOf(error)));
  incoming.on("close", () => (incoming.complete ? whole(Buffer.concat(chunks).toString("utf8")) : broken("closed")));
}

function headersOf(incoming: IncomingMessage | undefined): ReplyHeaders {
  const headers: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(incoming?.headers ?? {})) headers[name] = Array.isArray(value) ? value.join(", ") : value;
  return headers;
}
