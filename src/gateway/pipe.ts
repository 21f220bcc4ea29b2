/**
 * An upgraded connection between a client and an instance: bytes pass both ways with back-pressure, and its end is told apart.
 *
 * 1. WebSocket: without a close frame from either side, the instance's end is a lost process: the client is told by a close frame of the gateway's.
 * 2. Such a frame goes in at a frame boundary only; when the instance died inside a frame the connection just ends.
 * 3. Upgraded sockets are half-open: a side that ended gives the other a bounded time.
 */
import type { Duplex } from "node:stream";
import type { Clock, Timer } from "../kernel/clock.ts";
import { CLOSE_LOST, CLOSE_RESTART, closeFrame, FrameTracker } from "./frames.ts";
import type { Outcome } from "./ledger.ts";
import { LIMITS } from "./limits.ts";

export interface PipeOptions {
  readonly client: Duplex;
  readonly instance: Duplex;
  readonly isWebSocket: boolean;
  readonly clock: Clock;
  /** Called once, when the obligation is over. */
  readonly ended: (outcome: Outcome, code: string) => void;
}

export class Pipe {
  readonly #options: PipeOptions;
  /** Instance → client, and client → instance. */
  readonly #down = new FrameTracker();
  readonly #up = new FrameTracker();
  #over = false;
  /** The client ended its side, so that whatever follows is its doing. */
  #clientEnded = false;
  /** A close frame that waits for the end of the frame that is passing, or has been sent. */
  #close: { readonly frame: Buffer; sent: boolean } | null = null;
  #verdict: { readonly outcome: Outcome; readonly code: string } | null = null;
  #halfOpen: Timer | null = null;
  #deadline: Timer | null = null;

  constructor(options: PipeOptions) {
    this.#options = options;
    const { client, instance } = options;
    client.on("data", (chunk: Buffer) => this.#clientData(chunk));
    instance.on("data", (chunk: Buffer) => this.#instanceData(chunk));
    client.on("drain", () => instance.resume());
    instance.on("drain", () => client.resume());
    client.on("end", () => {
      this.#clientEnded = true;
      this.#oneEnded(instance);
    });
    instance.on("end", () => this.#instanceEnded());
    client.on("error", () => client.destroy());
    instance.on("error", () => instance.destroy());
    client.on("close", () => this.#finish("completed", this.#isExpected ? "closed" : "client_gone"));
    instance.on("close", () => this.#instanceClosed());
  }

  /** Closes it with 1012 a margin before the deadline (ms since the epoch), if the instance has not done so; null: never. */
  closeBefore(deadline: number | null): void {
    this.#deadline?.cancel();
    this.#deadline = null;
    if (deadline === null) return;
    const { clock } = this.#options;
    const leftMs = deadline - clock.now() - LIMITS.upgradedMarginMs;
    // Node's timers overflow beyond this; such a deadline is looked at again later.
    const delayMs = Math.min(Math.max(0, leftMs), LIMITS.longestTimerMs);
    this.#deadline = clock.after(delayMs, () => {
      if (delayMs < leftMs) this.closeBefore(deadline);
      else this.#tellClose(CLOSE_RESTART, "the instance is going away", "completed", "closed_by_deadline");
    });
  }

  /** The gateway stops. */
  closeForStop(): void {
    this.#tellClose(CLOSE_RESTART, "the gateway is stopping", "cut", "gateway_stopping");
  }

  /** The instance is gone by the membership's word; `code` says why in the counts. */
  instanceGone(code: string): void {
    this.#lost(code);
    this.#options.instance.destroy();
  }

  /** An end that the two agreed on, or that we announced, is no loss. */
  get #isExpected(): boolean {
    return this.#clientEnded || this.#close !== null || this.#down.closeCode !== null || this.#up.closeCode !== null;
  }

  #clientData(chunk: Buffer): void {
    if (this.#options.isWebSocket) this.#up.advance(chunk);
    const { client, instance } = this.#options;
    if (instance.writable && !instance.write(chunk)) client.pause();
  }

  #instanceData(chunk: Buffer): void {
    const { client, instance, isWebSocket } = this.#options;
    if (!client.writable || this.#close?.sent === true) return;
    let passing = chunk;
    if (isWebSocket) {
      const waiting = this.#close !== null;
      const followed = this.#down.advance(chunk, waiting);
      if (waiting) passing = chunk.subarray(0, followed);
    }
    if (!client.write(passing)) instance.pause();
    this.#sendCloseAtBoundary();
  }

  #tellClose(code: number, why: string, outcome: Outcome, name: string): void {
    if (this.#over || this.#close !== null) return;
    const { client, instance, isWebSocket, clock } = this.#options;
    this.#verdict = { outcome, code: name };
    if (isWebSocket && !this.#isExpected) {
      this.#close = { frame: closeFrame(code, why), sent: false };
      this.#sendCloseAtBoundary();
    } else if (!isWebSocket) {
      client.end();
      instance.end();
    }
    this.#halfOpen ??= clock.after(LIMITS.upgradedCloseMs, () => this.#destroy());
  }

  #sendCloseAtBoundary(): void {
    const close = this.#close;
    if (close === null || close.sent || !this.#down.atBoundary) return;
    close.sent = true;
    if (this.#options.client.writable) this.#options.client.write(close.frame);
  }

  #instanceEnded(): void {
    if (this.#options.isWebSocket && !this.#isExpected) this.#lost("instance_lost");
    else this.#oneEnded(this.#options.client);
  }

  #instanceClosed(): void {
    if (this.#over) return;
    const cleanly = this.#options.instance.errored === null && !this.#options.isWebSocket;
    if (this.#isExpected || cleanly) this.#oneEnded(this.#options.client);
    else this.#lost("instance_lost");
  }

  /** The client is told, and the obligation ends at once: nothing is left that could finish it. */
  #lost(code: string): void {
    if (this.#over) return;
    const { client, isWebSocket } = this.#options;
    if (isWebSocket && this.#down.atBoundary && client.writable) client.end(closeFrame(CLOSE_LOST, "the instance was lost"));
    else client.destroy();
    this.#finish("cut", code);
  }

  #oneEnded(other: Duplex): void {
    if (other.writable) other.end();
    this.#halfOpen ??= this.#options.clock.after(LIMITS.upgradedHalfOpenMs, () => this.#destroy());
    if (this.#options.instance.destroyed) this.#finish("completed", "closed");
  }

  #destroy(): void {
    this.#options.client.destroy();
    this.#options.instance.destroy();
  }

  #finish(outcome: Outcome, code: string): void {
    if (this.#over) return;
    this.#over = true;
    this.#deadline?.cancel();
    const { client, instance, clock, ended } = this.#options;
    instance.destroy();
    // What was written to the client may still be on its way.
    if (!client.destroyed) {
      if (client.writable) client.end();
      this.#halfOpen ??= clock.after(LIMITS.upgradedCloseMs, () => client.destroy());
    } else {
      this.#halfOpen?.cancel();
    }
    const verdict = this.#verdict ?? { outcome, code };
    ended(verdict.outcome, verdict.code);
  }
}
