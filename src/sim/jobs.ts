/**
 * A modelled queue and the slots of modelled workers, for a pool with `scale`: jobs come at a rate that changes, each process that was admitted takes what its
 * slots hold, with the SDK's own table of slots, and a job that does no work is reaped from its parent's side. What the pool's signal answers is here too.
 */
import type { DemandAdapter } from "../demand/port.ts";
import type { DemandAdapters } from "../demand/registry.ts";
import type { Connection } from "../demand/connections.ts";
import type { Connections } from "../demand/availability.ts";
import type { Clock } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import { integerBetween, type Random } from "../kernel/random.ts";
import type { DemandReading, DemandTrouble } from "../model/demand.ts";
import type { Slots } from "../model/slots.ts";
import { type Slot, SlotTable } from "../sdk/slots.ts";
import type { EventLog } from "./event-log.ts";
import type { Observe, TrueJobs } from "./events.ts";
import type { InstanceProcess, Work } from "./instances.ts";
import { chance } from "./seeded.ts";

export const FLOW = "queue/captures";
const SLOTS = 2;
const TICK_MS = 250;
/** A job whose worker says nothing for so long waits again, for another one. */
const LEASE_MS = 10_000;
/** Without progress for so long a job is reaped (I22). */
export const REAPED_AFTER_MS = 12_000;
const MAX_ATTEMPTS = 3;
const RATES_PER_S = [0, 0.5, 1, 2.5] as const;
const RATE_LASTS_MS: readonly [number, number] = [8_000, 25_000];
const WORK_MS: readonly [number, number] = [500, 5_000];

interface Job {
  readonly id: string;
  readonly workMs: number;
  readonly madeAt: number;
  attempts: number;
  /** It never does anything, this time. */
  hangs: boolean;
}

interface Taken {
  readonly job: Job;
  readonly slot: Slot;
  readonly since: number;
  readonly work: Work;
  /** Told by its worker until then; null: the lease is over, and another one may have the job. */
  leaseUntil: number | null;
}

/** The slots of one process. */
interface Worker {
  readonly table: SlotTable;
  readonly taken: Set<Taken>;
  /** When it last ran: one that stood still looks after its children when it goes on. */
  ranAt: number;
}

/** What a signal that lies answers. */
export type Lie = Extract<DemandTrouble, "not_a_number" | "negative" | "infinite" | "stale" | "other_flow" | "unreachable" | "missing">;

export interface JobsOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: EventLog;
  readonly observe: Observe;
  /** `namespace/name` of the pool whose workers take them. */
  readonly pool: string;
  /**
   * Of that pool, all that run. `answers`: neither it nor its machine stands still or is cut off. `serves`: it takes work or finishes its
   * own, and the store knows it.
   */
  readonly workers: () => readonly { readonly process: InstanceProcess; readonly answers: boolean; readonly serves: boolean }[];
}

export class Jobs {
  readonly #options: JobsOptions;
  readonly #waiting: Job[] = [];
  readonly #tables = new Map<string, Worker>();
  readonly #done = new Set<string>();
  #lie: Lie | null = null;
  /** Of the jobs that are taken from now on. */
  hangingShare = 0;
  #made = 0;
  #rate = 0;
  #due = 0;
  #comes = true;
  /** Since when, without a break, more of the busy slots do nothing than the pool's policy lets pass. */
  #stuckSince: number | null = null;
  #lyingSince: number | null = null;
  #judge = { stuckAfterMs: Number.POSITIVE_INFINITY, share: 1 };

  constructor(options: JobsOptions) {
    this.#options = options;
  }

  start(): void {
    this.#changeRate();
    this.#tick();
  }

  /** No more jobs come; what is there is worked off. */
  end(): void {
    this.#comes = false;
    this.hangingShare = 0;
  }

  lies(lie: Lie | null): void {
    this.#lie = lie;
    this.#lyingSince = lie === null ? null : this.#options.clock.monotonic();
  }

