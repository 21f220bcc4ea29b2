/**
 * Lists in pages. All pages show the state at the first page's resourceVersion: the rest of a list is kept (references only, as objects never change)
 * until it is too old or too many others were begun; then its token is expired.
 */
import type { Clock, Instant } from "../../kernel/clock.ts";
import type { KubeObject } from "../../kube/api.ts";
import { badRequest } from "./api-errors.ts";

const SNAPSHOTS_MAX = 64;
/** As etcd's compaction by default. */
const SNAPSHOT_TTL_MS = 300_000;

interface Snapshot {
  /** The kind and namespace that were listed: a token is good for no other. */
  readonly of: string;
  readonly revision: number;
  readonly items: readonly KubeObject[];
  readonly at: Instant;
}

/** What a token says: where to go on in which snapshot, and after which key, for when the snapshot is gone. */
export interface ListToken {
  readonly snapshot: number;
  readonly offset: number;
  readonly after: string;
}

export class ListPages {
  readonly #clock: Clock;
  readonly #snapshots = new Map<number, Snapshot>();
  #next = 1;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(of: string, revision: number, items: readonly KubeObject[]): number {
    for (const [id, { at }] of this.#snapshots) if (this.#snapshots.size >= SNAPSHOTS_MAX || this.#isOld(at)) this.#snapshots.delete(id);
    const id = this.#next++;
    this.#snapshots.set(id, { of, revision, items, at: this.#clock.now() });
    return id;
  }

  find(id: number): Snapshot | undefined {
    const snapshot = this.#snapshots.get(id);
    return snapshot && !this.#isOld(snapshot.at) ? snapshot : undefined;
  }

  /** Every token becomes expired, as by a compaction. */
  clear(): void {
    this.#snapshots.clear();
  }

  #isOld(at: Instant): boolean {
    return this.#clock.now() - at > SNAPSHOT_TTL_MS;
  }
}

export function formatToken(token: ListToken): string {
  return Buffer.from(JSON.stringify([token.snapshot, token.offset, token.after])).toString("base64url");
}

/** Throws a 400 for what is no token. */
export function parseToken(text: string): ListToken {
  try {
    const [snapshot, offset, after] = JSON.parse(Buffer.from(text, "base64url").toString()) as unknown[];
    if (typeof snapshot === "number" && typeof offset === "number" && typeof after === "string") return { snapshot, offset, after };
  } catch {
    // Falls through: the token is not one of ours, and that is all there is to say.
  }
  throw badRequest("continue key is not valid");
}
