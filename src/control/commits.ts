/** Every commit passes here once it is durable: what the journal, Events, metrics and `get --watch` are told is what happened, not what was meant. */
import type { Instant } from "../kernel/clock.ts";
import type { Authority, Change, Store } from "../store/port.ts";

export type CommitListener = (pool: string, changes: readonly Change[], now: Instant) => void;

export function watchCommits(store: Store, listener: CommitListener): Store {
  return new Proxy(store, {
    get(target, property, receiver) {
      if (property !== "commit") {
        const value: unknown = Reflect.get(target, property, receiver);
        return typeof value === "function" ? value.bind(target) : value;
      }
      return async (authority: Authority, changes: readonly Change[], now: Instant) => {
        const result = await target.commit(authority, changes, now);
        listener(authority.pool, changes, now);
        return result;
      };
    },
  });
}
