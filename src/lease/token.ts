/**
 * What an instance shows to renew its writer lease: bound to its pool, its id and its process, so that no other instance, and no other process of the same
 * instance, can use it. Nothing is stored: whoever has the key can tell whether it made a token, also after a restart.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { Epoch } from "../kernel/epoch.ts";

export interface LeaseSubject {
  /** `namespace/name`. */
  readonly pool: string;
  readonly instance: string;
  readonly bootId: string;
}

/** An epoch as a process was given it, at a place of its pool. */
export interface GivenEpoch extends LeaseSubject {
  readonly ordinal: number;
  readonly epoch: Epoch;
}

export class LeaseTokens {
  readonly #key: string;

  /** `key` is a secret. */
  constructor(key: string) {
    this.#key = key;
  }

  issue(subject: LeaseSubject): string {
    return this.#sign(tokenOf(subject)).toString("base64url");
  }

  isOf(token: string, subject: LeaseSubject): boolean {
    return this.#isSigned(token, tokenOf(subject));
  }

  /** What the process shows to a store that does not know the epoch: whoever has only a token cannot make an epoch up. */
  proofOf(given: GivenEpoch): string {
    return this.#sign(proofOf(given)).toString("base64url");
  }

  isProofOf(proof: string, given: GivenEpoch): boolean {
    return this.#isSigned(proof, proofOf(given));
  }

  /** Takes the same time whatever differs. */
  #isSigned(text: string, parts: readonly (string | number)[]): boolean {
    const given = Buffer.from(text, "base64url");
    const wanted = this.#sign(parts);
    return given.length === wanted.length && timingSafeEqual(given, wanted);
  }

  #sign(parts: readonly (string | number)[]): Buffer {
    return createHmac("sha256", this.#key).update(JSON.stringify(parts)).digest();
  }
}

function tokenOf({ pool, instance, bootId }: LeaseSubject): readonly (string | number)[] {
  return ["lease/1", pool, instance, bootId];
}

function proofOf({ pool, instance, bootId, ordinal, epoch }: GivenEpoch): readonly (string | number)[] {
  return ["epoch/1", pool, instance, bootId, ordinal, epoch];
}
