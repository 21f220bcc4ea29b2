/** What happened, one line each, made from the commits: for `relevo get --watch`, the terminal, Events, logs and metrics. */
import type { Instant } from "../kernel/clock.ts";
import type { Reason } from "../model/reasons.ts";
import type { JournalEntry } from "../server/control-plane.ts";
import type { Change } from "../store/port.ts";

export type JournalListener = (entry: JournalEntry) => void;

/** Of what happened here so many are kept, for whoever asks later. */
const KEPT = 1_000;

export class Journal {
  readonly #listeners = new Set<JournalListener>();
  readonly #recent: JournalEntry[] = [];
  /** Kinds and reasons of steps that were recorded here and have not ended: their end says only the id. */
  readonly #open = new Map<string, { readonly kind: string; readonly subject: string; readonly reason: Reason }>();

  subscribe(listener: JournalListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Those of one pool and those of none, or all of them; the newest first. What happened before this process began is not among them. */
  recent({ pool, limit }: { readonly pool?: string | undefined; readonly limit: number }): readonly JournalEntry[] {
    const wanted = this.#recent.filter((entry) => pool === undefined || entry.pool === null || entry.pool === pool);
    return wanted.slice(-limit).toReversed();
  }

  tell(entry: JournalEntry): void {
    this.#recent.push(entry);
    if (this.#recent.length > KEPT) this.#recent.shift();
    for (const listener of this.#listeners) listener(entry);
  }

  /** A commit that is durable. */
  committed(pool: string, changes: readonly Change[], at: Instant): void {
    for (const change of changes) {
      const entry = this.#entryOf(pool, change, at);
      if (entry) this.tell(entry);
    }
  }

  kindOf(step: string): string | undefined {
    return this.#open.get(step)?.kind;
  }

  #entryOf(pool: string, change: Change, at: Instant): JournalEntry | undefined {
    const entry = (
      kind: JournalEntry["kind"],
      subject: string,
      code: string,
      from: string | null = null,
      reason: Reason | null = null,
    ): JournalEntry => ({ at, kind, pool, subject, code, from, reason });
    switch (change.kind) {
      case "record_evidence":
        return entry("evidence", change.evidence.instance, change.evidence.reason);
      case "create_instance":
        return entry("phase", change.instance.id, "pending");
      case "move_instance":
        return entry("phase", change.instance, change.to, change.from);
      case "take_standby":
        return entry("phase", change.instance, `takes over from ${change.replaces}`, "standby");
      case "renew_incarnation":
        return entry("phase", change.instance, "new_incarnation", String(change.after));
      case "record_step": {
        const { id, kind, instance, reason } = change.step;
        this.#open.set(id, { kind, subject: instance ?? id, reason });
        return entry("step", instance ?? id, `${kind} begun`, null, reason);
      }
      case "end_step": {
        const open = this.#open.get(change.step);
        this.#open.delete(change.step);
        return entry(
          "step",
          open?.subject ?? change.step,
          `${open?.kind ?? change.step} ${change.outcome}`,
          change.state,
          open?.reason ?? null,
        );
      }
      case "pass_writer":
        return entry(
          "writer",
          change.to?.instance ?? `workload ${change.ordinal}`,
          change.to === null ? `workload ${change.ordinal} fenced` : `writes for workload ${change.ordinal}`,
          change.after,
        );
      case "set_desired":
        return entry("size", "", String(change.to), String(change.from), change.reason);
      case "update_instance":
      case "set_trust":
      case "retry_step":
      case "count_loss":
      case "set_reasons":
        return undefined;
      default:
        return change satisfies never;
    }
  }
}
