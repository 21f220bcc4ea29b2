import type { Checker } from "./checker.ts";

/** Watches: commits that move an instance, or take a standby. */
export function movesBeginWhereTheInstanceIs(): Checker {
  return {
    id: "D5/move",
    rule: "an instance moves on from the phase that it is in, and a standby is taken once",
    watches: ["committed"],
    on(event, { mirror, violate }) {
      if (event.type !== "committed") return;
      const moved = new Map<string, string>();
      const taken = new Set<string>();
      for (const change of event.changes) {
        if (change.kind === "take_standby") {
          const replaces = mirror.get(change.instance)?.replaces ?? null;
          if (replaces !== null || taken.has(change.instance))
            violate(`${change.instance} is taken for ${change.replaces}, and was for ${replaces}`);
          taken.add(change.instance);
        }
        if (change.kind !== "move_instance") continue;
        const phase = moved.get(change.instance) ?? mirror.get(change.instance)?.phase;
        if (phase !== undefined && phase !== change.from)
          violate(`${change.instance} moves from ${change.from} to ${change.to}, and it is ${phase}`);
        moved.set(change.instance, change.to);
      }
    },
  };
}
