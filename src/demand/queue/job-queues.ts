/**
 * The jobs and what may become of them. A job waits → is taken under a lease → finished; or it is given back, or its lease runs out, and it waits again in its
 * old place; after `maxAttempts`, or by a worker's word, it is dead. A finished or dead job never changes again.
 *
 * 1. Whoever acts on a job names the lease of its attempt: a former attempt's can do nothing (`lease_lost`), so a job completes once.
 * 2. Of each workload the highest epoch is kept, over all queues: a worker that was replaced can neither take nor complete (`stale_epoch`, S10).
 * 3. What is answered is on the disk. Listeners are told after the commit.
 * 4. The numbers of a queue change in the transaction that changes its jobs.
 */
import type { DatabaseSync } from "node:sqlite";
import type { Clock, Instant } from "../../kernel/clock.ts";
import { compareEpochs, type Epoch, epoch, epochParts } from "../../kernel/epoch.ts";
import { RelevoError } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import { SteadyClock } from "../../kernel/steady-clock.ts";
import type {
  CompleteOptions,
  DeadJob,
  JobOutcome,
  NewJob,
  QueueCounts,
  ReturnOptions,
  TaggedCounts,
  TakenJob,
  TakeOptions,
  WriterStamp,
} from "../../sdk/queue-client.ts";
import { DEAD, FINISHED, type JobRow, type JobRows, prepareRows, type QueueRow, TAKEN, WAITING } from "./job-rows.ts";
import { DEFAULT_MAX_ATTEMPTS, type QueueLimits } from "./limits.ts";
import { QueueTurns } from "./turns.ts";

/** Rows that one turn of the sweeper touches, so that nobody waits long for it. */
const SWEEP_ROWS = 2_000;

/** Ids are printable: this comes after all that begin with a prefix. */
const AFTER_ALL = "\x7f";
const STATE_NAMES = { [WAITING]: "waiting", [TAKEN]: "taken", [DEAD]: "dead" } as const;

export interface JobQueuesParts {
  readonly database: DatabaseSync;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly limits: QueueLimits;
  /** Names of queues whose numbers changed, or that are gone; after each commit. */
  readonly onChanged: (queues: ReadonlySet<string>) => void;
}

export class JobQueues {
  readonly #rows: JobRows;
  readonly #database: DatabaseSync;
  readonly #clock: SteadyClock;
  readonly #ids: Ids;
  readonly #limits: QueueLimits;
  readonly #turns: QueueTurns;
  #touched = new Set<string>();
  #finished: number;

