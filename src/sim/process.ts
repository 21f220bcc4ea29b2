/**
 * A simulated process, as far as others can tell: its port calls and its timers. Killing it revokes them: a call of a dead process never settles, as after
 * SIGKILL, because a rejection would run its `catch` and `finally`. Crash points are the port calls, before and after the effect. A process that is paused
 * stands still at its next port call or timer and goes on there, however much has changed; its wall clock may be wrong, its monotonic one never is.
 */
import type { Clock, Timer } from "../kernel/clock.ts";

/** So many turns of the promise queue later whoever was answered has come to its next call. */
const TURNS = 60;

/** `after`: the effect happened and its caller never hears of it. `heard`: it heard, went on, and dies before time goes on. */
export type Side = "before" | "after" | "heard";

export class SimulatedProcess {
  readonly name: string;
  /** Port calls so far. */
  calls = 0;
  /** Hears of each port call as it begins: its number, and what it is. */
  onCall: ((call: number, what: string) => void) | undefined;
  #isAlive = true;
  #crashAt = Number.POSITIVE_INFINITY;
  #crashSide: Side = "before";
  /** Set while it stands still, as after SIGSTOP. */
  #pause: PromiseWithResolvers<void> | undefined;
  /** Timers that fell due meanwhile, in order. */
  readonly #due: (() => void)[] = [];
  /** How far the wall clock of its machine is off; may change at any moment. */
  skewMs = 0;
  readonly #onDeath = new Set<() => void>();

  constructor(name: string) {
    this.name = name;
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  get isPaused(): boolean {
    return this.#pause !== undefined;
  }

  /** What it sent goes on; it hears nothing, and no timer of it fires. */
  pause(): void {
    this.#pause ??= Promise.withResolvers();
  }

  /** Goes on where it stood: with whatever it believed then. */
  resume(): void {
    this.#pause?.resolve();
    this.#pause = undefined;
    for (const fire of this.#due.splice(0)) if (this.#isAlive) fire();
  }

  /** Done now, or once it goes on: what reaches it from outside waits where it arrives. */
  whenRunning(act: () => void): void {
    if (this.#pause === undefined) act();
    else this.#due.push(act);
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
  async pass<T>(effect: () => Promise<T>, what = "call"): Promise<T> {
    if (!this.#isAlive) return never();
    const call = ++this.calls;
    this.onCall?.(call, what);
    if (call === this.#crashAt && this.#crashSide === "before") return this.#die();
    if (this.#pause !== undefined) await this.#pause.promise;
    if (!this.#isAlive) return never();
    let value: T;
    try {
      value = await effect();
    } catch (error) {
      if (await this.#isStillThere(call)) throw error;
      return never();
    }
    // Nearly all of them: no turn more than the effect took.
    if (this.#pause === undefined && call !== this.#crashAt && this.#isAlive) return value;
    return (await this.#isStillThere(call)) ? value : never();
  }

  /** Once the effect is over: whether its caller hears of it. */
  async #isStillThere(call: number): Promise<boolean> {
    if (this.#pause !== undefined) await this.#pause.promise;
    if (call === this.#crashAt && this.#crashSide === "after") this.kill();
    else if (call === this.#crashAt) void this.#dieSoon();
    return this.#isAlive;
  }

  /** Looking at the clock is no call; the timers die with the process. */
  clock(clock: Clock): Clock {
    return {
      now: () => clock.now() + this.skewMs,
      monotonic: () => clock.monotonic(),
      after: (delayMs: number, fire: () => void): Timer => this.#after(clock, delayMs, fire),
      sleep: async (delayMs, signal) => {
        try {
          await clock.sleep(delayMs, signal);
        } finally {
          if (this.#pause !== undefined) await this.#pause.promise;
          if (!this.#isAlive) await never();
        }
      },
    };
  }

  #after(clock: Clock, delayMs: number, fire: () => void): Timer {
    let isCancelled = false;
    const timer = clock.after(delayMs, () => {
      if (!this.#isAlive) return;
      if (this.#pause === undefined) fire();
      else this.#due.push(() => !isCancelled && fire());
    });
    return {
      cancel: () => {
        isCancelled = true;
        timer.cancel();
      },
    };
  }

  async #dieSoon(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn++) await Promise.resolve();
    this.kill();
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
