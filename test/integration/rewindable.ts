/** A store that can be put back to what it was: yesterday's backup is what was written until then, written once more into a store that is empty. */
import type { Store } from "../../src/store/port.ts";
import { openStore } from "../../src/store/store.ts";
import type { StoreCall } from "./intercept.ts";

const READS = /^(read|list|get|open|count)/;

export class Rewindable {
  #inner: Store | undefined;
  #written: StoreCall[] = [];

  /** Stands before the store until it is rewound, and before its copy then. */
  over(store: Store): Store {
    this.#inner = store;
    return new Proxy(store, {
      get: (_target, name) => {
        const inner = this.#inner ?? store;
        const member: unknown = Reflect.get(inner, name);
        if (typeof member !== "function") return member;
        return async (...input: unknown[]) => {
          const result: unknown = await Reflect.apply(member, this.#inner ?? inner, input);
          if (!READS.test(String(name))) this.#written.push({ name: String(name), input });
          return result;
        };
      },
    });
  }

  /** The backup as of now. */
  backUp(): number {
    return this.#written.length;
  }

  async rewindTo(backup: number): Promise<void> {
    const copy = await openStore({ path: ":memory:" });
    this.#written = this.#written.slice(0, backup);
    for (const { name, input } of this.#written) {
      const member: unknown = Reflect.get(copy, name);
      if (typeof member === "function") await Reflect.apply(member, copy, input);
    }
    const former = this.#inner;
    this.#inner = copy;
    await former?.close();
  }
}
