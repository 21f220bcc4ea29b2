/** A modelled client: short and long requests, and transactions of several requests that stay on one instance. */
import type { Clock } from "../kernel/clock.ts";
import { integerBetween, type Random } from "../kernel/random.ts";
import type { RequestOutcome } from "./exchange.ts";
import type { GatewayReplica } from "./gateway.ts";
import { chance, pick } from "./seeded.ts";

export interface ClientOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly route: string;
  readonly replicas: () => readonly GatewayReplica[];
}

const SESSION_TTL_MS = 10_000;
const FOR_EVER_MS = 24 * 3_600_000;
const BETWEEN_MS = [60, 500] as const;

export class Client {
  readonly counts: Record<RequestOutcome, number> & { sent: number } = { sent: 0, completed: 0, rejected: 0, cut: 0 };
  readonly #options: ClientOptions;
  #isStopped = false;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  start(): void {
    this.#next();
  }

  /** Sends nothing new; what is open goes on to its end. */
  stop(): void {
    this.#isStopped = true;
  }

  /** A stream that never ends by itself: whoever holds it waits for ever. */
  holdForEver(): void {
    const { random, replicas, route } = this.#options;
    const replica = pick(random, replicas());
    if (replica === undefined) return;
    this.counts.sent += 1;
    const done = (outcome: RequestOutcome): void => void (this.counts[outcome] += 1);
    replica.ask({ route, durationMs: FOR_EVER_MS, isIdempotent: false, streams: true, done });
  }

  #next(): void {
    const { clock, random } = this.#options;
    clock.after(integerBetween(random, ...BETWEEN_MS), () => {
      if (this.#isStopped) return;
      this.#send();
      this.#next();
    });
  }

  #send(): void {
    const { random, replicas, route } = this.#options;
    const replica = pick(random, replicas());
    if (replica === undefined) return;
    const streams = chance(random, 0.15);
    const opensSession = chance(random, 0.1);
    this.counts.sent += 1;
    replica.ask({
      route,
      durationMs: streams ? integerBetween(random, 1_000, 8_000) : integerBetween(random, 2, 300),
      isIdempotent: chance(random, 0.6),
      streams,
      done: (outcome, instance) => {
        this.counts[outcome] += 1;
        if (opensSession && outcome === "completed" && instance !== null) this.#holdSession(replica, instance);
      },
    });
  }

  /** Ends it by a last request, or leaves it to its TTL. */
  #holdSession(replica: GatewayReplica, instance: string): void {
    const { clock, random, route } = this.#options;
    const session = replica.openSession(route, instance, SESSION_TTL_MS);
    if (session === undefined) return;
    // The instance lets go of a transaction at its own TTL too.
    clock.after(chance(random, 0.8) ? integerBetween(random, 200, 9_000) : SESSION_TTL_MS, () => replica.endSession(session));
  }
}
