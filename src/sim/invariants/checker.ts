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

/** What it knows is of the store: it begins anew when an old backup of that is restored. */
export function ofTheStore(make: () => Checker): Checker {
  let inner = make();
  return {
    ...inner,
    watches: [...inner.watches, "store_rewound"],
    on(event, context) {
      if (event.type === "store_rewound") inner = make();
      else inner.on(event, context);
    },
  };
}
