/** A store that can be put back to what it was: a backup is what was written until then, written once more into a store that is empty. */
import type { Clock } from "../kernel/clock.ts";
import type { Store } from "../store/port.ts";
import { openStore } from "../store/store.ts";

const READS = /^(read|list|get|open|count)/;

interface Write {
  readonly name: string;
  readonly input: readonly unknown[];
  /** Monotonic ms. */
  readonly at: number;
}

export class RewindableStore {
  readonly #clock: Clock;
  #inner: Store;
  #written: Write[] = [];
  /** Stands before the store, and before its copy afterwards. */
  readonly store: Store;

  constructor(inner: Store, clock: Clock) {
    this.#inner = inner;
    this.#clock = clock;
    this.store = new Proxy(inner, { get: (_, name) => this.#member(name) });
  }

  /** False when nothing but claims and renewals was written since. */
  async rewind(byMs: number): Promise<boolean> {
    const until = this.#clock.monotonic() - byMs;
    const kept = this.#written.filter(({ at }) => at <= until);
    if (!this.#written.slice(kept.length).some(({ name }) => name === "commit")) return false;
    const copy = await openStore({ path: ":memory:" });
    for (const { name, input } of kept) await (Reflect.get(copy, name) as (...input: unknown[]) => unknown).apply(copy, [...input]);
    const former = this.#inner;
    this.#inner = copy;
    this.#written = kept;
    await former.close();
    return true;
  }

  #member(name: string | symbol): unknown {
    const member: unknown = Reflect.get(this.#inner, name);
    if (typeof member !== "function") return member;
    if (READS.test(String(name))) return member.bind(this.#inner);
    return async (...input: unknown[]) => {
      const result: unknown = await Reflect.apply(member, this.#inner, input);
      this.#written.push({ name: String(name), input, at: this.#clock.monotonic() });
      return result;
    };
  }
}
