import type { Checker } from "./checker.ts";

/** Watches: every commit that the store applied, against the epoch of the last claim. */
export function onlyTheCurrentEpochCommits(): Checker {
  return {
    id: "I4",
    rule: "no write of a stale leader commits",
    watches: ["committed"],
    on(event, { mirror, violate }) {
      if (event.type !== "committed") return;
      const { pool, epoch } = event.authority;
      const current = mirror.epochs.get(pool);
      if (epoch !== current) violate(`a commit of ${pool} under epoch ${epoch} was applied while ${current} is the current one`);
    },
  };
}
