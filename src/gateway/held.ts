/**
 * What a member holds, as a list from which anything can be taken at once. A Set would do, but a Set that is filled and emptied for ever moves to new
 * tables, and each dead table keeps the next one, with all in it, from the collector of short-lived objects: measured, 60 MB of garbage grew old that way.
 */
import type { Exchange } from "./exchange.ts";

export interface Held {
  /** Its place in the list; -1 when it is in none. */
  heldAt: number;
}

export class HeldList {
  readonly #items: Exchange[] = [];

  get size(): number {
    return this.#items.length;
  }

  add(item: Exchange): void {
    item.heldAt = this.#items.push(item) - 1;
  }

  delete(item: Exchange): void {
    const at = item.heldAt;
    if (this.#items[at] !== item) return;
    item.heldAt = -1;
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    this.#items[at] = last;
    last.heldAt = at;
  }

  /** A copy, so that items may leave while it is walked. */
  all(): readonly Exchange[] {
    return [...this.#items];
  }
}
