import type { Checker } from "./checker.ts";

/** From the first back-off of a quarter of a second at least, doubling: some nine retries reach ten seconds, some more after a restart. */
const RETRIES_MAX = 14;
const WITHIN_MS = 10_000;

/** Watches: retries of steps. */
export function retriesPause(): Checker {
  const retries = new Map<string, number[]>();
  return {
    id: "D14/retry",
    rule: "a step is tried again after a pause that grows",
    watches: ["committed"],
    on(event, { truth, violate }) {
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind !== "retry_step") continue;
        const now = truth.now();
        const recent = [...(retries.get(change.step) ?? []).filter((at) => at > now - WITHIN_MS), now];
        retries.set(change.step, recent);
        if (recent.length > RETRIES_MAX) violate(`${change.step} is tried again for the ${recent.length}th time within ${WITHIN_MS} ms`);
      }
    },
  };
}

/** As the planner pauses after a first failure; less by the time between a decision and its commit. */
const FIRST_PAUSE_MS = 900;

/** Watches: commits that give a candidate up, and those that make the next one. */
export function candidatesPause(): Checker {
  const failedAt = new Map<string, number>();
  return {
    id: "D14/pause",
    rule: "after a candidate failed, the next one for its place waits",
    watches: ["committed"],
    on(event, { mirror, truth, violate }) {
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind === "move_instance" && change.to === "failed" && change.set?.failure !== "not_wanted") {
          const predecessor = mirror.get(change.instance)?.replaces;
          if (predecessor) failedAt.set(predecessor, truth.now());
        }
        if (change.kind !== "create_instance" || change.instance.replaces === null) continue;
        const since = truth.now() - (failedAt.get(change.instance.replaces) ?? Number.NEGATIVE_INFINITY);
        if (since < FIRST_PAUSE_MS)
          violate(`${change.instance.id} is made ${since} ms after a candidate for ${change.instance.replaces} failed`);
      }
    },
  };
}
