/**
 * Who lives, told from Leases: a state machine without I/O.
 *
 * 1. Another replica lives while its Lease is seen to change, on the clock of this process; what times the Lease says is nothing to go by.
 * 2. Silence counts only while somebody listens: that this replica's own renewals come back through the same watch proves it. After a gap in that (the API
 *    server away, a watch that died, this process paused) everybody is given a full time anew, so that nobody is declared dead for it.
 * 3. A Lease that is deleted is a replica that ended in good order: it is gone at once.
 * 4. This replica lives as the others see it: while its renewals are seen, and its Lease bears its own identity. Another process under the same id that came
 *    later has taken its place.
 */
import type { Member } from "./members.ts";

/** As a watch shows it. */
export interface SeenLease extends Member {
  /** Of the process: two processes may have the same id, one after the other. */
  readonly holder: string;
  /** Another text whenever the object changed. */
  readonly version: string;
}

export interface MemberViewOptions {
  readonly self: string;
  readonly holder: string;
  /** ms without a change of its Lease, after which a replica counts as dead. */
  readonly durationMs: number;
  /** ms between two own renewals that are seen, beyond which nobody was listening. */
  readonly gapMs: number;
}

interface Other {
  readonly lease: SeenLease;
  /** Monotonic ms. */
  readonly changedAt: number;
  readonly isAlive: boolean;
}

export class MemberView {
  readonly #options: MemberViewOptions;
  readonly #others = new Map<string, Other>();
  #own: SeenLease | undefined;
  #ownSeenAt = Number.NEGATIVE_INFINITY;
  #hasHeld = false;

  constructor(options: MemberViewOptions) {
    this.#options = options;
  }

  /** `now` is monotonic ms, in each of these. */
  saw(lease: SeenLease, now: number): void {
    if (lease.id === this.#options.self) return this.#sawOwn(lease, now);
    if (this.#others.get(lease.id)?.lease.version === lease.version) return;
    this.#others.set(lease.id, { lease, changedAt: now, isAlive: true });
  }

  gone(id: string): void {
    if (id === this.#options.self) this.#own = undefined;
    this.#others.delete(id);
  }

  /** Declares dead who was silent for too long. Returns when to look again; null: only a change matters. */
  look(now: number): number | null {
    if (!this.#isListening(now)) return null;
    let next: number | null = null;
    for (const [id, other] of this.#others) {
      if (!other.isAlive) continue;
      const deadAt = other.changedAt + this.#options.durationMs;
      if (now >= deadAt) this.#others.set(id, { ...other, isAlive: false });
      else next = Math.min(next ?? deadAt, deadAt);
    }
    return next;
  }

  isLive(now: number): boolean {
    return this.#own?.holder === this.#options.holder && now - this.#ownSeenAt < this.#options.durationMs;
  }

  /** Another process has taken this replica's id. What a former life of it left behind is nothing of the kind. */
  get isSuperseded(): boolean {
    return this.#hasHeld && this.#own !== undefined && this.#own.holder !== this.#options.holder;
  }

  live(now: number): readonly Member[] {
    const others = [...this.#others.values()].filter(({ isAlive }) => isAlive).map(({ lease }) => lease);
    const all = this.isLive(now) && this.#own !== undefined ? [this.#own, ...others] : others;
    return all.map(({ id, api }) => ({ id, api })).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** Dead for so long: their Leases are litter. */
  deadSince(before: number): readonly SeenLease[] {
    return [...this.#others.values()].filter(({ isAlive, changedAt }) => !isAlive && changedAt < before).map(({ lease }) => lease);
  }

  #sawOwn(lease: SeenLease, now: number): void {
    if (this.#own?.version === lease.version) return;
    if (!this.#isListening(now)) for (const [id, other] of this.#others) this.#others.set(id, { ...other, changedAt: now });
    this.#own = lease;
    this.#ownSeenAt = now;
    this.#hasHeld ||= lease.holder === this.#options.holder;
  }

  #isListening(now: number): boolean {
    return now - this.#ownSeenAt <= this.#options.gapMs;
  }
}
