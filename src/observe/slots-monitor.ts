/**
 * What the processes of worker pools say of their slots, and what is done per second. An adapter: it owns the timers and the calls; ages are the workers' own, so
 * that no clock is compared with another.
 *
 * 1. An answer counts for the process that was asked: another boot id is not taken for it.
 * 2. What a process had done before it was seen first is not counted: nobody saw when.
 * 3. Throughput is over the last minute, what is usual over the ten minutes before that one; without having watched so long there is none.
 */
import type { InstanceDriver } from "../drivers/port.ts";
import type { Clock, Timer } from "../kernel/clock.ts";
import type { InstanceSlots, JobOutcome, PoolSlots, Slots } from "../model/slots.ts";
import { JOB_OUTCOMES } from "../model/slots.ts";
import type { Watched } from "./health.ts";
import { ThroughputWindow } from "./throughput.ts";

/** Not more often than this, however often its health is asked for. */
const LEAST_EVERY_MS = 500;
/** Of all that are followed at most so many are asked in a second: beyond it each is asked less often. */
const MOST_PER_SECOND = 500;
/** An answer that is older, or three times as old as answers come, says nothing any more. */
const FORGET_AFTER_MS = 10_000;
/** Of one that does not know the call. */
const SILENT_EVERY_MS = 5_000;

export interface SlotsMonitorParts {
  readonly driver: Pick<InstanceDriver, "slots">;
  readonly clock: Clock;
  /** Slots became stuck or free of it, one has nothing to do any more, or takes from another flow. */
  readonly onChange: (pool: string) => void;
  /** Jobs that ended since the last answer of the same process. */
  readonly onJobs?: (pool: string, outcome: JobOutcome, count: number) => void;
}

/** Of a pool; which instances it has may change at each pass. */
interface PoolEntry {
  stuckAfterMs: number;
  readonly throughput: ThroughputWindow;
  /** Those that are followed. */
  readonly instances: Set<string>;
}

interface Entry {
  watched: Watched;
  readonly pool: string;
  slots: Slots | null;
  /** A call came to an end, however. */
  isAsked: boolean;
  /** Monotonic, of the answer. */
  answeredAt: number;
  timer: Timer | undefined;
}

export class SlotsMonitor {
  readonly #parts: SlotsMonitorParts;
  readonly #pools = new Map<string, PoolEntry>();
  readonly #entries = new Map<string, Entry>();

  constructor(parts: SlotsMonitorParts) {
    this.#parts = parts;
  }

