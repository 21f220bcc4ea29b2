import type { Checker } from "./checker.ts";

/** Watches: commits that begin a drain. The decision was made a moment ago: the best of what could be seen since counts. */
const DECIDED_WITHIN_MS = 1_000;

export function voluntaryDrainHasASpare(): Checker {
  const seen: { readonly at: number; readonly spare: number }[] = [];
  return {
    id: "I5",
    rule: "a voluntary drain implies more serving than desired at decision time",
    watches: ["rows_read", "committed"],
    on(event, { mirror, truth, violate }) {
      const now = truth.now();
      if (event.type === "rows_read") {
        const serving = event.rows.instances.filter(({ phase }) => phase === "serving").length;
        const desired = truth.pool()?.spec.size.desired ?? 0;
        seen.push({ at: now, spare: serving - desired });
        while (seen[0] !== undefined && seen[0].at < now - DECIDED_WITHIN_MS) seen.shift();
        return;
      }
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind !== "move_instance" || change.to !== "draining" || change.set?.drainLoss !== "voluntary") continue;
        if (mirror.get(change.instance)?.phase !== "serving") continue;
        const best = Math.max(...seen.map(({ spare }) => spare), mirror.serving() - (truth.pool()?.spec.size.desired ?? 0));
        if (best <= 0) violate(`${change.instance} drains voluntarily while ${mirror.serving()} serve`);
      }
    },
  };
}

/** Watches: commits that seal. What the gateways hold and what runs at the instance is looked up. */
export function confirmedSealIsEmpty(): Checker {
  return {
    id: "D5",
    rule: "a confirmed seal implies that no gateway replica holds anything of the instance",
    watches: ["committed"],
    on(event, { mirror, truth, violate }) {
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind !== "move_instance" || change.to !== "sealed" || change.set?.seal !== "confirmed") continue;
        const incarnation = mirror.get(change.instance)?.incarnation ?? 0;
        for (const { replica, requests, sessions } of truth.held(change.instance, incarnation)) {
          if (requests + sessions > 0)
            violate(`${change.instance} is sealed while ${replica} holds ${requests} requests and ${sessions} sessions`);
        }
      }
    },
  };
}
