/** One renewal over HTTP with Node's own client: what the lease holder sends, bounded in time and size. */
import { request as openPlain } from "node:http";
import type { Clock } from "../kernel/clock.ts";
import { type Epoch, EPOCH_PATTERN } from "../kernel/epoch.ts";

/** Where and as whom a lease is renewed; the controller gives it with the admission. The token is a secret and is never reported. */
export interface LeaseAccess {
  readonly url: string;
  readonly token: string;
  /** `namespace/name`. */
  readonly pool: string;
  readonly instance: string;
  readonly ttlMs: number;
}

export type LeaseAnswer =
  | { readonly kind: "renewed"; readonly ordinal: number; readonly epoch: Epoch; readonly ttlMs: number; readonly proof?: string }
  /** The controller decided: `lease_not_held` or `lease_fenced`. */
  | { readonly kind: "refused"; readonly code: "lease_not_held" | "lease_fenced" }
  /** Nobody decided anything: no answer, or one that says nothing about the lease. */
  | { readonly kind: "failed"; readonly why: string };

/** What was granted: an epoch, at a place of the pool. */
export interface HeldLease {
  readonly ordinal: number;
  readonly epoch: Epoch;
  /** That it was granted: sent back with each renewal, so that a store that was rewound believes it. */
  readonly proof?: string;
}

/** `held` null: to acquire it. Never rejects. */
export type LeaseCall = (access: LeaseAccess, bootId: string, held: HeldLease | null, limitMs: number) => Promise<LeaseAnswer>;

const MAX_ANSWER_BYTES = 16 * 1_024;

export function httpLeaseCall(clock: Clock): LeaseCall {
  return async ({ pool, instance, ...access }, bootId, held, limitMs) => {
    const body = JSON.stringify({ pool, instance, bootId, ...(held ?? { epoch: null }) });
    try {
      const { status, text } = await post(clock, access, body, limitMs);
      return answerOf(status, text);
    } catch (error) {
      return { kind: "failed", why: error instanceof Error ? error.message : String(error) };
    }
  };
}

async function post(
  clock: Clock,
  access: Pick<LeaseAccess, "url" | "token">,
  body: string,
  limitMs: number,
): Promise<{ status: number; text: string }> {
  const open = access.url.startsWith("https:") ? (await import("node:https")).request : openPlain;
  return new Promise((resolve, reject) => {
    const request = open(access.url, {
      method: "POST",
      // A connection that was kept while the process stood still is as old as the pause.
      agent: false,
      headers: {
        authorization: `Bearer ${access.token}`,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
      },
    });
    const limit = clock.after(limitMs, () => request.destroy(new Error(`no answer within ${Math.round(limitMs)} ms`)));
    const fail = (error: Error): void => {
      limit.cancel();
      reject(error);
    };
    request.on("error", fail);
    request.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("error", fail);
      response.on("data", (chunk: string) => {
        text += chunk;
        if (text.length > MAX_ANSWER_BYTES) request.destroy(new Error("the answer is too long"));
      });
      response.on("end", () => {
        limit.cancel();
        resolve({ status: response.statusCode ?? 0, text });
      });
    });
    request.end(body);
  });
}

/** Checked by hand: the SDK loads no schemas. What is not understood decides nothing. */
export function answerOf(status: number, text: string): LeaseAnswer {
  const body = parseObject(text);
  if (status === 200) {
    const { ordinal, writerEpoch, ttlMs, proof } = body;
    if (
      typeof ordinal === "number" &&
      typeof writerEpoch === "string" &&
      EPOCH_PATTERN.test(writerEpoch) &&
      typeof ttlMs === "number" &&
      ttlMs > 0
    )
      return { kind: "renewed", ordinal, epoch: writerEpoch as Epoch, ttlMs, ...(typeof proof === "string" ? { proof } : {}) };
    return { kind: "failed", why: "the answer is not understood" };
  }
  const { error } = body;
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  if (code === "lease_not_held" || code === "lease_fenced") return { kind: "refused", code };
  return { kind: "failed", why: typeof code === "string" ? `${status} ${code}` : `status ${status}` };
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {}; // an error page of something in between: the status says enough
  }
}
