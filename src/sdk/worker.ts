/**
 * An instance that takes its work from a queue: jobs into slots, one run each.
 *
 *   idle (not admitted) → taking (admitted) → finishing (drain) → closed
 *
 * 1. Jobs are taken as many as slots are free, while the instance is admitted, or where nobody admits it. From the drain on it takes nothing; what an
 *    earlier call still brings goes back untried. While such a call is under way the instance is not idle.
 * 2. A busy slot is an obligation: the instance is drained when its last job has ended and the queue was told.
 * 3. With a writer lease nothing is taken before it is held. Each job keeps the epoch under which it was taken, and the queue compares it.
 * 4. At its start it ends what a former life of it left running (child-home.ts).
 */
import type { RequestListener } from "node:http";
import type { Clock } from "../kernel/clock.ts";
import { describeError } from "../kernel/errors.ts";
import { systemClock } from "../kernel/system.ts";
import { defaultRoot, endLeftoverChildren, type Leftovers } from "./child-home.ts";
import { createInstance, type InstanceOptions, type RelevoInstance } from "./instance.ts";
import { type JobPolicy, type JobResult, type JobRules, JobRun, type RunJob } from "./job-run.ts";
import type { QueueSource, TakenJob, WriterStamp } from "./queue-source.ts";
import { DEFAULT_NO_PROGRESS_MS, DEFAULT_WAIT_MS } from "./run-child.ts";
import { SlotTable } from "./slots.ts";

export const DEFAULT_LEASE_MS = 30_000;
/** How long one call waits for a job. Short: a drain waits for it, because a call that is cut may have taken a job. */
export const DEFAULT_POLL_MS = 1_000;
const DEFAULT_LAND_MS = 60_000;
const RETRY_MS = 200;
const LONGEST_RETRY_MS = 5_000;
/** While it may not take anything it looks so often whether it may; an admission wakes it at once. */
const LOOK_EVERY_MS = 1_000;

export interface WorkerOptions extends Omit<InstanceOptions, "handler" | "slots"> {
  readonly queue: QueueSource;
  /** Jobs at once, 1 to 1000. */
  readonly slots: number;
  /** Runs one job. What it returns is its end; nothing means done, a throw means failed. It must end when its signal aborts. */
  readonly run: RunJob;
  /** Else the queue's own. */
  readonly flow?: string;
  readonly leaseMs?: number;
  readonly pollMs?: number;
  /** Without progress for so long a job is reaped; null: never. */
  readonly noProgressMs?: number | null;
  /** So long a child may wait for one thing that may never come. */
  readonly waitMs?: number | null;
  readonly onReaped?: JobPolicy;
  readonly onFailed?: JobPolicy;
  /** So long it is tried to tell the queue how a job ended. */
  readonly landMs?: number;
  /** Folders of children lie beneath it: the same one in each life of the worker, and no other container's. */
  readonly root?: string;
  readonly onJobEnd?: (job: TakenJob, result: JobResult) => void;
  /** The application's own requests; 404 without. */
  readonly handler?: RequestListener;
}

export interface WorkerCounts {
  readonly taken: number;
  /** Ends that were dropped, because another worker had the job. */
  readonly overtaken: number;
  /** Ends of which the queue could not be told. */
  readonly unheard: number;
  /** Jobs that came when nothing was to be begun any more. */
  readonly returnedUntried: number;
}

/** It serves and takes jobs once `start` is called. Throws `slots_invalid`. */
export function createWorker(options: WorkerOptions): Worker {
  return new Worker(options);
}

export class Worker {
  readonly instance: RelevoInstance;
  readonly slots: SlotTable;

  readonly #options: WorkerOptions;
  readonly #clock: Clock;
  readonly #queue: QueueSource;
  readonly #rules: JobRules;
  readonly #root: string;
  readonly #report: (sentence: string) => void;
  readonly #runs = new Set<JobRun>();
  readonly #stopping = new AbortController();
  readonly #counts = { taken: 0, overtaken: 0, unheard: 0, returnedUntried: 0 };
  /** The call for jobs that is under way. */
  #take: Promise<void> | null = null;
  #wake: () => void = () => undefined;
  readonly #endChildrenAtExit = (): void => {
    for (const run of this.#runs) run.killNow();
  };