  get left(): number {
    return this.#waiting.length + this.#taken().filter(({ leaseUntil }) => leaseUntil !== null).length;
  }

  get pool(): string {
    return this.#options.pool;
  }

  /** For checkers; how it stands is looked at with each tick. */
  truth(stuckAfterMs: number, share: number, isUnseen: boolean): TrueJobs {
    this.#judge = { stuckAfterMs, share };
    const now = this.#options.clock.monotonic();
    const sinceOf = (at: number | null): number => (at === null ? 0 : now - at);
    return {
      pool: this.pool,
      stuckForMs: sinceOf(this.#stuckSince),
      lyingForMs: sinceOf(this.#lyingSince),
      isUnseen,
      longestQuietMs: Math.max(0, ...this.#busyThatRun(now).map(({ slot }) => slot.quietMs())),
      leakedSlots: [...this.#tables.values()].reduce((sum, { table, taken }) => sum + table.busy - taken.size, 0),
    };
  }

  #busyThatServe(): readonly Taken[] {
    const serving = this.#options.workers().filter(({ answers, serves }) => answers && serves);
    return serving.flatMap(({ process }) => [...(this.#tables.get(process.bootId)?.taken ?? [])]);
  }

  #busyThatRun(now: number): readonly Taken[] {
    return [...this.#tables.values()].flatMap(({ taken, ranAt }) => (now - ranAt <= TICK_MS ? [...taken] : []));
  }

  #lookWhetherStuck(): void {
    const busy = this.#busyThatServe();
    const stuck = busy.filter(({ slot }) => slot.quietMs() >= this.#judge.stuckAfterMs).length;
    const isStuck = busy.length > 0 && stuck / busy.length > this.#judge.share;
    this.#stuckSince = isStuck ? (this.#stuckSince ?? this.#options.clock.monotonic()) : null;
  }

  slotsOf(process: InstanceProcess): Slots {
    return { bootId: process.bootId, ...this.#tableOf(process).table.view() };
  }

  /** What the production monitor reads demand through here. */
  adapters(): DemandAdapters {
    const adapter: DemandAdapter<"queue"> = {
      kind: "queue",
      needs: { infrastructure: "the modelled queue", permissions: [] },
      flowOf: ({ queue }) => `queue/${queue}`,
      open: () => ({ read: async () => this.#read(), close: async () => {} }),
    };
    return { queue: adapter };
  }

  connections(): Connections {
    const connection: Connection = { name: "jobs", kind: "queue", url: "http://queue.invalid", token: "none" };
    return { find: (name) => (name === "jobs" ? connection : undefined) };
  }

  #read(): DemandReading {
    const { clock } = this.#options;
    const lie = this.#lie;
    if (lie === "unreachable" || lie === "missing")
      throw new RelevoError(`demand_${lie}`, "the modelled queue does not say", { class: "retryable" });
    const now = clock.now();
    const oldest = this.#waiting[0];
    const truth: DemandReading = {
      backlog: this.#waiting.length,
      inFlight: this.left - this.#waiting.length,
      oldestAgeMs: oldest === undefined ? null : clock.monotonic() - oldest.madeAt,
      flow: FLOW,
      valueAt: now,
      sourceNow: now,
    };
    if (lie === null) return truth;
    return {
      ...truth,
      backlog: { not_a_number: Number.NaN, negative: -1, infinite: Number.POSITIVE_INFINITY, stale: 1_000, other_flow: 1_000 }[lie],
      flow: lie === "other_flow" ? "queue/sibling" : FLOW,
      valueAt: lie === "stale" ? now - 600_000 : now,
    };
  }

  #changeRate(): void {
    const { clock, random } = this.#options;
    this.#rate = RATES_PER_S[integerBetween(random, 0, RATES_PER_S.length - 1)] ?? 0;
    clock.after(integerBetween(random, ...RATE_LASTS_MS), () => this.#changeRate());
  }

  #tick(): void {
    if (this.#comes) this.#arrive();
    this.#endLeases();
    for (const { process, answers } of this.#options.workers()) if (answers) this.#workIn(process);
    this.#forgetEnded();
    this.#lookWhetherStuck();
    this.#options.clock.after(TICK_MS, () => this.#tick());
  }

  #arrive(): void {
    const { clock, random } = this.#options;
    for (this.#due += (this.#rate * TICK_MS) / 1_000; this.#due >= 1; this.#due -= 1) {
      const workMs = integerBetween(random, ...WORK_MS);
      this.#waiting.push({ id: `job-${++this.#made}`, workMs, madeAt: clock.monotonic(), attempts: 0, hangs: false });
    }
  }

  #workIn(process: InstanceProcess): void {
    const { clock } = this.#options;
    const worker = this.#tableOf(process);
    const { table, taken } = worker;
    const now = clock.monotonic();
    worker.ranAt = now;
    for (const each of [...taken]) {
      if (each.leaseUntil !== null) each.leaseUntil = now + LEASE_MS;
      if (!each.job.hangs) each.slot.advance(TICK_MS);
      if (!each.job.hangs && now - each.since >= each.job.workMs) this.#finish(process, each, "done");
      else if (each.slot.quietMs() >= REAPED_AFTER_MS) this.#finish(process, each, "reaped");
    }
    const takes = process.state === "admitted" && !process.isSick;
    while (takes && table.free > 0 && this.#waiting.length > 0) this.#take(process, table, taken);
  }

  #take(process: InstanceProcess, table: SlotTable, taken: Set<Taken>): void {
    const { clock, random } = this.#options;
    const job = this.#waiting.shift();
    if (job === undefined) return;
    job.attempts += 1;
    job.hangs = chance(random, this.hangingShare);
    const work: Work = { kind: "request", lost: () => {} };
    process.work.add(work);
    const now = clock.monotonic();
    taken.add({ job, slot: table.occupy(job.id), since: now, work, leaseUntil: now + LEASE_MS });
  }

  /** What was overtaken counts for nothing: its lease is another's. */
  #finish(process: InstanceProcess, each: Taken, outcome: "done" | "reaped"): void {
    const { log, observe, pool } = this.#options;
    this.#tables.get(process.bootId)?.taken.delete(each);
    process.work.delete(each.work);
    each.slot.release(each.leaseUntil === null ? null : outcome);
    if (each.leaseUntil === null) return;
    if (outcome === "reaped" && each.job.attempts < MAX_ATTEMPTS) {
      log.add(`${each.job.id} is reaped in ${process.podName}`);
      this.#waiting.push(each.job);
      return;
    }
    if (this.#done.has(each.job.id)) observe({ type: "job_ended_again", pool, job: each.job.id });
    this.#done.add(each.job.id);
  }

  #endLeases(): void {
    const now = this.#options.clock.monotonic();
    for (const each of this.#taken()) {
      if (each.leaseUntil === null || each.leaseUntil > now) continue;
      each.leaseUntil = null;
      this.#waiting.push({ ...each.job });
    }
  }

  #forgetEnded(): void {
    const running = new Set(this.#options.workers().map(({ process }) => process.bootId));
    for (const [bootId, { taken }] of this.#tables)
      if (!running.has(bootId) && [...taken].every(({ leaseUntil }) => leaseUntil === null)) this.#tables.delete(bootId);
  }

  #tableOf({ bootId }: InstanceProcess): Worker {
    const known = this.#tables.get(bootId);
    if (known !== undefined) return known;
    const { clock } = this.#options;
    const made: Worker = { table: new SlotTable({ total: SLOTS, flow: FLOW, clock }), taken: new Set(), ranAt: clock.monotonic() };
    this.#tables.set(bootId, made);
    return made;
  }

  #taken(): readonly Taken[] {
    return [...this.#tables.values()].flatMap(({ taken }) => [...taken]);
  }
}
