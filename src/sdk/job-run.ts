/**
 * One job in one slot, from its lease to its end.
 *
 *   working → ended (the job's own end, or reaped for want of progress) → landed (told to the queue) | overtaken (another worker has the job)
 *
 * 1. The lease is extended while work is done: quiet for longer than `noProgressMs`, it is left to expire, and what was started is ended.
 * 2. The slot is free when the end is told, or when it is known that nobody wants to hear it: not before, so that a job is never in two states.
 * 3. What the queue refuses because another worker has the job is dropped and counted; it is never written anywhere else.
 */
import type { Clock, Timer } from "../kernel/clock.ts";
import { describeError, isRetryable, RelevoError } from "../kernel/errors.ts";
import type { JobOutcome } from "../model/slots.ts";
import type { QueueSource, TakenJob, WriterStamp } from "./queue-source.ts";
import { type ChildEnd, type ChildOptions, DEFAULT_NO_PROGRESS_MS, type RunningChild, runChild } from "./run-child.ts";
import type { Slot } from "./slots.ts";

const RETRY_MS = 250;
const LONGEST_RETRY_MS = 5_000;
const MAX_REASON = 500;

/** How a job ended, by the word of whoever ran it. */
export interface JobEnd {
  readonly outcome: JobOutcome;
  /** One sentence, where it was not done. */
  readonly reason?: string;
  /** JSON; goes with the job to the queue. */
  readonly result?: unknown;
}

/** What is done with a job that was not done: `return` it (the queue gives up after its own number of attempts), put it away as `dead`, or `complete` it as what it is. */
export type JobPolicy = "return" | "dead" | "complete";

export interface JobContext {
  readonly slot: number;
  /** Aborts when the job is not to be worked on any more: its lease is lost, it did nothing for too long, or the worker closes. */
  readonly signal: AbortSignal;
  /** Of the pool's writer lease, as it was when the job was taken; null: the pool has none. Goes with everything that the job writes. */
  readonly stamp: WriterStamp | null;
  /** Work was done. */
  progress(amount?: number): void;
  /** A child whose progress is the job's; it ends with the job at the latest. */
  runChild(command: string, args?: readonly string[], options?: ChildOptions): RunningChild;
}

export type RunJob = (job: TakenJob, context: JobContext) => Promise<JobEnd | void> | JobEnd | void;

export interface JobRules {
  readonly leaseMs: number;
  readonly noProgressMs: number | null;
  readonly waitMs: number | null;
  readonly onReaped: JobPolicy;
  readonly onFailed: JobPolicy;
  /** So long it is tried to tell the queue how a job ended. */
  readonly landMs: number;
  readonly root: string | undefined;
}

export interface JobParts {
  readonly job: TakenJob;
  readonly slot: Slot;
  readonly stamp: WriterStamp | null;
  readonly queue: QueueSource;
  readonly clock: Clock;
  readonly rules: JobRules;
  readonly run: RunJob;
  readonly report: (sentence: string) => void;
  /** Called before its slot is free. */
  readonly onEnd: (result: JobResult) => void;
}

/** `overtaken`: the queue says that another has the job. `unheard`: the queue could not be told; the lease expires by itself. */
export type Landing = "landed" | "overtaken" | "unheard";

export interface JobResult {
  readonly end: JobEnd;
  readonly landing: Landing;
}

/** A child's end as a job's. */
export function endOfChild(end: ChildEnd, result?: unknown): JobEnd {
  const outcome = end.kind === "exited" ? "done" : end.kind === "failed" ? "failed" : "reaped";
  return { outcome, reason: end.sentence, ...(result === undefined ? {} : { result }) };
}

/** Why a job's signal aborts. */
class Stopped extends Error {
  readonly why: "overtaken" | "quiet" | "closing";

  constructor(why: Stopped["why"], sentence: string) {
    super(sentence);
    this.name = "Stopped";
    this.why = why;
  }
}

export class JobRun {
  /** Never rejects; settles when the slot is free. */
  readonly ended: Promise<JobResult>;

  readonly #parts: JobParts;
  readonly #clock: Clock;
  readonly #stop = new AbortController();
  readonly #children = new Set<RunningChild>();
  #stopped: Stopped | null = null;
  #isOvertaken = false;
  #isLanding = false;
  #isOver = false;
  #timer: Timer | null = null;

  constructor(parts: JobParts) {
    this.#parts = parts;
    this.#clock = parts.clock;
    this.ended = this.#work();
  }

  get job(): TakenJob {
    return this.#parts.job;
  }

  /** Ends what it started; the job goes back as if it had not been tried. */
  close(): void {
    this.#halt(new Stopped("closing", "The worker closes."));
  }