  constructor(options: WorkerOptions) {
    const { queue, slots, run: _run, flow, handler, ...rest } = options;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#queue = queue;
    this.#root = options.root ?? defaultRoot();
    this.#report = options.report ?? ((sentence) => process.emitWarning(sentence, "RelevoWorker"));
    this.slots = new SlotTable({ total: slots, flow: flow ?? queue.flow, clock: this.#clock });
    this.slots.onChange(() => this.#wake());
    this.#rules = {
      leaseMs: options.leaseMs ?? DEFAULT_LEASE_MS,
      noProgressMs: options.noProgressMs === undefined ? DEFAULT_NO_PROGRESS_MS : options.noProgressMs,
      waitMs: options.waitMs === undefined ? DEFAULT_WAIT_MS : options.waitMs,
      onReaped: options.onReaped ?? "return",
      onFailed: options.onFailed ?? "return",
      landMs: options.landMs ?? DEFAULT_LAND_MS,
      root: this.#root,
    };
    this.instance = createInstance({
      ...rest,
      slots: this.slots,
      handler: handler ?? ((_request, response) => void response.writeHead(404).end()),
      onAdmit: async (call) => {
        await options.onAdmit?.(call);
        this.#wake();
      },
      onResume: async (call) => {
        await options.onResume?.(call);
        this.#wake();
      },
      onDrain: async (call) => {
        this.#wake();
        await options.onDrain?.(call);
      },
      onClose: async (call) => {
        this.#closeRuns();
        await options.onClose?.(call);
      },
    });
  }

  get counts(): WorkerCounts {
    return { ...this.#counts };
  }

  /** Ends leftovers, serves, and takes jobs from then on. */
  async start(): Promise<{ readonly host: string; readonly port: number; readonly leftovers: Leftovers }> {
    const leftovers = endLeftoverChildren(this.#root);
    const address = await this.instance.listen();
    process.once("exit", this.#endChildrenAtExit);
    void this.#takeJobs();
    return { ...address, leftovers };
  }

  /**
   * Takes nothing new from now on, finishes what it has, for `limitMs` at most, and then ends it and gives it back; no child is left when it settles. What is done
   * in this process and does not end when it is told to is waited for no longer than an end is tried to be told. For SIGTERM.
   */
  async stop(limitMs = 0): Promise<void> {
    if (this.instance.state !== "closed") await this.instance.perform("drain", "stop", null);
    await this.#finishWithin(limitMs);
    this.#stopping.abort();
    this.#wake();
    await this.instance.perform("close", "stop", null);
    await this.#finishWithin(this.#rules.landMs);
    await this.instance.stop();
    process.off("exit", this.#endChildrenAtExit);
  }

  async #finishWithin(limitMs: number): Promise<void> {
    const limit = new AbortController();
    const late = this.#clock.sleep(limitMs, limit.signal).catch(() => undefined);
    await Promise.race([late, this.#whenFinished()]);
    limit.abort();
  }

  async #whenFinished(): Promise<void> {
    await this.#take?.catch(() => undefined); // the loop tells of it
    await Promise.all([...this.#runs].map((run) => run.ended));
  }

  /** One loop for the whole life: a drain that was only a hint can be taken back. */
  async #takeJobs(): Promise<void> {
    for (let failures = 0; this.instance.state !== "closed" && !this.#stopping.signal.aborted; ) {
      if (!this.#mayTake()) {
        await this.#rest(LOOK_EVERY_MS);
        continue;
      }
      try {
        this.#take = this.#takeOnce();
        await this.#take;
        failures = 0;
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        if (failures === 0) this.#report(`No job can be taken: ${describeError(error)}`);
        await this.#rest(Math.min(RETRY_MS * 2 ** Math.min(failures++, 10), LONGEST_RETRY_MS));
      } finally {
        this.#take = null;
      }
    }
  }

  #mayTake(): boolean {
    return this.instance.takesNewWork && this.slots.free > 0 && (this.instance.writer.state === "none" || this.#stamp() !== null);
  }

  async #takeOnce(): Promise<void> {
    const { leaseMs, pollMs = DEFAULT_POLL_MS } = { ...this.#options, ...this.#rules };
    const stamp = this.#stamp();
    const max = this.slots.free;
    this.slots.setTaking(true);
    try {
      const jobs = await this.#queue.take({ worker: this.instance.name, max, leaseMs, waitMs: pollMs, stamp }, this.#stopping.signal);
      for (const job of jobs) {
        if (this.#mayTake()) this.#run(job, stamp);
        else await this.#giveBack(job, stamp);
      }
    } finally {
      this.slots.setTaking(false);
    }
  }

  #run(job: TakenJob, stamp: WriterStamp | null): void {
    this.#counts.taken++;
    const run = new JobRun({
      job,
      slot: this.slots.occupy(job.id),
      stamp,
      queue: this.#queue,
      clock: this.#clock,
      rules: this.#rules,
      run: this.#options.run,
      report: this.#report,
      onEnd: (result) => {
        if (result.landing !== "landed") this.#counts[result.landing]++;
        this.#options.onJobEnd?.(job, result);
      },
    });
    this.#runs.add(run);
    void run.ended.then(() => this.#runs.delete(run));
  }

  async #giveBack(job: TakenJob, stamp: WriterStamp | null): Promise<void> {
    this.#counts.returnedUntried++;
    try {
      await this.#queue.return(job, { reason: "the worker begins nothing new", dead: false, untried: true, stamp });
    } catch (error) {
      this.#report(`Job ${job.id} was not given back; its lease expires: ${describeError(error)}`);
    }
  }

  #stamp(): WriterStamp | null {
    const { writer } = this.instance;
    const [epoch, workload] = [writer.epoch(), writer.workload];
    return epoch === null || workload === null ? null : { workload, epoch };
  }

  /** Until something changed, at most so long. */
  async #rest(limitMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#clock.after(limitMs, resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  #closeRuns(): void {
    this.#wake();
    for (const run of this.#runs) run.close();
  }
}
