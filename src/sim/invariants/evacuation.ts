import type { Grant } from "../../plan/evacuation/types.ts";
import { takenFromThoseExpected } from "../held-back.ts";
import type { Checker } from "./checker.ts";

const KEPT_BACK: ReadonlySet<string> = new Set(["candidate_backoff", "candidates_held"]);

/** Watches: every plan. */
export function whoCannotGoHoldsNoPlace(): Checker {
  return {
    id: "S12/idle",
    rule: "who has to wait because its candidates failed is given no place meanwhile",
    watches: ["planned"],
    on(event, { violate }) {
      if (event.type !== "planned") return;
      for (const { subject, reason } of event.plan.holds) {
        const grant = KEPT_BACK.has(reason.code) ? event.snapshot.evacuation.get(subject) : undefined;
        if (grant?.kind === "go") violate(`${subject} waits (${reason.code}) and holds a place of ${grant.supply}`);
      }
    },
  };
}

/** Watches: every evacuation schedule, with what it was made from. */
export function standbyIsHeldBack(): Checker {
  return {
    id: "I13/held",
    rule: "standby that higher classes are expected to need is given to no lower one that has time",
    watches: ["scheduled"],
    on(event, { violate }) {
      if (event.type !== "scheduled") return;
      const { input, plan } = event;
      const reserved = new Set(input.reservations.map(({ evacuee }) => evacuee));
      const goes = plan.grants.filter((grant): grant is Extract<Grant, { kind: "go" }> => grant.kind === "go");
      const problem = takenFromThoseExpected(
        input,
        goes.filter(({ evacuee }) => !reserved.has(evacuee)),
      );
      if (problem !== undefined) violate(problem);
    },
  };
}
