/**
 * A request's body: held when it is small, so that the request can be tried again, else streamed. One of unknown length is held while it may still turn
 * out small, for a moment only, so that a conversation in both directions is not held up.
 */
import type { Readable } from "node:stream";
import type { Timer } from "../kernel/clock.ts";
import type { GatewayCore } from "./core.ts";
import { Limit } from "./deadlines.ts";
import { LIMITS } from "./limits.ts";

export class BodyReader {
  readonly #source: Readable;
  readonly #core: GatewayCore;
  readonly #idle: Limit;
  #chunks: Buffer[] = [];
  #size = 0;
  #ready: ((body: Buffer | "stream") => void) | null = null;
  #patience: Timer | null = null;
  #streaming = false;

  /** `late` is called when the client sends nothing for too long before the body is held. */
  constructor(source: Readable, core: GatewayCore, late: () => void) {
    this.#source = source;
    this.#core = core;
    this.#idle = new Limit(() => (this.#streaming ? source.destroy(new Error("the request's body did not come in time")) : late()));
    source.on("error", () => this.#stop()); // `close` follows and ends the exchange
  }

  /** `length` is -1 when it is not known. With `waits` the client sends nothing before it is told to go on. */
  start(length: number, waits: boolean, ready: (body: Buffer | "stream") => void): void {
    const unknown = length < 0;
    if (length > LIMITS.heldBodyBytes || (unknown && waits)) {
      this.#streaming = true;
      return ready("stream");
    }
    this.#ready = ready;
    this.#limits().start(this.#idle);
    this.#source.on("data", this.#take);
    this.#source.on("end", this.#whole);
    if (unknown) this.#patience = this.#core.clock.after(LIMITS.holdUnknownBodyMs, () => this.#giveUpHolding());
  }

  readonly #take = (chunk: Buffer): void => {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    this.#limits().start(this.#idle);
    if (this.#size > LIMITS.heldBodyBytes) this.#giveUpHolding();
  };

  readonly #whole = (): void => {
    const ready = this.#stop();
    const [only] = this.#chunks;
    ready?.(this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks));
  };

  #giveUpHolding(): void {
    this.#source.off("data", this.#take);
    this.#source.off("end", this.#whole);
    this.#source.pause();
    this.#streaming = true;
    this.#stop()?.("stream");
  }

  #stop(): ((body: Buffer | "stream") => void) | null {
    this.#idle.stop();
    this.#patience?.cancel();
    const ready = this.#ready;
    this.#ready = null;
    return ready;
  }

  /** What was held so far, then the rest as it comes. */
  async *stream(): AsyncGenerator<Buffer> {
    const held = this.#chunks;
    this.#chunks = [];
    yield* held;
    try {
      this.#limits().start(this.#idle);
      for await (const chunk of this.#source.iterator({ destroyOnReturn: false })) {
        this.#idle.stop();
        yield chunk as Buffer;
        this.#limits().start(this.#idle);
      }
    } finally {
      this.#idle.stop();
    }
  }

  #limits() {
    return this.#core.deadlines(LIMITS.bodyIdleMs);
  }
}
