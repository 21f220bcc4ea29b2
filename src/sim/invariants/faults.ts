import type { Checker } from "./checker.ts";

/** Watches: what nobody expected to be thrown. */
export function nothingUnexpectedIsThrown(): Checker {
  return {
    id: "no-fault",
    rule: "no fault of the program: every error that is met is one of ours",
    watches: ["unhandled"],
    on(event, { violate }) {
      if (event.type === "unhandled") violate(event.error);
    },
  };
}
