/** A checker hears every event before the mirror has taken it in, and says what is broken. It names the events that can break its invariant. */
import type { SimEvent, Truth } from "../events.ts";
import type { Mirror } from "../mirror.ts";

export interface Context {
  readonly mirror: Mirror;
  readonly truth: Truth;
  readonly violate: (sentence: string) => void;
}

export interface Checker {
  /** `I3`, or a requirement. */
  readonly id: string;
  readonly rule: string;
  readonly watches: readonly SimEvent["type"][];
  on(event: SimEvent, context: Context): void;
}
