import { isCandidate, isLeaving, LOSSES, type Loss } from "../../model/phase.ts";
import type { Freeze } from "../../store/port.ts";
import type { Mirror, MirroredInstance } from "../mirror.ts";
import type { Checker } from "./checker.ts";

/** What was decided just before it was heard of may still be written down. */
const UNDER_WAY_MS = 2_000;

/** Watches: commits that begin a voluntary drain, or make a candidate for one. */
export function disruptionsAreFew(): Checker {
  return {
    id: "D6",
    rule: "voluntary drains at once ≤ draining, voluntary candidates at once ≤ surge",
    watches: ["committed"],
    on(event, { mirror, truth, violate }) {
      if (event.type !== "committed") return;
      const { pool } = event.authority;
      const policy = truth.pool(pool)?.spec.disruption;
      if (policy === undefined) return;
      const drains = event.changes.filter(
        (change) => change.kind === "move_instance" && change.to === "draining" && change.set?.drainLoss === "voluntary",
      );
      const draining = mirror.living(pool).filter(({ phase, drainLoss }) => phase === "draining" && drainLoss === "voluntary");
      if (drains.length > 0 && drains.length + draining.length > policy.draining)
        violate(`${drains.length + draining.length} drain voluntarily where ${policy.draining} may`);
      const made = event.changes.filter(
        (change) => change.kind === "create_instance" && isVoluntary(mirror.get(change.instance.replaces ?? "")),
      );
      const coming = mirror.living(pool).filter(({ phase, replaces }) => isCandidate(phase) && isVoluntary(mirror.get(replaces ?? "")));
      if (made.length > 0 && made.length + coming.length > policy.surge)
        violate(`${made.length + coming.length} candidates for voluntary replacements where ${policy.surge} may be`);
    },
  };
}

function isVoluntary(predecessor: MirroredInstance | undefined): boolean {
  if (predecessor === undefined || isLeaving(predecessor.phase)) return false;
  return predecessor.evidence.has("voluntary") && predecessor.evidence.size === 1;
}

/** Watches: what a controller has read of its pool's freeze, and what it commits afterwards. Who was promised a deadline still moves. */
export function frozenMeansNoDecision(): Checker {
  const read = new Map<string, { readonly freeze: Freeze | null; readonly since: number }>();
  return {
    id: "freeze",
    rule: "while a pool is frozen nothing is decided but for promised deadlines",
    watches: ["rows_read", "committed"],
    on(event, { mirror, truth, violate }) {
      if (event.type === "rows_read") {
        const { process, rows } = event;
        const key = `${process} ${rows.pool}`;
        const isSame = JSON.stringify(read.get(key)?.freeze) === JSON.stringify(rows.freeze);
        if (!isSame) read.set(key, { freeze: rows.freeze, since: truth.now() });
      }
      if (event.type !== "committed") return;
      const known = read.get(`${event.process} ${event.authority.pool}`);
      if (!known?.freeze || event.now >= known.freeze.until || event.askedAt - known.since < UNDER_WAY_MS) return;
      for (const change of event.changes) {
        if (change.kind === "record_step" && /^(cordon_node|protect_pod|unprotect_pod)\//.test(change.step.kind))
          violate(`${change.step.id} is recorded`);
        if (change.kind === "create_instance" && change.instance.replaces === null) violate(`${change.instance.id} is made`);
        if (change.kind === "move_instance" && change.set?.drainLoss === "voluntary" && isUnpromised(mirror, change.instance))
          violate(`${change.instance} drains`);
      }
    },
  };
}

function isUnpromised(mirror: Mirror, instance: string): boolean {
  const known = mirror.get(instance);
  return known?.phase === "serving" && !known.evidence.has("deadline") && known.replaces === null;
}

/** Watches: evidence, and the drains that follow. */
export function drainsBearTheGravestLoss(): Checker {
  const since = new Map<string, Map<Loss, number>>();
  return {
    id: "D9",
    rule: "a drain bears the gravest class of what is recorded",
    watches: ["committed"],
    on(event, { mirror, truth, violate }) {
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind === "record_evidence") {
          const { instance, loss } = change.evidence;
          const known = since.get(instance) ?? new Map<Loss, number>();
          if (!known.has(loss)) known.set(loss, truth.now());
          since.set(instance, known);
        }
        if (change.kind !== "move_instance" || change.to !== "draining" || mirror.get(change.instance)?.phase !== "serving") continue;
        const settled = [...(since.get(change.instance) ?? [])]
          .filter(([, at]) => event.askedAt - at >= UNDER_WAY_MS)
          .map(([loss]) => loss);
        const borne = LOSSES.indexOf(change.set?.drainLoss ?? "voluntary");
        const graver = settled.find((loss) => LOSSES.indexOf(loss) > borne);
        if (graver !== undefined) violate(`${change.instance} drains ${change.set?.drainLoss} while a ${graver} loss of it is recorded`);
      }
    },
  };
}
