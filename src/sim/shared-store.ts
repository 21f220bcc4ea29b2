/**
 * The store as several controllers share it. What is read of a file stays the same object until it is written, because one process owns the file; of a database
 * each look makes its rows anew, and whoever goes by the object and not by what it says never finds it again.
 */
import type { Store } from "../store/port.ts";

export function sharedStore(store: Store): Store {
  return new Proxy(store, {
    get(target, name: keyof Store) {
      if (name === "readPool") return async (pool: string) => structuredClone(await target.readPool(pool));
      const method = target[name] as (...input: unknown[]) => Promise<unknown>;
      return method.bind(target);
    },
  });
}
