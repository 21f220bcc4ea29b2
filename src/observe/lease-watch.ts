/**
 * The judge of writer leases: who has renewed, as this process sees it change, on the clock that nobody sets.
 *
 * 1. A lease is renewed when its count of renewals is another than before. It began before its request was sent, the judge sees it after it was committed:
 *    the holder always stops itself earlier than it is suspected.
 * 2. Who has never asked for its lease cannot write and is not judged.
 * 3. After a gap in its own observation (its start, a store that cannot be asked, a pause of this process) everybody gets a full TTL anew. Silence that
 *    nobody listened to is no silence.
 */
import type { Clock, Instant, Timer } from "../kernel/clock.ts";
import type { Workload } from "../model/writer.ts";
import type { LeaseState } from "../plan/snapshot.ts";

/** This process looks at the time this many times within the shortest TTL; when a look comes later than two others would have, it was paused. */
const LOOKS_PER_TTL = 8;
const LONGEST_LOOK_MS = 500;

interface Entry {
  readonly workload: Workload;
  readonly ttlMs: number;
  /** Monotonic: when it was last seen to be renewed, or when it began to be watched. */
  readonly since: number;
  /** A renewal was seen since it began to be watched. */
  readonly isProven: boolean;
}

export interface LeaseWatchOptions {
  readonly clock: Clock;
  /** A holder that was late has renewed: time to look at its pool. */
  readonly onReturn: (pool: string) => void;
}

export class LeaseWatch {
  readonly #clock: Clock;
  readonly #onReturn: (pool: string) => void;
  /** By pool, then by holder. */
  readonly #pools = new Map<string, Map<string, Entry>>();
  /** Renewals that are being committed, by pool and holder. */
  readonly #asking = new Map<string, number>();
  #lookMs = LONGEST_LOOK_MS;
  #lookedAt = 0;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor({ clock, onReturn }: LeaseWatchOptions) {
    this.#clock = clock;
    this.#onReturn = onReturn;
  }

  /** For good: a look that ends later brings nothing back. */
  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#pools.clear();
  }

  /** What the store says now of all workloads of the pool; with `ttlMs` null nobody is judged. */
  observe(pool: string, workloads: readonly Workload[], ttlMs: number | null): void {
    this.#look();
    const held = ttlMs === null ? [] : workloads.filter(({ holder }) => holder !== null);
    if (held.length === 0 || ttlMs === null || this.#isStopped) return this.forget(pool);
    const before = this.#pools.get(pool);
    const after = new Map<string, Entry>();
    for (const workload of held) after.set(keyOf(workload), this.#seen(before?.get(keyOf(workload)), workload, ttlMs));
    this.#pools.set(pool, after);
    this.#lookMs = Math.min(this.#lookMs, ttlMs / LOOKS_PER_TTL);
    this.#schedule();
  }

  /** A renewal was committed here. Of a pool that nobody has observed yet it says nothing that its first observation does not say. */
  renewed(workload: Workload): void {
    this.#look();
    const entries = this.#pools.get(workload.pool);
    if (!entries) return;
    const former = entries.get(keyOf(workload));
    entries.set(keyOf(workload), { workload, ttlMs: workload.ttlMs, since: this.#clock.monotonic(), isProven: true });
    const isNews = former === undefined || former.workload.renewals === 0 || this.#elapsed(former) >= former.ttlMs || !former.isProven;
    if (isNews) this.#onReturn(workload.pool);
  }

  /** A renewal of this holder is being committed: until it is known to have failed, nobody may say that there was none. Returns what ends that. */
  asking(pool: string, instance: string): () => void {
    const key = `${pool} ${instance}`;
    this.#asking.set(key, (this.#asking.get(key) ?? 0) + 1);
    return () => {
      const left = (this.#asking.get(key) ?? 1) - 1;
      if (left > 0) this.#asking.set(key, left);
      else this.#asking.delete(key);
    };
  }

  /** Renewals may have been missed: everybody is watched anew, for a full TTL. */
  interrupted(): void {
    const now = this.#clock.monotonic();
    for (const entries of this.#pools.values())
      for (const [key, entry] of entries) entries.set(key, { ...entry, since: now, isProven: false });
  }

  get isWatching(): boolean {
    return this.#pools.size > 0;
  }

  /** It was not listened to either. */
  beginAnew(pool: string, instance: string): void {
    const entries = this.#pools.get(pool);
    const entry = entries?.get(instance);
    if (entry) entries?.set(instance, { ...entry, since: this.#clock.monotonic(), isProven: false });
  }

  forget(pool: string): void {
    this.#pools.delete(pool);
    this.#schedule();
  }

  /** Of the process that holds the lease under this incarnation; `none` for any other. */
  stateOf(pool: string, instance: string, incarnation: number): LeaseState {
    this.#look();
    const entry = this.#pools.get(pool)?.get(instance);
    if (entry?.workload.holder?.incarnation !== incarnation) return { state: "none" };
    const { ttlMs } = entry;
    const elapsedMs = this.#elapsed(entry);
    if (entry.workload.renewals === 0) return { state: "unasked", since: this.#clock.now() - Math.round(elapsedMs) };
    const at = (ms: number): Instant => this.#clock.now() + Math.ceil(ms - elapsedMs);
    if (elapsedMs < ttlMs) return { state: entry.isProven ? "renewed" : "unproven", lateAt: at(ttlMs) };
    if (this.#asking.has(`${pool} ${instance}`)) return { state: "unproven", lateAt: at(elapsedMs + ttlMs / LOOKS_PER_TTL) };
    if (elapsedMs < 2 * ttlMs) return { state: "late", since: at(ttlMs), expiresAt: at(2 * ttlMs) };
    return { state: "expired", since: at(ttlMs) };
  }

  #seen(former: Entry | undefined, workload: Workload, wantedMs: number): Entry {
    // Whoever was told a longer time keeps it until its next renewal, whoever judges it by then.
    const ttlMs = Math.max(workload.ttlMs, wantedMs);
    const now = this.#clock.monotonic();
    const isSameWriter = former !== undefined && former.workload.writerEpoch === workload.writerEpoch;
    if (!isSameWriter) return { workload, ttlMs, since: now, isProven: false };
    if (former.workload.renewals !== workload.renewals) return { workload, ttlMs, since: now, isProven: true };
    return { ...former, workload, ttlMs };
  }

  #elapsed({ since }: Entry): number {
    return this.#clock.monotonic() - since;
  }

  /** Every call passes here first: what was missed is known before anything is judged. */
  #look(): void {
    const now = this.#clock.monotonic();
    if (this.#pools.size > 0 && now - this.#lookedAt > 2 * this.#lookMs) this.interrupted();
    this.#lookedAt = now;
  }

  #schedule(): void {
    if (this.#pools.size === 0) {
      this.#timer?.cancel();
      this.#timer = undefined;
    } else if (this.#timer === undefined) {
      this.#lookedAt = this.#clock.monotonic();
      this.#timer = this.#clock.after(this.#lookMs, () => {
        this.#timer = undefined;
        this.#look();
        this.#schedule();
      });
    }
  }
}

/** One instance holds at most one lease: that of its own place. */
function keyOf({ holder }: Workload): string {
  return holder?.instance ?? "";
}
