/** Who may call: the bind address, the bearer token, the sender of a notice. */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { RelevoError } from "../kernel/errors.ts";
import { isLoopback } from "../kernel/loopback.ts";
import { ROLES } from "./roles.ts";

/** Of whoever a token is for: one printable line. */
export const tokenName = z
  .string()
  .min(1, "at least one character")
  .max(253, "at most 253 characters")
  .regex(/^[^\p{Cc}\p{Zl}\p{Zp}]*$/u, "one line without control characters");

/** Anything but loopback is reachable by others, so it demands a token. Throws `bind_needs_token`. */
export function assertMayBind(host: string, hasTokens: boolean): void {
  if (hasTokens || isLoopback(host)) return;
  throw new RelevoError("bind_needs_token", `The API may not listen on ${host} without a token.`, {
    found: host,
    allowed: "127.0.0.0/8, ::1 and localhost without a token",
    todo: "set RELEVO_TOKEN, give --token-file or --auth kubernetes, or listen on 127.0.0.1",
  });
}

/** Hashed first: the comparison takes the same time whatever the lengths are. */
export function isSameSecret(given: string, wanted: string): boolean {
  return timingSafeEqual(digestOf(given), digestOf(wanted));
}

/** SHA-256, which does for a secret of 256 random bits. */
export function digestOf(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}

/** As a token file keeps it. */
export function tokenHashOf(token: string): string {
  return `sha256:${digestOf(token).toString("hex")}`;
}

/** What a token of a file is good for. `gateway`: its name is that of its replica; `agent`: that of its node. */
export const TOKEN_ROLES = [...ROLES, "gateway", "agent"] as const;
export type TokenRole = (typeof TOKEN_ROLES)[number];

export function bearerOf(header: string | undefined): string | undefined {
  return header === undefined ? undefined : /^Bearer +([^\s]+)$/i.exec(header)?.[1];
}

export const SIGNATURE_HEADER = "x-relevo-signature";

/** `sha256=<hex>`: HMAC-SHA-256 of the raw body. */
export function signBody(body: string | Uint8Array, secret: string): string {
  return `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
}

export interface WebhookAccess {
  /** A sender may sign with this, or with what it tells now; while it tells undefined, no signature is good. */
  readonly secret: string | (() => string | undefined) | null;
  /** Or send a token, which was looked at before. */
  readonly hasTokens: boolean;
}

/**
 * Of a sender that the server has not let in by a token. Throws `notice_unauthorized`. With neither a secret nor tokens everybody may send: only possible on
 * loopback.
 */
export function assertSigned({ secret, hasTokens }: WebhookAccess, signature: string | undefined, body: Uint8Array): void {
  if (secret === null) return;
  const current = typeof secret === "string" ? secret : secret();
  if (signature !== undefined && current !== undefined && isSameSecret(signature, signBody(body, current))) return;
  const isMissing = signature === undefined;
  throw notSigned(isMissing ? "The notice is not signed." : "The notice's signature or token is wrong.", { hasSecret: true, hasTokens });
}

export function notSigned(
  sentence: string,
  { hasSecret, hasTokens }: { readonly hasSecret: boolean; readonly hasTokens: boolean },
): RelevoError {
  const ways = [
    ...(hasSecret ? [`${SIGNATURE_HEADER}: sha256=<HMAC of the body>`] : []),
    ...(hasTokens ? ["authorization: Bearer <token>"] : []),
  ];
  return new RelevoError("notice_unauthorized", sentence, { allowed: ways.join(", or ") });
}
