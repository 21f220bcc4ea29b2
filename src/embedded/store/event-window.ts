/** The last events of one kind: what a watch may start from, and no more. */
import type { KubeObject } from "../../kube/api.ts";

export interface StoreEvent {
  readonly revision: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: KubeObject;
  /** The state before; absent for ADDED. */
  readonly previous: KubeObject | undefined;
}

export class EventWindow {
  readonly #capacity: number;
  #events: StoreEvent[] = [];
  /** The highest revision that is no longer held: a watch from below it is too old. */
  #forgotten: number;

  constructor(capacity: number, startRevision: number) {
    this.#capacity = capacity;
    this.#forgotten = startRevision;
  }

  push(event: StoreEvent): void {
    this.#events.push(event);
    // Cut in lumps: one copy per half a window instead of a shift per event.
    if (this.#events.length >= this.#capacity * 1.5) this.#forget(this.#events.length - this.#capacity);
  }

  #forget(count: number): void {
    this.#forgotten = this.#events[count - 1]?.revision ?? this.#forgotten;
    this.#events = this.#events.slice(count);
  }

  /** Drops everything: the next watch from an older revision is expired. For tests of consumers, as a restart of an API server does. */
  clear(): void {
    this.#forget(this.#events.length);
  }

  /** Undefined when the window no longer reaches back so far. */
  after(revision: number): readonly StoreEvent[] | undefined {
    if (revision < this.#forgotten) return undefined;
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#events[middle]?.revision ?? 0) <= revision) low = middle + 1;
      else high = middle;
    }
    return this.#events.slice(low);
  }
}
