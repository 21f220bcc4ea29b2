import type { Checker } from "./checker.ts";

/** Watches: every commit that the store applied, against the epoch of the last claim. */
export function onlyTheCurrentEpochCommits(): Checker {
  return {
    id: "I4",
    rule: "no write of a stale leader commits",
    watches: ["committed"],
    on(event, { mirror, violate }) {
      if (event.type === "committed" && event.authority.epoch !== mirror.epoch)
        violate(`a commit under epoch ${event.authority.epoch} was applied while ${mirror.epoch} is the current one`);
    },
  };
}
