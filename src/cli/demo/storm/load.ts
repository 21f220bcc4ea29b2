/** The clients of a storm: short requests and streams to each pool at a steady rate, each of which ends exactly once. */
import type { Clock, Timer } from "../../../kernel/clock.ts";
import type { Random } from "../../../kernel/random.ts";
import { Http1Transport } from "../load/http1-transport.ts";
import { type Ending, endingOfShort, endingOfStream, type Outcome, type Reply, wasQueued, wasRetried } from "../load/outcome.ts";

export interface StormCounts {
  readonly sent: number;
  readonly inFlight: number;
  readonly completed: number;
  readonly rejected: number;
  readonly cut: number;
  readonly lost: number;
  /** Of all, those that waited in the gateway's queue, and those that it tried more than once. */
  readonly queued: number;
  readonly retried: number;
}

export interface StormLoadOptions {
  readonly gatewayUrl: string;
  /** Each pool's host name at the gateway, and how many of it serve. */
  readonly hosts: readonly { readonly host: string; readonly instances: number }[];
  readonly clock: Clock;
  readonly random: Random;
}

const SHORT_PER_SECOND = 10;
const STREAM_MS: readonly [number, number] = [3_000, 6_000];
/** So many streams run on each instance at a time, on average. */
const STREAMS_PER_INSTANCE = 1;
const SHORT_LIMIT_MS = 15_000;
const STREAM_LIMIT_MS = 30_000;
const MAX_TOLD = 20;

export class StormLoad {
  readonly #options: StormLoadOptions;
  readonly #transports: ReadonlyMap<string, Http1Transport>;
  readonly #timers = new Set<Timer>();
  readonly #underWay = new Set<Promise<void>>();
  readonly #problems: string[] = [];
  #counts: Record<keyof StormCounts, number> = empty();
  #number = 0;
  #isStopped = false;

  constructor(options: StormLoadOptions) {
    this.#options = options;
    const { clock } = options;
    this.#transports = new Map(options.hosts.map(({ host }) => [host, new Http1Transport({ origin: options.gatewayUrl, host, clock })]));
  }

  start(): void {
    const meanStreamMs = (STREAM_MS[0] + STREAM_MS[1]) / 2;
    for (const { host, instances } of this.#options.hosts) {
      this.#repeat(1_000 / SHORT_PER_SECOND, () => this.#short(host));
      this.#repeat(meanStreamMs / Math.max(1, instances * STREAMS_PER_INSTANCE), () => this.#stream(host));
    }
  }

  counts(): StormCounts {
    return { ...this.#counts, inFlight: this.#underWay.size };
  }

  /** Of those that did not complete, the first ones, each in a few words. */
  problems(): readonly string[] {
    return this.#problems;
  }

  /** Sends nothing more, and settles when all that was sent has ended. */
  async stop(): Promise<StormCounts> {
    this.#isStopped = true;
    for (const timer of this.#timers) timer.cancel();
    await Promise.all(this.#underWay);
    for (const transport of this.#transports.values()) transport.close();
    return this.counts();
  }

  /** Gaps between half and one and a half of the mean, so that no two kinds march in step. */
  #repeat(meanMs: number, send: () => void): void {
    const timer = this.#options.clock.after(meanMs * (0.5 + this.#options.random.next()), () => {
      this.#timers.delete(timer);
      if (this.#isStopped) return;
      send();
      this.#repeat(meanMs, send);
    });
    this.#timers.add(timer);
  }

  #short(host: string): void {
    const id = this.#nextId();
    this.#send(host, `/work?id=${id}`, SHORT_LIMIT_MS, endingOfShort);
  }

  #stream(host: string): void {
    const id = this.#nextId();
    const ms = Math.round(STREAM_MS[0] + this.#options.random.next() * (STREAM_MS[1] - STREAM_MS[0]));
    this.#send(host, `/stream?id=${id}&ms=${ms}`, STREAM_LIMIT_MS, (reply) => endingOfStream(reply, id));
  }

  #nextId(): string {
    this.#number += 1;
    return `r${this.#number}`;
  }

  #send(host: string, path: string, limitMs: number, endingOf: (reply: Reply) => Ending): void {
    const transport = this.#transports.get(host);
    if (transport === undefined) return;
    this.#counts.sent += 1;
    const ended = transport.send({ method: "GET", path, headers: {}, body: null, limitMs }).then((reply) => {
      const { outcome, detail } = endingOf(reply);
      this.#counts[outcome] += 1;
      if (wasQueued(reply.headers)) this.#counts.queued += 1;
      if (wasRetried(reply.headers)) this.#counts.retried += 1;
      if (outcome !== "completed" && this.#problems.length < MAX_TOLD) this.#problems.push(told(host, path, outcome, detail));
      this.#underWay.delete(ended);
    });
    this.#underWay.add(ended);
  }
}

function told(host: string, path: string, outcome: Outcome, detail: string | null): string {
  return `${host} ${path.split("?", 1)[0]}: ${outcome}${detail === null ? "" : ` (${detail})`}`;
}

function empty(): Record<keyof StormCounts, number> {
  return { sent: 0, inFlight: 0, completed: 0, rejected: 0, cut: 0, lost: 0, queued: 0, retried: 0 };
}

/** What was sent between two looks, and what of that had ended by the second. */
export function countsBetween(before: StormCounts, after: StormCounts): StormCounts {
  const keys = Object.keys(after) as (keyof StormCounts)[];
  return Object.fromEntries(keys.map((key) => [key, key === "inFlight" ? after[key] : after[key] - before[key]])) as Record<
    keyof StormCounts,
    number
  >;
}
