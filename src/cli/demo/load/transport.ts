/** One HTTP exchange, over HTTP/1.1 or HTTP/2, that always ends: with an answer, a broken connection or a time-out. It never rejects and repeats nothing. */
import type { Reply } from "./outcome.ts";

export interface Exchange {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** Over everything, from connecting to the last byte. */
  readonly limitMs: number;
}

export interface Transport {
  send(exchange: Exchange): Promise<Reply>;
  close(): void;
}

/** A longer answer is none of this load's: it counts as broken. */
export const MAX_ANSWER_BYTES = 1024 * 1024;

export function codeOf(error: unknown): string {
  if (typeof error === "object" && error !== null && "code" in error && typeof error.code === "string") return error.code;
  return error instanceof Error ? error.name : "unknown";
}
