/**
 * The slots of a worker: how many jobs it works on at once, and how each of them gets on. `GET /relevo/v1/slots` answers with it; each busy slot is an
 * obligation of its instance.
 */
import type { Clock } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { JobOutcome, Slots } from "../model/slots.ts";

/** As the model has it; a test holds the two together. */
export const MAX_SLOTS = 1_000;
export const MAX_JOB_NAME = 250;

export type SlotsView = Omit<Slots, "bootId">;

export interface SlotsOptions {
  readonly total: number;
  /** What the jobs are taken from, named as its signal names it (`queue/captures`); null: it is not said. */
  readonly flow: string | null;
  readonly clock: Clock;
}

interface Busy {
  readonly job: string;
  readonly since: number;
  progress: number;
  progressAt: number;
}

export class SlotTable {
  readonly total: number;
  readonly flow: string | null;
  readonly #clock: Clock;
  readonly #busy = new Map<number, Busy>();
  readonly #outcomes: Record<JobOutcome, number> = { done: 0, nothing: 0, reaped: 0, failed: 0 };
  readonly #listeners = new Set<() => void>();
  #isTaking = false;

  /** Throws `slots_invalid`. */
  constructor({ total, flow, clock }: SlotsOptions) {
    if (!Number.isInteger(total) || total < 1 || total > MAX_SLOTS)
      throw new RelevoError("slots_invalid", "A worker cannot have so many slots.", { found: total, allowed: `1 to ${MAX_SLOTS}` });
    this.total = total;
    this.flow = flow;
    this.#clock = clock;
  }

  get busy(): number {
    return this.#busy.size;
  }

  get free(): number {
    return this.total - this.#busy.size;
  }

  /** Jobs may come by a call that is under way: who drains is not done before it has ended. */
  get isTaking(): boolean {
    return this.#isTaking;
  }

  setTaking(isTaking: boolean): void {
    this.#isTaking = isTaking;
    this.#changed();
  }

  /** Called whenever a slot becomes busy or free, or a call for jobs begins or ends. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** The lowest free one; throws `slots_full`, because whoever takes a job must have looked before. */
  occupy(job: string): Slot {
    for (let index = 0; index < this.total; index++) if (!this.#busy.has(index)) return this.#occupy(index, job);
    throw new RelevoError("slots_full", "Every slot is busy.", { found: this.#busy.size });
  }

  view(): SlotsView {
    const now = this.#clock.monotonic();
    return {
      flow: this.flow,
      total: this.total,
      busy: [...this.#busy].map(([slot, { job, since, progress, progressAt }]) => ({
        slot,
        job: job.slice(0, MAX_JOB_NAME),
        ageMs: Math.round(now - since),
        quietMs: Math.round(now - progressAt),
        progress,
      })),
      outcomes: { ...this.#outcomes },
    };
  }

  #occupy(index: number, job: string): Slot {
    const now = this.#clock.monotonic();
    const entry: Busy = { job, since: now, progress: 0, progressAt: now };
    this.#busy.set(index, entry);
    this.#changed();
    return {
      index,
      advance: (amount = 1) => {
        if (!(amount > 0)) return;
        entry.progress += amount;
        entry.progressAt = this.#clock.monotonic();
      },
      quietMs: () => this.#clock.monotonic() - entry.progressAt,
      release: (outcome) => {
        // A second release would free what another job has by now.
        if (this.#busy.get(index) !== entry) return;
        this.#busy.delete(index);
        if (outcome !== null) this.#outcomes[outcome]++;
        this.#changed();
      },
    };
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** One busy slot, as whoever works in it has it. */
export interface Slot {
  readonly index: number;
  /** Work was done: bytes, rows, frames; never a sign of life. What is not above 0 counts for nothing. */
  advance(amount?: number): void;
  /** Since work was last done. */
  quietMs(): number;
  /** Null: the job's end does not count here, since another worker has it. Harmless the second time. */
  release(outcome: JobOutcome | null): void;
}
