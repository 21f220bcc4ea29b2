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

/** A step answers five conflicts at once and then pauses, from a quarter of a second on: some forty in this time, for the few steps that write one object. */
const CONFLICTS_MAX = 250;
const CONFLICTS_WITHIN_MS = 5_000;

/** Watches: writes that are refused as conflicts. */
export function conflictsPause(): Checker {
  const conflicts = new Map<string, number[]>();
  return {
    id: "D14/conflict",
    rule: "conflicts that do not end are met with pauses",
    watches: ["api_conflict"],
    on(event, { truth, violate }) {
      if (event.type !== "api_conflict") return;
      const key = `${event.process} ${event.what}`;
      const times = conflicts.get(key) ?? [];
      conflicts.set(key, times);
      times.push(truth.now());
      while ((times[0] ?? 0) <= truth.now() - CONFLICTS_WITHIN_MS) times.shift();
      if (times.length === CONFLICTS_MAX) violate(`${key} is tried ${times.length} times within ${CONFLICTS_WITHIN_MS} ms`);
    },
  };
}

/** As the planner pauses after a first failure; less by a third, for a clock that is being put right, and by the time between a decision and its commit. */
const FIRST_PAUSE_MS = 600;

/** Watches: commits that give a candidate up, and those that make the next one. */
export function candidatesPause(): Checker {
  /** By predecessor: when it was heard of, and as it was stamped when it was decided: a store that is busy may have taken the pause for the commit. */
  const failures = new Map<string, { readonly at: number; readonly stamp: number }>();
  return {
    id: "D14/pause",
    rule: "after a candidate failed, the next one for its place waits",
    watches: ["committed"],
    on(event, { mirror, truth, violate }) {
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind === "move_instance" && change.to === "failed" && change.set?.failure !== "not_wanted") {
          const predecessor = mirror.get(change.instance)?.replaces;
          if (predecessor) failures.set(predecessor, { at: truth.now(), stamp: event.now });
        }
        if (change.kind !== "create_instance" || change.instance.replaces === null) continue;
        const failure = failures.get(change.instance.replaces);
        if (failure === undefined) continue;
        const since = Math.max(truth.now() - failure.at, event.now - failure.stamp);
        if (since < FIRST_PAUSE_MS)
          violate(`${change.instance.id} is made ${since} ms after a candidate for ${change.instance.replaces} failed`);
      }
    },
  };
}
