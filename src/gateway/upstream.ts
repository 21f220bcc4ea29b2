/**
 * Connections to one member: a free list of clients with one request each, last used first. Measured faster than a pool that schedules for us.
 */
import { Client } from "undici";
import { LIMITS } from "./limits.ts";
import type { MemberState } from "./membership.ts";

interface Idle {
  readonly client: Client;
  readonly since: number;
}

export class Upstream {
  readonly member: MemberState;
  readonly #origin: string;
  readonly #idle: Idle[] = [];
  #closed = false;

  constructor(member: MemberState) {
    this.member = member;
    this.#origin = `http://${member.host.includes(":") ? `[${member.host}]` : member.host}:${member.port}`;
  }

  /** A client that nobody else uses; give it back or destroy it. */
  take(): Client {
    return this.#idle.pop()?.client ?? this.fresh();
  }

  /** A client of its own, for connections that are not given back. */
  fresh(): Client {
    return new Client(this.#origin, {
      pipelining: 1,
      bodyTimeout: 0,
      headersTimeout: 0,
      keepAliveTimeout: LIMITS.memberIdleMs,
      maxHeaderSize: LIMITS.answerHeadBytes,
      allowH2: false,
      connect: { timeout: LIMITS.connectMs, noDelay: true, allowH2: false },
    });
  }

  /** `now` is monotonic ms. */
  give(client: Client, now: number): void {
    if (this.#closed) drop(client);
    else this.#idle.push({ client, since: now });
  }

  /** Closes clients that were not needed for a while: the list is last used first, so they are at its start. */
  sweep(now: number): void {
    let stale = 0;
    while ((this.#idle[stale]?.since ?? now) < now - LIMITS.memberIdleMs) stale += 1;
    for (const { client } of this.#idle.splice(0, stale)) drop(client);
  }

  /** What is idle may be dead with the process that it led to. */
  discardIdle(): void {
    for (const { client } of this.#idle.splice(0)) drop(client);
  }

  close(): void {
    this.#closed = true;
    this.discardIdle();
  }
}

/** Ends a client without waiting for it. */
export function drop(client: Client): void {
  client.destroy().catch(() => undefined); // nothing is left that could fail usefully
}
