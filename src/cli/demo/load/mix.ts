/** What the load is made of, and when each request starts: an open loop, so that a slow answer never slows the next request down. */
import type { Clock, Timer } from "../../../kernel/clock.ts";
import type { Random } from "../../../kernel/random.ts";
import { REQUEST_KINDS, type RequestKind } from "./outcome.ts";

export interface Mix {
  /** Requests per second of each kind; 0 leaves it out. */
  readonly perSecond: Readonly<Record<RequestKind, number>>;
  /** How long each of the long ones lasts, in seconds: uniform between both. */
  readonly exportSeconds: readonly [number, number];
  readonly liveSeconds: readonly [number, number];
  readonly txSeconds: readonly [number, number];
  /** Between two messages of a session and two items of a transaction. */
  readonly stepMs: number;
  /** Of short requests, streams and transactions: how many go over HTTP/2, when there is an address for it. */
  readonly http2Share: number;
}

export const DEFAULT_MIX: Mix = {
  perSecond: { order: 30, charge: 15, export: 1.5, live: 0.7, tx: 1 },
  exportSeconds: [3, 8],
  liveSeconds: [3, 10],
  txSeconds: [2, 10],
  stepMs: 400,
  http2Share: 0.3,
};

/** A client that was itself held up does not send all it missed in one burst: what is older than this is dropped from the plan. */
const MAX_LAG_MS = 1_000;

/** Starts requests of each kind at its rate, each gap between 0.5 and 1.5 of the mean, so that no two kinds march in step. */
export class Arrivals {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #start: (kind: RequestKind) => void;
  readonly #mix: () => Mix;
  readonly #timers = new Map<RequestKind, Timer>();

  constructor(options: { clock: Clock; random: Random; mix: () => Mix; start: (kind: RequestKind) => void }) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.#mix = options.mix;
    this.#start = options.start;
  }

  start(): void {
    for (const kind of REQUEST_KINDS) this.#plan(kind, this.#clock.monotonic() + this.#gapMs(kind) * this.#random.next());
  }

  stop(): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }

  #plan(kind: RequestKind, dueAt: number): void {
    const delayMs = Math.max(0, dueAt - this.#clock.monotonic());
    this.#timers.set(
      kind,
      this.#clock.after(delayMs, () => {
        // The rate may be 0 for now: then the plan only looks again later.
        if (this.#mix().perSecond[kind] > 0) this.#start(kind);
        const late = this.#clock.monotonic() - dueAt;
        this.#plan(kind, (late > MAX_LAG_MS ? this.#clock.monotonic() : dueAt) + this.#gapMs(kind));
      }),
    );
  }

  #gapMs(kind: RequestKind): number {
    const rate = this.#mix().perSecond[kind];
    return rate > 0 ? (1000 / rate) * (0.5 + this.#random.next()) : IDLE_LOOK_MS;
  }
}

const IDLE_LOOK_MS = 500;
