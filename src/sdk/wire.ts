/**
 * The words of the instance protocol that the SDK needs at run time. They repeat src/model/protocol.ts and src/model/membership.ts on purpose: those
 * load zod, which costs a workload more start-up time than the whole SDK, and a replacement that starts slowly costs its users latency. A test holds
 * the two together.
 */
import { type Instant, parseInstant } from "../kernel/clock.ts";
import type { LeaseAccess } from "./lease-call.ts";

export const PREFIX = "/relevo/v1";
export const SESSION_HEADER = "relevo-session";
export const NOT_TAKEN_HEADER = "relevo-not-taken";
export const WRITER_EPOCH_HEADER = "relevo-writer-epoch";

/** The key of a drain begins so when it is only a hint, of the agent on the node: it can be taken back by `resume`. */
export const HINT_PREFIX = "hint-";

export const CALLS = ["prepare", "admit", "drain", "resume", "close"] as const;
export type CallName = (typeof CALLS)[number];

export function isCallName(text: string): text is CallName {
  return (CALLS as readonly string[]).includes(text);
}

/** A refusal on the wire: an HTTP status, a stable code and one sentence. */
export class ProtocolRefusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, sentence: string) {
    super(sentence);
    this.name = "ProtocolRefusal";
    this.status = status;
    this.code = code;
  }
}

const RFC_3339 = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}(:\d{2}(\.\d+)?)?([Zz]|[+-]\d{2}:\d{2})$/;

export interface CallBody {
  readonly bootId: string;
  readonly deadline: Instant | null;
  readonly lease?: LeaseAccess;
}

/** The body of a call, checked by hand (see above); its unknown fields are left alone, as newer controllers may send more. */
export function parseCallBody(text: string): CallBody {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new ProtocolRefusal(400, "body_not_json", "The body is not JSON.");
  }
  if (typeof body !== "object" || body === null || !("bootId" in body) || typeof body.bootId !== "string")
    throw new ProtocolRefusal(400, "body_invalid", "The body must be an object with the text `bootId`.");
  const lease = "lease" in body && body.lease !== undefined ? { lease: parseLease(body.lease) } : {};
  const deadline = "deadline" in body ? body.deadline : null;
  if (deadline === null || deadline === undefined) return { bootId: body.bootId, deadline: null, ...lease };
  const at = typeof deadline === "string" && RFC_3339.test(deadline) ? parseInstant(deadline) : undefined;
  if (at === undefined) throw new ProtocolRefusal(400, "body_invalid", "`deadline` must be a time of RFC 3339 or null.");
  return { bootId: body.bootId, deadline: at, ...lease };
}

function parseLease(given: unknown): LeaseAccess {
  const { url, token, pool, instance, ttlMs } = (typeof given === "object" && given !== null ? given : {}) as Record<string, unknown>;
  if (
    typeof url === "string" &&
    /^https?:\/\//.test(url) &&
    typeof token === "string" &&
    token !== "" &&
    typeof pool === "string" &&
    typeof instance === "string" &&
    typeof ttlMs === "number" &&
    ttlMs >= 1
  )
    return { url, token, pool, instance, ttlMs };
  throw new ProtocolRefusal(400, "body_invalid", "`lease` must be `{url, token, pool, instance, ttlMs}`.");
}
