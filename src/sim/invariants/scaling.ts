/** What must hold of a pool whose size follows its demand. */
import type { Checker } from "./checker.ts";
import { REAPED_AFTER_MS } from "../jobs.ts";

/** What was seen just before may still be acted upon: slots are asked each second, the signal too. */
const SEEN_WITHIN_MS = 8_000;
/** A reason that comes from a person or from the document, and grows whatever the slots say. */
const GIVEN: readonly string[] = ["scale_bounds", "scale_paused"];

/** Watches: commits of a size. */
export function oneOwnerOfTheSize(): Checker {
  const last = new Map<string, number>();
  return {
    id: "I20",
    rule: "one owner of a replica count: each size begins where the one before it ended",
    watches: ["committed", "claimed"],
    on(event, { violate }) {
      // Whoever begins reads what the store has.
      if (event.type === "claimed") last.delete(event.authority.pool);
      if (event.type !== "committed") return;
      const { pool } = event.authority;
      for (const change of event.changes) {
        if (change.kind !== "set_desired") continue;
        const before = last.get(pool);
        if (before !== undefined && before !== change.from)
          violate(`${pool} goes from ${change.from} to ${change.to}, and it had ${before}`);
        last.set(pool, change.to);
      }
    },
  };
}

/** Watches: commits of a size. */
export function sizesKeepToTheirBounds(): Checker {
  return {
    id: "I21/scale",
    rule: "floor ≤ the size that is decided ≤ max",
    watches: ["committed"],
    on(event, { truth, violate }) {
      if (event.type !== "committed") return;
      const size = truth.pool(event.authority.pool)?.spec.size;
      if (size === undefined) return;
      for (const change of event.changes)
        if (change.kind === "set_desired" && (change.to < size.floor || change.to > size.max))
          violate(`${change.to} where ${size.floor} to ${size.max} are allowed`);
    },
  };
}

/** Watches: commits of a size, and how the jobs are. */
export function stuckPoolsDoNotGrow(): Checker {
  return {
    id: "I23",
    rule: "no scale-up while the stuck share is above the threshold",
    watches: ["committed"],
    on(event, { truth, violate }) {
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind !== "set_desired" || change.to <= change.from || GIVEN.includes(change.reason.code)) continue;
        const jobs = truth.jobs();
        if (jobs === null || jobs.pool !== event.authority.pool || event.askedAt < truth.now() - SEEN_WITHIN_MS) continue;
        if (jobs.stuckForMs > SEEN_WITHIN_MS && !jobs.isUnseen)
          violate(`it grows to ${change.to} (${change.reason.code}) while too many slots are stuck for ${jobs.stuckForMs} ms`);
      }
    },
  };
}

/** Watches: commits of a size. A demand that cannot be believed changes nothing (K11). */
export function liesChangeNoSize(): Checker {
  return {
    id: "K11",
    rule: "a signal that cannot be believed lowers no size, and raises it only by the declared fallback",
    watches: ["committed"],
    on(event, { truth, violate }) {
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind !== "set_desired" || GIVEN.includes(change.reason.code) || change.reason.code === "scale_fallback") continue;
        const jobs = truth.jobs();
        if (jobs?.pool === event.authority.pool && jobs.lyingForMs > SEEN_WITHIN_MS)
          violate(`${change.from} → ${change.to} (${change.reason.code}) while its signal lies for ${jobs.lyingForMs} ms`);
      }
    },
  };
}

/** Watches: every plan; the slots are those of the SDK's own table. */
export function slotsDoNotLeak(): Checker {
  return {
    id: "I22",
    rule: "a progress-free child is reaped within T, slots never leak",
    watches: ["planned", "job_ended_again"],
    on(event, { truth, violate }) {
      if (event.type === "job_ended_again") violate(`${event.job} of ${event.pool} ended twice`);
      const { longestQuietMs: quietMs = 0, leakedSlots = 0 } = truth.jobs() ?? {};
      if (quietMs > REAPED_AFTER_MS + 1_000) violate(`a slot does nothing for ${quietMs} ms`);
      if (leakedSlots > 0) violate(`${leakedSlots} slots are busy and have no job`);
    },
  };
}
