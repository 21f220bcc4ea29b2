/**
 * While a simulation runs, whatever is not under its control throws: global timers, the clock of the machine, its chance, the network. The kernel's virtual
 * clock took what it needs at import.
 */
import { RelevoError } from "../kernel/errors.ts";

function forbidden(name: string): () => never {
  return () => {
    throw new RelevoError("hidden_input", `${name} was used in a simulation: it comes through a port or not at all.`, { found: name });
  };
}

function replace<K extends string>(target: Record<K, unknown>, name: K, value: unknown): () => void {
  const original = Object.getOwnPropertyDescriptor(target, name);
  Object.defineProperty(target, name, { value, configurable: true, writable: true, enumerable: original?.enumerable ?? true });
  return () => {
    if (original) Object.defineProperty(target, name, original);
    else Reflect.deleteProperty(target, name);
  };
}

/** `new Date(ms)`, `Date.parse` and `Date.UTC` are pure and stay. */
function pureDate(original: DateConstructor): DateConstructor {
  const now = forbidden("Date.now");
  return new Proxy(original, {
    construct(target, input, newTarget) {
      if (input.length === 0) forbidden("new Date()")();
      return Reflect.construct(target, input, newTarget) as object;
    },
    apply: forbidden("Date()"),
    get: (target, name) => (name === "now" ? now : (Reflect.get(target, name) as unknown)),
  });
}

/** Returns what lifts them again. */
export function installGuards(): () => void {
  const scope = globalThis as unknown as Record<string, unknown>;
  const timers = ["setTimeout", "setInterval", "setImmediate", "fetch"];
  const undo = [
    ...timers.map((name) => replace(scope, name, forbidden(name))),
    replace(scope, "Date", pureDate(Date)),
    replace(Math as unknown as Record<string, unknown>, "random", forbidden("Math.random")),
    replace(performance as unknown as Record<string, unknown>, "now", forbidden("performance.now")),
    replace(crypto as unknown as Record<string, unknown>, "randomUUID", forbidden("crypto.randomUUID")),
    replace(AbortSignal as unknown as Record<string, unknown>, "timeout", forbidden("AbortSignal.timeout")),
  ];
  return () => {
    for (const lift of undo.toReversed()) lift();
  };
}
