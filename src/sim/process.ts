/**
 * A simulated process, as far as others can tell: its port calls and its timers. Killing it revokes them: a call of a dead process never settles, as after
 * SIGKILL, because a rejection would run its `catch` and `finally`. Crash points are the port calls, before and after the effect.
 */
import type { Clock, Timer } from "../kernel/clock.ts";

export type Side = "before" | "after";

export class SimulatedProcess {
  readonly name: string;
  /** Port calls so far. */
  calls = 0;
  #isAlive = true;
  #crashAt = Number.POSITIVE_INFINITY;
  #crashSide: Side = "before";
  readonly #onDeath = new Set<() => void>();

  constructor(name: string) {
    this.name = name;
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Dies at its n-th port call from now on. */
  crashAfter(calls: number, side: Side): void {
    this.#crashAt = this.calls + calls;
    this.#crashSide = side;
  }

  kill(): void {
    if (!this.#isAlive) return;
    this.#isAlive = false;
    for (const listener of [...this.#onDeath]) listener();
    this.#onDeath.clear();
  }

  /** What of it is still open outside: connections, watches. Returns what forgets it again. */
  onDeath(listener: () => void): () => void {
    this.#onDeath.add(listener);
    return () => this.#onDeath.delete(listener);
  }

  /** Every port call goes through here. */
  async pass<T>(effect: () => Promise<T>): Promise<T> {
    if (!this.#isAlive) return never();
    const call = ++this.calls;
    if (call === this.#crashAt && this.#crashSide === "before") return this.#die();
    const settled = await effect().then(
      (value) => () => value,
      (error: unknown) => () => {
        throw error;
      },
    );
    if (call === this.#crashAt) return this.#die();
    return this.#isAlive ? settled() : never();
  }

  /** Looking at the clock is no call; the timers die with the process. */
  clock(clock: Clock): Clock {
    return {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      after: (delayMs: number, fire: () => void): Timer => clock.after(delayMs, () => this.#isAlive && fire()),
      sleep: async (delayMs, signal) => {
        try {
          await clock.sleep(delayMs, signal);
        } finally {
          if (!this.#isAlive) await never();
        }
      },
    };
  }

  #die<T>(): Promise<T> {
    this.kill();
    return never();
  }
}

/** A fresh promise each time: a shared one would keep all that ever waited for it. */
export function never<T>(): Promise<T> {
  return new Promise(() => {});
}
