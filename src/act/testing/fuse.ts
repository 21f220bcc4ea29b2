/**
 * One process of a test, as far as its port calls go: every call is counted, and at one of them the process dies, before or after the effect. A call of a
 * dead process never settles, as after SIGKILL: a rejection would run its `catch` and `finally`.
 */
import type { Clock, Timer } from "../../kernel/clock.ts";

export type Side = "before" | "after";

export class Fuse {
  calls = 0;
  isAlive = true;
  readonly #crashAt: number;
  readonly #side: Side;

  constructor(crashAt: number = Number.POSITIVE_INFINITY, side: Side = "before") {
    this.#crashAt = crashAt;
    this.#side = side;
  }

  async pass<T>(effect: () => Promise<T>): Promise<T> {
    if (!this.isAlive) return never();
    const call = ++this.calls;
    if (call === this.#crashAt && this.#side === "before") return this.#die();
    const settled = await effect().then(
      (value) => () => value,
      (error: unknown) => () => {
        throw error;
      },
    );
    if (call === this.#crashAt) return this.#die();
    return this.isAlive ? settled() : never();
  }

  kill(): void {
    this.isAlive = false;
  }

  #die<T>(): Promise<T> {
    this.isAlive = false;
    return never();
  }
}

/** A fresh promise each time: a shared one would keep all that ever waited for it. */
function never<T>(): Promise<T> {
  return new Promise(() => {});
}

/** Every method of the port goes through the fuse. */
export function fused<T extends object>(port: T, fuse: Fuse): T {
  return wrapped(port, (call) => fuse.pass(call));
}

/** The clock's timers die with the process; looking at it is no call. */
export function fusedClock(clock: Clock, fuse: Fuse): Clock {
  const after = (delayMs: number, fire: () => void): Timer => clock.after(delayMs, () => fuse.isAlive && fire());
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after,
    async sleep(delayMs, signal) {
      try {
        await clock.sleep(delayMs, signal);
      } finally {
        if (!fuse.isAlive) await never();
      }
    },
  };
}

interface Injected {
  readonly error: unknown;
  readonly side: Side;
}

/** What a test does to the calls of a port: throw before the effect, or after it (the reply is lost); or something that happens meanwhile. */
export type Fault = (call: {
  readonly method: string;
  readonly input: readonly unknown[];
  readonly number: number;
}) => Injected | undefined | Promise<Injected | undefined>;

export function faulty<T extends object>(port: T, fault: Fault): T {
  const numbers = new Map<string, number>();
  return wrapped(port, async (effect, method, input) => {
    const number = (numbers.get(method) ?? 0) + 1;
    numbers.set(method, number);
    const injected = await fault({ method, input, number });
    if (injected?.side === "before") throw injected.error;
    const value = await effect();
    if (injected !== undefined) throw injected.error;
    return value;
  });
}

function wrapped<T extends object>(
  port: T,
  around: (effect: () => Promise<unknown>, method: string, input: readonly unknown[]) => Promise<unknown>,
): T {
  return new Proxy(port, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...input: unknown[]) => around(async () => Reflect.apply(member, target, input), String(name), input);
    },
  });
}