  /** Follows exactly these instances of the pool from now on. */
  follow(pool: string, watched: readonly Watched[], stuckAfterMs: number): void {
    const known = this.#pools.get(pool);
    if (known === undefined)
      this.#pools.set(pool, { stuckAfterMs, throughput: new ThroughputWindow(this.#parts.clock.monotonic()), instances: new Set() });
    else known.stuckAfterMs = stuckAfterMs;
    const wanted = new Map(watched.map((each) => [each.instance, each]));
    for (const instance of this.#pools.get(pool)?.instances ?? []) if (!wanted.has(instance)) this.#drop(instance);
    for (const each of watched) this.#keep(pool, each);
  }

  forget(pool: string): void {
    const known = this.#pools.get(pool);
    this.#pools.delete(pool);
    for (const instance of known?.instances ?? []) this.#drop(instance);
  }

  stop(): void {
    for (const pool of [...this.#pools.keys()]) this.forget(pool);
  }

  /** Null: it does not say, or has not answered lately. */
  slotsOf(instance: string, incarnation: number): InstanceSlots | null {
    const entry = this.#entries.get(instance);
    const pool = entry && this.#pools.get(entry.pool);
    if (entry === undefined || pool === undefined || entry.watched.incarnation !== incarnation) return null;
    const agoMs = this.#parts.clock.monotonic() - entry.answeredAt;
    const forgetAfterMs = Math.max(FORGET_AFTER_MS, 3 * this.#everyMs(entry.watched));
    return entry.slots === null || agoMs > forgetAfterMs ? null : viewOf(entry.slots, pool.stuckAfterMs, agoMs);
  }

  /** Of one of which `slotsOf` knows nothing, whether it may yet say something: nobody has asked it yet, or it did say and does not answer now. */
  isAwaited(pool: string, instance: string, incarnation: number): boolean {
    if (!this.#pools.has(pool)) return true;
    const entry = this.#entries.get(instance);
    return entry?.watched.incarnation === incarnation && (!entry.isAsked || entry.slots !== null);
  }

  /** Of those that take work, and of those that only finish theirs; null when none of them says anything. */
  together(pool: string, serving: readonly InstanceSlots[], finishing: readonly InstanceSlots[]): PoolSlots | null {
    const entry = this.#pools.get(pool);
    if (entry === undefined || serving.length + finishing.length === 0) return null;
    const sum = (each: readonly InstanceSlots[], of: (slots: InstanceSlots) => number) => each.reduce((total, one) => total + of(one), 0);
    const all = [...serving, ...finishing];
    return {
      instances: serving.length,
      total: sum(serving, ({ total }) => total) + sum(finishing, ({ progressing, stuck }) => progressing + stuck),
      free: sum(serving, ({ free }) => free),
      progressing: sum(all, ({ progressing }) => progressing),
      stuck: sum(all, ({ stuck }) => stuck),
      ...entry.throughput.figures(this.#parts.clock.monotonic()),
    };
  }

  #keep(pool: string, watched: Watched): void {
    const entry = this.#entries.get(watched.instance);
    if (entry?.watched.incarnation === watched.incarnation && entry.pool === pool) {
      entry.watched = watched;
      return;
    }
    if (entry !== undefined) this.#drop(watched.instance);
    const fresh: Entry = { watched, pool, slots: null, isAsked: false, answeredAt: 0, timer: undefined };
    this.#entries.set(watched.instance, fresh);
    this.#pools.get(pool)?.instances.add(watched.instance);
    this.#schedule(fresh, 0);
  }

  #drop(instance: string): void {
    const entry = this.#entries.get(instance);
    entry?.timer?.cancel();
    this.#entries.delete(instance);
    if (entry !== undefined) this.#pools.get(entry.pool)?.instances.delete(instance);
  }

  #schedule(entry: Entry, delayMs: number): void {
    entry.timer = this.#parts.clock.after(delayMs, () => void this.#look(entry));
  }

  async #look(entry: Entry): Promise<void> {
    const { driver, clock } = this.#parts;
    const { target, instance } = entry.watched;
    // Who does not answer is noticed by its health.
    const answer = await driver.slots(target).catch(() => undefined);
    if (this.#entries.get(instance) !== entry) return;
    const isItself = answer !== undefined && answer !== null && (target.bootId === null || answer.bootId === target.bootId);
    const isFirst = !entry.isAsked;
    entry.isAsked = true;
    if (isItself) this.#take(entry, answer, clock.monotonic());
    // What it is about to finish is as known as it will be.
    else if (isFirst && entry.watched.isDraining) this.#parts.onChange(entry.pool);
    this.#schedule(entry, Math.max(this.#everyMs(entry.watched), answer === null ? SILENT_EVERY_MS : 0));
  }

  #everyMs({ everyMs }: Watched): number {
    return Math.max(everyMs, LEAST_EVERY_MS, (this.#entries.size / MOST_PER_SECOND) * 1_000);
  }

  #take(entry: Entry, slots: Slots, at: number): void {
    const pool = this.#pools.get(entry.pool);
    if (pool === undefined) return;
    const before = entry.slots;
    const stuckBefore = before === null ? null : viewOf(before, pool.stuckAfterMs, 0);
    if (before?.bootId === slots.bootId) this.#count(entry, before, slots, at);
    entry.slots = slots;
    entry.answeredAt = at;
    const now = viewOf(slots, pool.stuckAfterMs, 0);
    const isNews =
      stuckBefore === null ||
      stuckBefore.stuck !== now.stuck ||
      stuckBefore.flow !== now.flow ||
      stuckBefore.total !== now.total ||
      (stuckBefore.free === stuckBefore.total) !== (now.free === now.total);
    if (isNews) this.#parts.onChange(entry.pool);
  }

  #count(entry: Entry, before: Slots, { outcomes, busy }: Slots, at: number): void {
    const since = (outcome: JobOutcome) => Math.max(0, outcomes[outcome] - before.outcomes[outcome]);
    const busySlotMs = (at - entry.answeredAt) * ((before.busy.length + busy.length) / 2);
    this.#pools.get(entry.pool)?.throughput.add(entry.answeredAt, at, since("done") + since("nothing"), busySlotMs);
    for (const outcome of JOB_OUTCOMES) {
      const count = since(outcome);
      if (count > 0) this.#parts.onJobs?.(entry.pool, outcome, count);
    }
  }
}

/** Since the answer nobody has seen work done: until the next one a slot is taken for as quiet as it was, and so much longer. */
function viewOf({ total, busy, flow }: Slots, stuckAfterMs: number, agoMs: number): InstanceSlots {
  const quiet = busy.map(({ quietMs }) => quietMs + agoMs).filter((quietMs) => quietMs >= stuckAfterMs);
  return {
    total,
    // A worker that was told of fewer slots may still have more jobs.
    free: Math.max(0, total - busy.length),
    progressing: busy.length - quiet.length,
    stuck: quiet.length,
    longestQuietMs: quiet.length === 0 ? 0 : Math.max(...quiet),
    flow,
  };
}
