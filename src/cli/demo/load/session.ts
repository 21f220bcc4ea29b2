/**
 * One WebSocket session: a message, its acknowledgement, the next message, until its time is over. A server that must close first says `closing`; the
 * session then sends no more, says `bye` once all is acknowledged, and is closed with 1012.
 */
import { WebSocket } from "ws";
import { z } from "zod";
import type { Clock, Timer } from "../../../kernel/clock.ts";
import { COMPLETED, type Ending, type ReplyHeaders } from "./outcome.ts";
import { codeOf } from "./transport.ts";

const OPEN_LIMIT_MS = 10_000;
const ACK_LIMIT_MS = 10_000;
const CLOSE_LIMIT_MS = 3_000;
const NORMAL = 1000;
const SERVICE_RESTART = 1012;

export interface SessionOptions {
  readonly url: string;
  readonly host?: string | undefined;
  readonly id: string;
  readonly lastsMs: number;
  readonly stepMs: number;
  readonly clock: Clock;
  readonly seen: (headers: ReplyHeaders) => void;
  readonly acknowledged: (id: string) => void;
}

/** Resolves with how the session ended; never rejects. */
export function runSession(options: SessionOptions): Promise<Ending> {
  return new Promise((resolve) => new Session(options, resolve).open());
}

class Session {
  readonly #options: SessionOptions;
  readonly #resolve: (ending: Ending) => void;
  readonly #ws: WebSocket;
  #limit: Timer | null = null;
  #next: Timer | null = null;
  #endsAt = 0;
  #sent = 0;
  #awaited: string | null = null;
  /** `ours`: our time is over; `theirs`: the server asked us to stop. */
  #closing: "no" | "ours" | "theirs" = "no";
  #over = false;

  constructor(options: SessionOptions, resolve: (ending: Ending) => void) {
    this.#options = options;
    this.#resolve = resolve;
    this.#ws = new WebSocket(options.url, { headers: options.host === undefined ? {} : { host: options.host }, perMessageDeflate: false });
  }

  open(): void {
    this.#expect(OPEN_LIMIT_MS, () => this.#end({ outcome: "lost", detail: "open_timeout" }));
    this.#ws.on("upgrade", (response) => this.#options.seen(flatten(response.headers)));
    this.#ws.on("unexpected-response", (_request, response) => {
      this.#options.seen(flatten(response.headers));
      response.resume();
      this.#end({
        outcome: "rejected",
        detail: `${response.statusCode} ${flatten(response.headers)["relevo-rejected"] ?? "by the instance"}`,
      });
    });
    this.#ws.on("open", () => {
      this.#endsAt = this.#options.clock.monotonic() + this.#options.lastsMs;
      this.#sendNext();
    });
    this.#ws.on("message", (data) => this.#take(String(data)));
    this.#ws.on("close", (code) => this.#closed(code));
    this.#ws.on("error", (error) => {
      // After the opening a close follows and says how it ended.
      if (this.#ws.readyState === WebSocket.CONNECTING || this.#sent === 0) this.#end({ outcome: "lost", detail: `open_${codeOf(error)}` });
    });
  }

  #sendNext(): void {
    this.#awaited = `${this.#options.id}.m${this.#sent++}`;
    this.#ws.send(JSON.stringify({ id: this.#awaited }));
    this.#expect(ACK_LIMIT_MS, () => this.#end({ outcome: "lost", detail: "acknowledgement_timeout" }));
  }

  #take(text: string): void {
    const message = parseMessage(text);
    if (message === undefined) return this.#end({ outcome: "cut", detail: "unreadable_message" });
    if (message.type === "closing" && this.#closing === "no") {
      this.#closing = "theirs";
      this.#next?.cancel();
      if (this.#awaited === null) this.#sayBye();
      return;
    }
    if (message.type !== "ack" || message.id === undefined || message.id !== this.#awaited) return;
    this.#options.acknowledged(message.id);
    this.#awaited = null;
    this.#limit?.cancel();
    if (this.#closing === "theirs") return this.#sayBye();
    if (this.#options.clock.monotonic() >= this.#endsAt) return this.#closeOurs();
    this.#next = this.#options.clock.after(this.#options.stepMs, () => this.#sendNext());
  }

  #sayBye(): void {
    this.#ws.send(JSON.stringify({ type: "bye" }));
    this.#expect(ACK_LIMIT_MS, () => this.#end({ outcome: "lost", detail: "announced_close_timeout" }));
  }

  #closeOurs(): void {
    this.#closing = "ours";
    this.#ws.close(NORMAL);
    // Everything is acknowledged: a peer that never answers the close takes nothing away.
    this.#expect(CLOSE_LIMIT_MS, () => this.#end(COMPLETED));
  }

  #closed(code: number): void {
    if (this.#closing === "ours") return this.#end(COMPLETED);
    if (code === SERVICE_RESTART && this.#awaited === null && this.#sent > 0) return this.#end(COMPLETED);
    this.#end({ outcome: "cut", detail: this.#awaited === null ? `closed_${code}` : `closed_${code} with a message unacknowledged` });
  }

  #expect(limitMs: number, fail: () => void): void {
    this.#limit?.cancel();
    this.#limit = this.#options.clock.after(limitMs, fail);
  }

  #end(ending: Ending): void {
    if (this.#over) return;
    this.#over = true;
    this.#limit?.cancel();
    this.#next?.cancel();
    if (this.#ws.readyState !== WebSocket.CLOSED) this.#ws.terminate();
    this.#resolve(ending);
  }
}

const messageSchema = z.object({ type: z.string(), id: z.string().optional() });

function parseMessage(text: string): z.infer<typeof messageSchema> | undefined {
  try {
    return messageSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function flatten(headers: Readonly<Record<string, string | string[] | undefined>>): ReplyHeaders {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : value]));
}
