/**
 * Upgraded connections (WebSockets): each is an obligation until it is closed. Nothing closes one but its two ends, except a deadline that it outlives:
 * then it is closed with 1012 (service restart) after the application has acknowledged what it received, a margin before the deadline.
 */
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../kernel/clock.ts";
import { NOT_TAKEN_HEADER } from "./wire.ts";

/** RFC 6455 close code "service restart": the client may connect again at once. */
export const SERVICE_RESTART = 1012;

/** From the end of `beforeClose` until a peer that does not answer the close is cut. */
export const CLOSE_HANDSHAKE_LIMIT_MS = 500;

/** What the SDK needs of a WebSocket; the `ws` package's has this shape. */
export interface ClosableSocket {
  close(code: number, reason: string): void;
  terminate?(): void;
}

export interface CloseOptions {
  /** Awaited before the close, at most half of the margin: acknowledge every message that was received, and take no more. */
  readonly beforeClose?: () => Promise<void> | void;
}

interface Entry {
  socket: ClosableSocket;
  beforeClose: CloseOptions["beforeClose"];
  closing: boolean;
}

/** An upgrade that is refused because the instance is about to go: the gateway may send it elsewhere. */
export const UPGRADE_NOT_TAKEN = `HTTP/1.1 503 Service Unavailable\r\n${NOT_TAKEN_HEADER}: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`;

/** A whole close frame with 1012, unmasked as servers send it, for connections that the application never registered. */
const CLOSE_FRAME = Buffer.from([0x88, 0x02, SERVICE_RESTART >> 8, SERVICE_RESTART & 0xff]);

export class UpgradedConnections {
  readonly #clock: Clock;
  readonly #changed: () => void;
  readonly #report: (sentence: string) => void;
  readonly #open = new Map<Duplex, Entry>();

  constructor(clock: Clock, changed: () => void, report: (sentence: string) => void) {
    this.#clock = clock;
    this.#changed = changed;
    this.#report = report;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Counts a connection from its upgrade until it is closed. */
  add(connection: Duplex): void {
    this.#open.set(connection, { socket: rawWebSocket(connection), beforeClose: undefined, closing: false });
    connection.once("close", () => {
      this.#open.delete(connection);
      this.#changed();
    });
  }

  /** Says how this connection is closed in order; without it a bare close frame is sent. */
  register(connection: Duplex, socket: ClosableSocket, options: CloseOptions): void {
    const entry = this.#open.get(connection);
    if (entry === undefined || entry.closing) return; // it was closed in the meantime
    entry.socket = socket;
    entry.beforeClose = options.beforeClose;
  }

  /** Closes all with 1012, each after its `beforeClose`, which gets at most `limitMs`. Those that already close are left alone. */
  async closeAll(limitMs: number): Promise<void> {
    await Promise.all([...this.#open].map(([connection, entry]) => this.#close(connection, entry, limitMs)));
  }

  /** Drops all without a word. */
  destroyAll(): void {
    for (const connection of this.#open.keys()) connection.destroy();
  }

  async #close(connection: Duplex, entry: Entry, limitMs: number): Promise<void> {
    if (entry.closing) return;
    entry.closing = true;
    await this.#settleMessages(entry, limitMs);
    if (connection.destroyed) return;
    entry.socket.close(SERVICE_RESTART, "service restart");
    const cut = this.#clock.after(CLOSE_HANDSHAKE_LIMIT_MS, () => {
      if (entry.socket.terminate) entry.socket.terminate();
      else connection.destroy();
    });
    connection.once("close", () => cut.cancel());
  }

  async #settleMessages(entry: Entry, limitMs: number): Promise<void> {
    const hook = entry.beforeClose;
    if (hook === undefined) return;
    const limit = new AbortController();
    try {
      const overdue = this.#clock.sleep(limitMs, limit.signal).then(() => "overdue" as const);
      overdue.catch(() => undefined); // aborted below, when the hook was faster
      const settled = await Promise.race([Promise.resolve(hook()).then(() => "settled" as const), overdue]);
      if (settled === "overdue") this.#report(`beforeClose took longer than ${limitMs} ms; the connection is closed all the same`);
    } catch (error) {
      this.#report(`beforeClose failed: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      limit.abort();
    }
  }
}

function rawWebSocket(connection: Duplex): ClosableSocket {
  const writtenBefore = bytesWritten(connection);
  return {
    close() {
      // The handshake may still be with the application: then a frame would come before the 101, and the upgrade can still be refused.
      connection.end(writtenBefore !== undefined && bytesWritten(connection) === writtenBefore ? UPGRADE_NOT_TAKEN : CLOSE_FRAME);
    },
  };
}

/** Undefined for what is no socket of the system. */
function bytesWritten(connection: Duplex): number | undefined {
  return connection instanceof Socket ? connection.bytesWritten : undefined;
}
