/** Stands between the controller and its store. */
import type { Store } from "../../src/store/port.ts";

export interface StoreCall {
  readonly name: string;
  readonly input: readonly unknown[];
}

/** Every call goes through `around`, which performs it by calling `go`, or does not. */
export function intercept(store: Store, around: (call: StoreCall, go: () => Promise<unknown>) => Promise<unknown>): Store {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...input: unknown[]) => around({ name: String(name), input }, async () => Reflect.apply(member, target, input));
    },
  });
}