  /** For a process that exits at this moment: nothing of it works on. */
  killNow(): void {
    for (const child of this.#children) child.killNow();
  }

  async #work(): Promise<JobResult> {
    this.#extendLater();
    const end = await this.#run();
    // Whatever it left running must not work on behind its back.
    await Promise.all([...this.#children].map((child) => child.end("Its job is over.")));
    this.#isLanding = true;
    const landing = await this.#land(end);
    this.#isOver = true;
    this.#timer?.cancel();
    this.#parts.onEnd({ end, landing });
    this.#parts.slot.release(landing === "overtaken" || this.#stopped?.why === "closing" ? null : end.outcome);
    return { end, landing };
  }

  async #run(): Promise<JobEnd> {
    const { job, slot, stamp, run } = this.#parts;
    const context: JobContext = {
      slot: slot.index,
      signal: this.#stop.signal,
      stamp,
      progress: (amount) => slot.advance(amount),
      runChild: (command, args, options) => this.#startChild(command, args ?? [], options ?? {}),
    };
    try {
      const end = (await run(job, context)) ?? { outcome: "done" as const };
      return this.#stopped?.why === "quiet" && end.outcome !== "done" ? { outcome: "reaped", reason: this.#stopped.message } : end;
    } catch (error) {
      if (this.#stopped?.why === "quiet") return { outcome: "reaped", reason: this.#stopped.message };
      return { outcome: "failed", reason: describeError(error) };
    }
  }

  #startChild(command: string, args: readonly string[], options: ChildOptions): RunningChild {
    const { rules, slot } = this.#parts;
    const child = runChild(command, args, {
      noProgressMs: rules.noProgressMs,
      waitMs: rules.waitMs,
      clock: this.#clock,
      ...(rules.root === undefined ? {} : { root: rules.root }),
      ...options,
      signal: options.signal === undefined ? this.#stop.signal : AbortSignal.any([options.signal, this.#stop.signal]),
      onProgress: (amount) => {
        slot.advance(amount);
        options.onProgress?.(amount);
      },
    });
    this.#children.add(child);
    void child.ended.then(() => this.#children.delete(child));
    return child;
  }

  /** A child reaps itself by its own bounds; this is for what is done in this process, and a little later. */
  #isQuiet(): boolean {
    const { slot, rules } = this.#parts;
    return this.#children.size === 0 && rules.noProgressMs !== null && slot.quietMs() > rules.noProgressMs;
  }

  #extendLater(): void {
    this.#timer = this.#clock.after(this.#parts.rules.leaseMs / 3, () => void this.#extend());
  }

  async #extend(): Promise<void> {
    const { queue, job, rules, stamp, slot, report } = this.#parts;
    if (this.#isQuiet()) {
      this.#halt(
        new Stopped(
          "quiet",
          `It did no work for ${Math.round(slot.quietMs())} ms; ${rules.noProgressMs ?? DEFAULT_NO_PROGRESS_MS} ms are allowed.`,
        ),
      );
      return; // the lease is left to expire: also when the function never comes back another worker gets the job
    }
    try {
      await queue.extend(job, { leaseMs: rules.leaseMs, stamp });
    } catch (error) {
      // While its end is being told the answer to that says more: the lease is gone too once it was heard.
      if (isLost(error)) return this.#isLanding ? undefined : this.#overtaken(error);
      report(`The lease of job ${job.id} was not extended: ${describeError(error)}`);
    }
    if (!this.#isOver && !this.#isOvertaken) this.#extendLater();
  }

  #overtaken(error: unknown): void {
    this.#isOvertaken = true;
    this.#halt(new Stopped("overtaken", `Another worker has the job: ${describeError(error)}`));
  }

  #halt(why: Stopped): void {
    if (this.#stopped !== null) return;
    this.#stopped = why;
    this.#stop.abort(why);
  }

  async #land(end: JobEnd): Promise<Landing> {
    const { clock, rules, report, job } = this.#parts;
    const until = clock.monotonic() + rules.landMs;
    for (let delayMs = RETRY_MS; ; delayMs = Math.min(2 * delayMs, LONGEST_RETRY_MS)) {
      if (this.#isOvertaken) return this.#dropped(end);
      try {
        await this.#tell(end);
        return "landed";
      } catch (error) {
        if (isLost(error)) this.#overtaken(error);
        else if (!isRetryable(error) || clock.monotonic() + delayMs > until) {
          report(`The queue was not told that job ${job.id} ended (${end.outcome}): ${describeError(error)}`);
          return "unheard";
        } else await clock.sleep(delayMs);
      }
    }
  }

  #dropped(end: JobEnd): Landing {
    this.#parts.report(`The end of job ${this.job.id} (${end.outcome}) is dropped: ${this.#stopped?.message ?? "another worker has it"}`);
    return "overtaken";
  }

  async #tell(end: JobEnd): Promise<void> {
    const { queue, job, stamp, rules } = this.#parts;
    const reason = (end.reason ?? end.outcome).slice(0, MAX_REASON);
    if (this.#stopped?.why === "closing" && end.outcome !== "done" && end.outcome !== "nothing")
      return void (await queue.return(job, { reason: "the worker closed", dead: false, untried: true, stamp }));
    const policy = end.outcome === "reaped" ? rules.onReaped : end.outcome === "failed" ? rules.onFailed : "complete";
    if (policy !== "complete") return void (await queue.return(job, { reason, dead: policy === "dead", untried: false, stamp }));
    await queue.complete(job, { outcome: end.outcome, ...(end.result === undefined ? {} : { result: end.result }), stamp });
  }
}

/** Also a job that is not there any more, with its queue or without, is nobody's to end. */
const LOST = ["lease_lost", "stale_epoch", "job_missing", "queue_missing"];

function isLost(error: unknown): boolean {
  return error instanceof RelevoError && LOST.includes(error.code);
}
