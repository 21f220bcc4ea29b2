import { NO_ORDINAL } from "../../model/instance.ts";
import { capacityLimit, type PoolSpec } from "../../model/pool.ts";
import { isCandidate } from "../../model/phase.ts";
import { NOT_WANTED, OUTDATED } from "../../plan/candidates.ts";
import type { Checker, Context } from "./checker.ts";

/** Watches: commits that give a candidate up. Several may be on their way for places that nobody left: they were all allowed before the first failed. */
export function candidateFailuresAreBounded(): Checker {
  const failures = new Map<string, number[]>();
  return {
    id: "I18",
    rule: "candidate failures per window are bounded",
    watches: ["committed"],
    on(event, context) {
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind !== "move_instance" || change.to !== "failed") continue;
        const spec = specOf(context, event.authority.pool);
        const candidate = context.mirror.get(change.instance);
        if (spec === undefined || candidate === undefined) continue;
        if (change.set?.failure === NOT_WANTED || change.set?.failure === OUTDATED) continue; // it was given up, it did not fail
        const { retries, per } = spec.disruption.candidates;
        // Free places and standby are tried apart, each under its own gate.
        const key = candidate.replaces ?? `${event.authority.pool} ${candidate.ordinal === NO_ORDINAL ? "standby" : "place"}`;
        const recent = [...(failures.get(key) ?? []).filter((at) => at > event.now - per), event.now];
        failures.set(key, recent);
        const atOnce = candidate.replaces === null ? spec.size.max : 1;
        if (recent.length > retries + atOnce)
          context.violate(`${recent.length} candidates for ${candidate.replaces ?? "a free place"} failed within ${per} ms`);
      }
    },
  };
}

/** Watches: commits that make an instance. */
export function sizeIsBounded(): Checker {
  return {
    id: "I21",
    rule: "all that is not deleted ≤ max + surge + draining; floor ≤ desired ≤ max",
    watches: ["committed"],
    on(event, context) {
      if (event.type !== "committed" || !event.changes.some(({ kind }) => kind === "create_instance")) return;
      const spec = specOf(context, event.authority.pool);
      if (spec === undefined) return;
      const made = event.changes.filter(({ kind }) => kind === "create_instance").length;
      const occupied = context.mirror.living(event.authority.pool).length + made;
      if (occupied > capacityLimit(spec)) context.violate(`${occupied} instances where ${capacityLimit(spec)} are allowed`);
      const { floor, desired, max } = spec.size;
      if (floor > desired || desired > max) context.violate(`floor ${floor}, desired ${desired}, max ${max}`);
      const coming = context.mirror.staying(event.authority.pool).filter(({ phase }) => isCandidate(phase)).length + made;
      if (coming > max + spec.disruption.surge) context.violate(`${coming} candidates at once`);
    },
  };
}

/** Watches: lists without a selector of one instance, and what makes a new one necessary. */
export function inventoriesAreFew(): Checker {
  const lists = new Map<string, number>();
  const reasons = new Map<string, number>();
  /** By process. */
  const pauses = new Map<string, number>();
  const add = (counts: Map<string, number>, key: string): number => {
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    return count;
  };
  return {
    id: "I19",
    rule: "at most one full inventory per pass",
    watches: ["api_list", "api_trouble", "watch_line", "went_on"],
    on(event, { violate }) {
      if (event.type === "went_on") add(pauses, event.process);
      if (event.type === "api_trouble") add(reasons, `${event.process} ${event.of.plural}`);
      if (event.type === "watch_line" && event.line.type === "ERROR") add(reasons, `${event.process} ${event.of.plural}`);
      if (event.type !== "api_list" || event.options.labelSelector?.includes("=") === true || event.options.continue !== undefined) return;
      // No inventory: a handful of objects, which are listed again and again on purpose.
      if (event.of.kind === "Lease") return;
      const key = `${event.process} ${event.of.plural}`;
      const count = add(lists, key);
      const known = (reasons.get(key) ?? 0) + (pauses.get(event.process) ?? 0);
      if (count > 1 + known) violate(`${key} is listed for the ${count}th time, with ${known} reasons`);
    },
  };
}

function specOf({ truth }: Context, pool: string): PoolSpec | undefined {
  return truth.pool(pool)?.spec;
}
