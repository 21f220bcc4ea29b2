/** How much work there is, and how many instances it asks for. A number that cannot be believed says nothing: it is never zero work (K11). */
import type { Instant } from "../../kernel/clock.ts";
import type { DemandTrouble, DemandView } from "../../model/demand.ts";
import type { ScalePolicy } from "../../model/scale.ts";
import type { PoolSlots } from "../../model/slots.ts";

export type Work =
  | {
      readonly valid: true /** Waiting and taken. */;
      readonly pieces: number;
      /** When it is too old to be believed; null: nobody knows when it was read. */
      readonly until: Instant | null;
    }
  | {
      readonly valid: false;
      readonly trouble: DemandTrouble | "unread";
      readonly detail: string;
      /** Since when nothing valid was read; null: nobody has looked yet. */
      readonly since: Instant | null;
    };

/** What is taken is known best by the source; else by the slots that make progress: what a stuck slot holds is done by no further instance. */
export function workOf({ reading, readAt, trouble }: DemandView, policy: ScalePolicy, slots: PoolSlots | null, now: Instant): Work {
  const since = readAt ?? trouble?.since ?? null;
  const invalid = (code: DemandTrouble | "unread", detail: string): Work => ({ valid: false, trouble: code, detail, since });
  if (trouble !== null) return invalid(trouble.code, trouble.detail);
  if (reading === null) return invalid("unread", "no look came to an end yet");
  // The source's own clock is looked at where it is read; here only that somebody still looks.
  const until = readAt === null ? null : readAt + policy.maxAge + policy.pollEvery;
  if (until !== null && now >= until) return invalid("stale", "nobody has read it again");
  const taken = reading.inFlight ?? slots?.progressing ?? 0;
  for (const value of [reading.backlog, taken]) {
    if (Number.isNaN(value)) return invalid("not_a_number", String(value));
    if (value < 0) return invalid("negative", String(value));
    if (!Number.isFinite(value)) return invalid("infinite", String(value));
  }
  return { valid: true, pieces: reading.backlog + taken, until };
}

/** A division that comes out whole in decimal must not ask for one more in binary. */
const ROUNDING = 1e-9;

/** Never more instances than there are pieces of work: the rest would have nothing to take. */
export function wantedFor(pieces: number, target: number): number {
  return Math.ceil(Math.min(pieces / target, Math.ceil(pieces)) - ROUNDING);
}
