/**
 * What an instance shows to renew its writer lease: bound to its pool, its id and its process, so that no other instance, and no other process of the same
 * instance, can use it. Nothing is stored: whoever has the key can tell whether it made a token, also after a restart.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

export interface LeaseSubject {
  /** `namespace/name`. */
  readonly pool: string;
  readonly instance: string;
  readonly bootId: string;
}

export class LeaseTokens {
  readonly #key: string;

  /** `key` is a secret. */
  constructor(key: string) {
    this.#key = key;
  }

  issue(subject: LeaseSubject): string {
    return this.#sign(subject).toString("base64url");
  }

  /** Takes the same time whatever differs. */
  isOf(token: string, subject: LeaseSubject): boolean {
    const given = Buffer.from(token, "base64url");
    const wanted = this.#sign(subject);
    return given.length === wanted.length && timingSafeEqual(given, wanted);
  }

  #sign({ pool, instance, bootId }: LeaseSubject): Buffer {
    return createHmac("sha256", this.#key)
      .update(JSON.stringify(["lease/1", pool, instance, bootId]))
      .digest();
  }
}
