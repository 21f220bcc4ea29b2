/** Calls of one name take place one after the other, in the order in which they were made; those of different names do not wait for each other. */
import { storeUnavailable } from "./port.ts";

/** More callers than this cannot be served in useful time. */
export const MAX_WAITING = 10_000;

export class Lanes {
  readonly #tails = new Map<string, Promise<unknown>>();
  #waiting = 0;

  /** A lane costs a waiting caller no connection. */
  async run<T>(lane: string, work: () => Promise<T>): Promise<T> {
    if (this.#waiting >= MAX_WAITING) throw storeUnavailable(`${MAX_WAITING} callers wait already`, undefined, "try again later");
    const before = this.#tails.get(lane);
    const turn = this.#enter(before, work);
    const tail = turn.then(settled, settled);
    this.#tails.set(lane, tail);
    try {
      return await turn;
    } finally {
      if (this.#tails.get(lane) === tail) this.#tails.delete(lane);
    }
  }

  async #enter<T>(before: Promise<unknown> | undefined, work: () => Promise<T>): Promise<T> {
    if (before === undefined) return work();
    this.#waiting += 1;
    try {
      await before;
    } finally {
      this.#waiting -= 1;
    }
    return work();
  }
}

function settled(): void {}
