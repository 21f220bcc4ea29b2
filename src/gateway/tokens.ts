/**
 * Signed tokens that tie a client's follow-ups to one instance. Whatever a replica needs is in the token, so that any replica can route any follow-up.
 *
 * Form: `v1.KEYID.PAYLOAD.SIGNATURE`, the last two in base64url; the signature is HMAC-SHA256 over all before it. The replicas share the keys; the
 * first signs, all verify, so that keys can be exchanged without a gap.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { RelevoError } from "../kernel/errors.ts";
import { LIMITS } from "./limits.ts";

export interface TokenKey {
  /** Letters, digits, `-` and `_`. */
  readonly id: string;
  /** At least 16 bytes. */
  readonly secret: string | Buffer;
}

export interface TokenClaims {
  readonly route: string;
  readonly instance: string;
  readonly incarnation: number;
  readonly session: string;
  /** How long the session lives without use, ms. */
  readonly ttlMs: number;
  /** ms since the epoch. */
  readonly expiresAt: number;
}

export type TokenFault = "token_malformed" | "token_forged" | "token_expired";
export type TokenVerdict = { readonly claims: TokenClaims } | { readonly fault: TokenFault };

export class Tokens {
  readonly #keys: readonly TokenKey[];
  readonly #signer: TokenKey;

  constructor(keys: readonly TokenKey[]) {
    const [signer] = keys;
    const bad = keys.find((key) => key.secret.length < 16 || !/^[\w-]{1,32}$/.test(key.id));
    if (signer === undefined || bad !== undefined) {
      throw new RelevoError("token_key_invalid", "a key for tokens needs an id and a secret of at least 16 bytes", {
        found: bad === undefined ? "no key" : `key ${JSON.stringify(bad.id)} with ${bad.secret.length} bytes`,
        allowed: "id of 1 to 32 letters, digits, - and _; secret of 16 bytes or more",
      });
    }
    this.#signer = signer;
    this.#keys = keys;
  }

  sign(claims: TokenClaims): string {
    const { route, instance, incarnation, session, ttlMs, expiresAt } = claims;
    const payload = Buffer.from(JSON.stringify([route, instance, incarnation, session, ttlMs, expiresAt])).toString("base64url");
    const signed = `v1.${this.#signer.id}.${payload}`;
    return `${signed}.${signature(this.#signer, signed).toString("base64url")}`;
  }

  /** `now` is ms since the epoch. */
  verify(token: string, now: number): TokenVerdict {
    if (token.length > LIMITS.tokenBytes) return { fault: "token_malformed" };
    const parts = token.split(".");
    const [version, keyId, payload, given] = parts;
    if (parts.length !== 4 || version !== "v1" || keyId === undefined || payload === undefined || given === undefined) {
      return { fault: "token_malformed" };
    }
    const key = this.#keys.find((candidate) => candidate.id === keyId);
    if (key === undefined) return { fault: "token_forged" };
    const wanted = signature(key, token.slice(0, token.lastIndexOf(".")));
    const found = Buffer.from(given, "base64url");
    if (found.length !== wanted.length || !timingSafeEqual(found, wanted)) return { fault: "token_forged" };
    const claims = parseClaims(payload);
    if (claims === undefined) return { fault: "token_malformed" };
    return claims.expiresAt <= now ? { fault: "token_expired" } : { claims };
  }
}

function signature(key: TokenKey, text: string): Buffer {
  return createHmac("sha256", key.secret).update(text).digest();
}

function parseClaims(payload: string): TokenClaims | undefined {
  let fields: unknown;
  try {
    fields = JSON.parse(Buffer.from(payload, "base64url").toString());
  } catch {
    return undefined;
  }
  if (!Array.isArray(fields) || fields.length !== 6) return undefined;
  const [route, instance, incarnation, session, ttlMs, expiresAt] = fields as unknown[];
  if (typeof route !== "string" || typeof instance !== "string" || typeof session !== "string") return undefined;
  if (typeof incarnation !== "number" || typeof ttlMs !== "number" || typeof expiresAt !== "number") return undefined;
  return { route, instance, incarnation, session, ttlMs, expiresAt };
}

/** The value of one cookie in a `cookie` header, or undefined. */
export function cookieValue(header: string, name: string): string | undefined {
  for (const part of header.split(";")) {
    const at = part.indexOf("=");
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim();
  }
  return undefined;
}

/** Of an instance's `relevo-session` header; undefined when it is not understood. */
export function parseSessionHeader(
  value: string,
): { readonly action: "begin"; readonly ttlMs: number } | { readonly action: "end" } | undefined {
  if (/^\s*end\s*$/i.test(value)) return { action: "end" };
  const match = /^\s*begin\s*;\s*ttl\s*=\s*(\d{1,7})\s*$/i.exec(value);
  if (match === null) return undefined;
  return { action: "begin", ttlMs: Math.min(Number(match[1]) * 1000, LIMITS.sessionTtlMs) };
}
