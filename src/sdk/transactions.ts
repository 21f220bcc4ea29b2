/**
 * Work of several requests that must stay on this instance. Each is an obligation until it ends or expires; the header on the response makes the gateway
 * bind the client to this instance for as long.
 */
import type { ServerResponse } from "node:http";
import type { Clock, Timer } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import { SESSION_HEADER } from "./wire.ts";

export const MAX_TRANSACTIONS = 100_000;

/** What `begin` needs of a response. */
export type HeaderCarrier = Pick<ServerResponse, "setHeader">;

interface OpenTransaction {
  timer: Timer;
  readonly ttlMs: number;
  readonly onExpire: (() => void) | undefined;
}

export class Transactions {
  readonly #clock: Clock;
  readonly #changed: () => void;
  readonly #open = new Map<string, OpenTransaction>();

  constructor(clock: Clock, changed: () => void) {
    this.#clock = clock;
    this.#changed = changed;
  }

  get size(): number {
    return this.#open.size;
  }

  has(id: string): boolean {
    return this.#open.has(id);
  }

  /**
   * Opens a transaction that ends by `end` or after `ttlMs` without use, whichever is first; sets `relevo-session: begin` on the response, so call it before the head
   * is written. `onExpire` is called when the time runs out. Errors: `transaction_open`, `too_many_transactions`.
   */
  begin(id: string, ttlMs: number, response: HeaderCarrier, onExpire?: () => void): void {
    if (this.#open.has(id)) throw new RelevoError("transaction_open", `Transaction ${id} is already open.`, { class: "conflict" });
    if (this.#open.size >= MAX_TRANSACTIONS)
      throw new RelevoError("too_many_transactions", "No more transactions can be opened.", {
        class: "retryable",
        found: this.#open.size,
        allowed: `${MAX_TRANSACTIONS}`,
      });
    response.setHeader(SESSION_HEADER, `begin; ttl=${Math.ceil(ttlMs / 1000)}`);
    this.#open.set(id, { timer: this.#clock.after(ttlMs, () => this.#expire(id)), ttlMs, onExpire });
  }

  /** A request of the transaction came: its time begins anew, here as in the gateway. False when it is not open. */
  touch(id: string): boolean {
    const open = this.#open.get(id);
    if (open === undefined) return false;
    open.timer.cancel();
    open.timer = this.#clock.after(open.ttlMs, () => this.#expire(id));
    return true;
  }

  /** False when it was not open (it ended before, or expired): the caller must not commit then. */
  end(id: string, response: HeaderCarrier): boolean {
    response.setHeader(SESSION_HEADER, "end");
    const open = this.#open.get(id);
    if (open === undefined) return false;
    open.timer.cancel();
    this.#open.delete(id);
    this.#changed();
    return true;
  }

  #expire(id: string): void {
    const open = this.#open.get(id);
    this.#open.delete(id);
    open?.onExpire?.();
    this.#changed();
  }
}
