/**
 * Two sessions of a database, stopped before each of their statements, so that a test decides whose statement is next. Every order that the database lets
 * happen is found by doing the calls again and again, each time with another choice at the last place where there was one (depth first).
 *
 * A session whose statement waits for a lock of the other is left to wait: then only the other one can be chosen.
 */
import pg from "pg";

export type Side = "a" | "b";
const OTHER: Readonly<Record<Side, Side>> = { a: "b", b: "a" };

/** Choices of one order: whose statement came next, where both could. */
export type Order = readonly Side[];

interface Gate {
  /** Present while a statement waits to be let through. */
  open: (() => void) | undefined;
  /** The call has settled. */
  isDone: boolean;
}

/** How often a statement that neither ends nor is seen to wait is looked at; the database decides within milliseconds. */
const LOOK_MS = 2;
/** A statement that runs on is no order, it is a fault of the test. */
const MOST_LOOKS = 5_000;

export class Scheduler {
  readonly #gates: Record<Side, Gate> = { a: { open: undefined, isDone: true }, b: { open: undefined, isDone: true } };
  readonly #pids: Record<Side, number> = { a: 0, b: 0 };
  readonly #watch: pg.Client;
  #isOn = false;
  #wake: (() => void) | undefined;

  /** `watch` is a third connection, which sees who waits for whom. */
  constructor(watch: pg.Client) {
    this.#watch = watch;
  }

  /** The driver's client for one side: each query waits until it is let through. */
  clientOf(side: Side): typeof pg.Client {
    // Let through at once while nothing is scheduled.
    const wait = async (processId: number): Promise<void> => {
      if (!this.#isOn) return;
      this.#pids[side] = processId;
      await this.#pass(side);
    };
    return class extends pg.Client {
      // The overloads of `query` with callbacks are the pool's own, at the connection's beginning.
      override query(...input: unknown[]): never {
        const run = () => Reflect.apply(super.query, this, input) as Promise<unknown>;
        return wait((this as unknown as { readonly processID: number }).processID).then(run) as never;
      }
    };
  }

  /**
   * Makes both calls, along `order` as far as it goes, then always the first that can go on. Settles when both have settled; returns all choices that there
   * were.
   */
  async run(calls: Readonly<Record<Side, () => Promise<unknown>>>, order: Order | (() => Side)): Promise<Side[]> {
    this.#isOn = true;
    for (const side of ["a", "b"] as const) {
      const gate = this.#gates[side];
      Object.assign(gate, { open: undefined, isDone: false });
      void calls[side]().finally(() => {
        gate.isDone = true;
        this.#wake?.();
      });
    }
    const taken: Side[] = [];
    while (!(this.#gates.a.isDone && this.#gates.b.isDone)) {
      await this.#settle();
      const ready = (["a", "b"] as const).filter((side) => this.#gates[side].open !== undefined);
      if (ready.length === 0) continue;
      let next = ready[0] as Side;
      if (ready.length === 2) {
        next = typeof order === "function" ? order() : (order[taken.length] ?? next);
        taken.push(next);
      }
      const { open } = this.#gates[next];
      this.#gates[next].open = undefined;
      open?.();
    }
    this.#isOn = false;
    return taken;
  }

  #pass(side: Side): Promise<void> {
    return new Promise((resolve) => {
      this.#gates[side].open = resolve;
      this.#wake?.();
    });
  }

  /** Until each side waits before a statement, has ended, or waits for a lock of the other one. */
  async #settle(): Promise<void> {
    for (let looks = 0; looks < MOST_LOOKS; looks++) {
      const running = (["a", "b"] as const).filter((side) => !this.#gates[side].isDone && this.#gates[side].open === undefined);
      const [first] = running;
      if (first === undefined) return;
      // Both wait for each other: the database ends that by itself.
      if (running.length === 1 && !this.#gates[OTHER[first]].isDone && (await this.#isBlocked(first))) return;
      await this.#change();
    }
    throw new Error("a statement neither ends nor waits for a lock");
  }

  async #isBlocked(side: Side): Promise<boolean> {
    const { rows } = await this.#watch.query("select $2::int = any(pg_blocking_pids($1)) as blocked", [
      this.#pids[side],
      this.#pids[OTHER[side]],
    ]);
    return rows[0]?.blocked === true;
  }

  async #change(): Promise<void> {
    const changed = new Promise<void>((resolve) => (this.#wake = resolve));
    const bound = Promise.withResolvers<void>();
    const timer = setTimeout(bound.resolve, LOOK_MS);
    await Promise.race([changed, bound.promise]);
    clearTimeout(timer);
  }
}

/** The order after this one, depth first; undefined when there is none left. */
export function following(taken: readonly Side[]): Order | undefined {
  const last = taken.lastIndexOf("a");
  return last < 0 ? undefined : [...taken.slice(0, last), "b"];
}