  constructor({ database, clock, ids, limits, onChanged }: JobQueuesParts) {
    this.#rows = prepareRows(database);
    this.#database = database;
    this.#clock = new SteadyClock(clock);
    this.#ids = ids;
    this.#limits = limits;
    this.#finished = this.#rows.finishedCount()?.count ?? 0;
    this.#turns = new QueueTurns(database, () => {
      if (this.#touched.size === 0) return;
      const touched = this.#touched;
      this.#touched = new Set();
      onChanged(touched);
    });
  }

  /** What was taken when the last process ended could not be renewed meanwhile. */
  async recover(): Promise<void> {
    const newest = this.#rows.newest();
    if (newest !== undefined) this.#clock.notBefore(newest.enqueued_at);
    const until = this.#clock.now() + this.#limits.restartGraceMs;
    await this.#turns.write(() => this.#rows.lengthen(until, until));
  }

  put(name: string, maxAttempts: number | undefined): Promise<QueueCounts> {
    return this.#turns.write(() => {
      const queue = this.#rows.queue(name) ?? this.#create(name, maxAttempts);
      if (maxAttempts !== undefined) this.#rows.setMaxAttempts(maxAttempts, queue.key);
      return this.#countsOf(this.#queue(name));
    });
  }

  /** A queue comes to be with its first job. Of an id that it knows already the job is kept that came first. */
  add(name: string, jobs: readonly NewJob[]): Promise<readonly string[]> {
    return this.#turns.write(() => {
      const queue = this.#rows.queue(name) ?? this.#create(name, undefined);
      const { waiting, taken, dead } = queue;
      if (waiting + taken + dead + jobs.length > this.#limits.jobsPerQueue)
        throw new RelevoError("queue_full", `the queue ${name} is full`, {
          class: "retryable",
          found: waiting + taken + dead,
          allowed: `${this.#limits.jobsPerQueue} jobs that wait, are taken or dead`,
        });
      const now = this.#clock.now();
      const ids: string[] = [];
      let added = 0;
      for (const { id = this.#ids.next("job"), payload } of jobs) {
        added += this.#rows.insertJob(queue.key, id, JSON.stringify(payload ?? null), now);
        ids.push(id);
      }
      this.#change(queue, { waiting: added });
      return ids;
    });
  }

  take(name: string, { worker, max, leaseMs, stamp }: Omit<TakeOptions, "waitMs">): Promise<readonly TakenJob[]> {
    return this.#turns.write(() => {
      this.#admit(stamp);
      const queue = this.#queue(name);
      const until = this.#clock.now() + leaseMs;
      const taken = this.#rows.nextJobs(queue.key, max).map(({ seq, id, payload, attempt }) => {
        const lease = this.#ids.next("lease");
        this.#rows.take(worker, lease, until, seq);
        return { id, payload: JSON.parse(payload) as unknown, attempt: attempt + 1, lease };
      });
      this.#change(queue, { waiting: -taken.length, taken: taken.length });
      return taken;
    });
  }

  extend(name: string, id: string, lease: string, leaseMs: number, stamp: WriterStamp | undefined): Promise<{ readonly until: Instant }> {
    return this.#turns.write(() => {
      this.#admit(stamp);
      const { seq } = this.#held(this.#queue(name), id, lease);
      const until = this.#clock.now() + leaseMs;
      this.#rows.extend(until, seq);
      return { until };
    });
  }

  complete(name: string, id: string, { lease, outcome, result, stamp }: CompleteOptions): Promise<void> {
    return this.#turns.write(() => {
      this.#admit(stamp);
      const queue = this.#queue(name);
      const job = this.#rows.job(queue.key, id);
      // The answer to the first one was lost.
      if (job?.state === FINISHED && job.lease === lease && job.outcome === outcome) return;
      const { seq } = this.#held(queue, id, lease);
      this.#rows.finish(outcome, result === undefined ? null : JSON.stringify(result), this.#clock.now(), seq);
      this.#finished++;
      this.#change(queue, { taken: -1, [outcome]: 1 });
    });
  }

  return(name: string, id: string, { lease, reason, dead, untried, stamp }: ReturnOptions): Promise<{ state: "waiting" | "dead" }> {
    return this.#turns.write(() => {
      this.#admit(stamp);
      const queue = this.#queue(name);
      const job = this.#held(queue, id, lease);
      const attempts = job.attempt - (untried === true ? 1 : 0);
      return { state: this.#putBack(queue, job, attempts, dead === true, reason) };
    });
  }

  /** With all that is in it: who holds a job of it has lost it. */
  delete(name: string): Promise<void> {
    return this.#turns.write(() => {
      this.#rows.dropQueue(this.#queue(name).key);
      this.#touched.add(name);
    });
  }

  /** Throws `queue_missing`. */
  counts(name: string): QueueCounts {
    return this.#countsOf(this.#queue(name));
  }

  has(name: string): boolean {
    return this.#rows.queue(name) !== undefined;
  }

  /** Whether a taker need not wait: 0 also when there is no such queue. */
  waiting(name: string): number {
    return this.#rows.queue(name)?.waiting ?? 0;
  }

  all(): readonly QueueCounts[] {
    return this.#rows.queues().map((row) => this.#countsOf(row));
  }

  dead(name: string, limit: number): readonly DeadJob[] {
    return this.#rows.deadJobs(this.#queue(name).key, limit).map(({ id, payload, attempt, reason, ended_at: diedAt }) => ({
      id,
      payload: JSON.parse(payload) as unknown,
      attempts: attempt,
      reason: reason ?? "",
      diedAt: diedAt ?? 0,
    }));
  }

  /** Of the jobs whose ids begin so; of finished ones as many as are still known. */
  tagged(name: string, prefix: string): TaggedCounts {
    const counts = { waiting: 0, taken: 0, dead: 0, done: 0, nothing: 0, failed: 0, reaped: 0 };
    let oldestAgeMs: number | null = null;
    for (const { state, outcome, count, oldest } of this.#rows.tagged(this.#queue(name).key, prefix, prefix + AFTER_ALL)) {
      if (state === WAITING) oldestAgeMs = Math.max(0, this.#clock.now() - oldest);
      counts[state === FINISHED ? (outcome as JobOutcome) : STATE_NAMES[state as keyof typeof STATE_NAMES]] += count;
    }
    return { ...counts, oldestAgeMs };
  }

  /** Those that wait or are dead, some thousands at a time. */
  removeTagged(name: string, prefix: string): Promise<number> {
    return this.#turns.write(() => {
      const queue = this.#queue(name);
      const remove = (state: number): number => this.#rows.removeTagged(queue.key, prefix, prefix + AFTER_ALL, state, SWEEP_ROWS);
      const waiting = remove(WAITING);
      const dead = remove(DEAD);
      this.#change(queue, { waiting: -waiting, dead: -dead });
      return waiting + dead;
    });
  }

  /** Leases that ran out, finished jobs that are old, and what is left of deleted queues. To be called again and again. */
  async sweep(): Promise<void> {
    const now = this.#clock.now();
    const isDue =
      this.#rows.expired(now, 1).length > 0 || this.#rows.droppedQueue() !== undefined || this.#finished > this.#limits.finishedJobs;
    if (isDue) await this.#turns.write(() => this.#sweep(now));
  }

  /** Apart from `sweep`, because that they are old is no matter of milliseconds. */
  async forgetOld(): Promise<void> {
    const before = this.#clock.now() - this.#limits.finishedForMs;
    await this.#turns.write(() => {
      this.#finished -= this.#rows.forgetFinishedBefore(before, SWEEP_ROWS);
    });
  }

  /** Why the last write failed; undefined when it did not. */
  get trouble(): RelevoError | undefined {
    return this.#turns.trouble;
  }

  /** Writes after a write that failed, as much as some jobs are: else nobody would know that there is room again until somebody dares. */
  async tryToWrite(): Promise<void> {
    if (this.trouble === undefined) return;
    await this.#turns.write(() => {
      this.#database.exec("CREATE TABLE IF NOT EXISTS trial (filling BLOB); INSERT INTO trial VALUES (zeroblob(65536))");
    });
    await this.#turns.write(() => this.#database.exec("DROP TABLE IF EXISTS trial"));
  }

  close(): Promise<void> {
    return this.#turns.close();
  }

  #sweep(now: Instant): void {
    for (const job of this.#rows.expired(now, SWEEP_ROWS)) {
      const queue = this.#rows.queueByKey(job.queue);
      if (queue !== undefined) this.#putBack(queue, job, job.attempt, false, `the lease of ${job.worker ?? "its worker"} ran out`);
    }
    const dropped = this.#rows.droppedQueue();
    if (dropped !== undefined && this.#rows.deleteJobsOf(dropped.key, SWEEP_ROWS) === 0) this.#rows.deleteQueue(dropped.key);
    const surplus = this.#finished - this.#limits.finishedJobs;
    if (surplus > 0) this.#finished -= this.#rows.forgetFinishedBefore(now + 1, Math.min(surplus, SWEEP_ROWS));
    // Those of a dropped queue were counted too: the number is a bound and no more.
    if (dropped !== undefined) this.#finished = this.#rows.finishedCount()?.count ?? 0;
  }

  #putBack(queue: QueueRow, job: JobRow, attempts: number, isGivenUp: boolean, reason: string): "waiting" | "dead" {
    if (isGivenUp || attempts >= queue.max_attempts) {
      const why = isGivenUp ? reason : `${reason} (attempt ${attempts} of ${queue.max_attempts})`;
      this.#rows.kill(why, this.#clock.now(), job.seq);
      this.#change(queue, { taken: -1, dead: 1 });
      return "dead";
    }
    this.#rows.giveBack(attempts, reason, job.seq);
    this.#change(queue, { taken: -1, waiting: 1 });
    return "waiting";
  }

  #queue(name: string): QueueRow {
    const queue = this.#rows.queue(name);
    if (queue === undefined)
      throw new RelevoError("queue_missing", `there is no queue ${name}`, { todo: "it comes to be with PUT, or with its first job" });
    return queue;
  }

  #create(name: string, maxAttempts: number | undefined): QueueRow {
    if ((this.#rows.queueCount()?.count ?? 0) >= this.#limits.queues)
      throw new RelevoError("too_many_queues", "there are too many queues", { allowed: `${this.#limits.queues}` });
    // One that is made anew within the same millisecond is another one all the same.
    const createdAt = Math.max(this.#clock.now(), (this.#rows.lastCreated()?.at ?? 0) + 1);
    this.#rows.insertQueue(name, createdAt, maxAttempts ?? DEFAULT_MAX_ATTEMPTS);
    this.#touched.add(name);
    return this.#queue(name);
  }

  /** An expired lease that nobody noticed yet is as good as any: nobody else has the job. */
  #held(queue: QueueRow, id: string, lease: string): JobRow {
    const job = this.#rows.job(queue.key, id);
    if (job?.state === TAKEN && job.lease === lease) return job;
    throw new RelevoError("lease_lost", `the job ${id} is not held under this lease`, {
      class: "conflict",
      todo: "drop what was done for it: another attempt has it, or it is finished",
    });
  }

  #admit(stamp: WriterStamp | undefined): void {
    if (stamp === undefined) return;
    const known = this.#rows.writer(stamp.workload);
    const highest: Epoch | undefined = known === undefined ? undefined : epoch(known.era, known.counter);
    const order = highest === undefined ? 1 : compareEpochs(stamp.epoch, highest);
    if (order < 0)
      throw new RelevoError("stale_epoch", `another holder of ${stamp.workload} has come after this one`, {
        class: "conflict",
        found: stamp.epoch,
        allowed: `${highest} or later`,
        todo: "end: this worker was replaced",
      });
    if (order === 0) return;
    if (known === undefined && (this.#rows.writerCount()?.count ?? 0) >= this.#limits.writers)
      throw new RelevoError("too_many_writers", "too many workloads have written", { allowed: `${this.#limits.writers}` });
    const { era, counter } = epochParts(stamp.epoch);
    this.#rows.setWriter(stamp.workload, era, counter, this.#clock.now());
  }

  #change(queue: QueueRow, by: Parameters<JobRows["change"]>[1]): void {
    this.#rows.change(queue.key, by);
    if (queue.name !== null) this.#touched.add(queue.name);
  }

  #countsOf(row: QueueRow): QueueCounts {
    const { key, name, created_at: createdAt, max_attempts: maxAttempts, ...counters } = row;
    const now = this.#clock.now();
    const oldest = this.#rows.oldest(key)?.enqueued_at;
    return {
      queue: name ?? "",
      ...counters,
      oldestAgeMs: oldest === undefined ? null : Math.max(0, now - oldest),
      maxAttempts,
      now,
      createdAt,
    };
  }
}
