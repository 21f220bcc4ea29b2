/**
 * The only part that acts on the world.
 *
 * 1. A step is recorded, together with what must be true before its effect, and only then acts. A decision that cannot be recorded is dropped: the planner
 *    decides anew on a fresh look.
 * 2. Before every further attempt the pool's epoch and the step's guard are compared in the store, then the step's probe is asked: a step replayed equals
 *    the step once (I27), and one whose world moved on ends as superseded.
 * 3. Errors that can be tried again have no end of their own; attempts and the error are in the journal.
 * 4. Whatever cannot be known is left `unknown` for whoever takes over; what no probe can tell is held for an operator.
 * 5. Steps never wait for one another, but for kinds that say so (`after`); two tasks never work on one decision.
 */
import type { InstanceDriver } from "../drivers/port.ts";
import type { Clock } from "../kernel/clock.ts";
import { compareEpochs, type Epoch } from "../kernel/epoch.ts";
import { describeError, RelevoError } from "../kernel/errors.ts";
import type { Random } from "../kernel/random.ts";
import { isForbidden, type KubeApi } from "../kube/api.ts";
import { reason } from "../model/reasons.ts";
import type { StepDraft, StepRecord } from "../model/step.ts";
import type { Hold } from "../plan/decision.ts";
import type { Authority, Store } from "../store/port.ts";
import { isStoreConflict, Journal } from "./journal.ts";
import { STEP_KINDS, type StepRegistry } from "./registry.ts";
import { backoffMs, codeOf, CONFLICTS_AT_ONCE, cooldownMs, DOUBTS_MAX, RETRY_MAX_MS, verdictOf } from "./retry.ts";
import { Slots } from "./slots.ts";
import { baseOf, withAttempt } from "./step-id.ts";
import { type BoundStep, type LeaseIssuer, type Outcome, type StepPorts, superseded } from "./step-kind.ts";

/** Attempts of one pool under way at the same time; as many again of kinds that go first. */
export const STEPS_AT_ONCE_PER_POOL = 16;
/** Open steps of one pool, sleeping ones included; a decision beyond is dropped and made again later. */
export const TASKS_PER_POOL_MAX = 1_000;
/** After a decision could not be recorded, the planner is asked again not before this. */
export const RECORD_AGAIN_MS = 1_000;
/** After a decision came too late (what it began from has changed), the planner is asked again not before this. */
export const PLAN_AGAIN_MS = 100;
/** A first attempt that had to wait for longer than this since its record asks first whether the pool is still ours. */
export const CONFIRM_AFTER_MS = 1_000;
/** Of what a server says in a refusal. */
const REFUSAL_CHARS_MAX = 400;
/** How long `close` waits for attempts that are under way. */
export const CLOSE_WITHIN_MS = 5_000;
/** How long `leave` waits for attempts of one pool. */
export const LEAVE_WITHIN_MS = 2_000;

export interface StepLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface ExecutorOptions extends Pick<StepPorts, "nodeSeen"> {
  readonly store: Pick<Store, "commit" | "listSteps">;
  readonly kube: KubeApi;
  readonly driver: InstanceDriver;
  readonly leases?: LeaseIssuer;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: StepLog;
  /** A step ended, or was recorded together with a change, or a decision was dropped: time to plan again. */
  readonly onSettled: (pool: string) => void;
  readonly kinds?: StepRegistry;
}

export interface Executor {
  /**
   * Records the step and acts. Settles when the task is over, whatever became of it, and never rejects. Throws at once when the draft is none that this version
   * can act upon.
   */
  start(authority: Authority, draft: StepDraft): Promise<void>;
  /** Goes on with steps that somebody left `unknown`; answers why some are left alone. */
  resume(authority: Authority, openSteps: readonly StepRecord[]): readonly Hold[];
  /** Ids of steps and of decisions that are being recorded. */
  inFlight(pool: string): ReadonlySet<string>;
  /** Settles when each decision that was handed over so far is in the journal or dropped: what is read afterwards shows all that was decided (I5). */
  recorded(pool: string): Promise<void>;
  /**
   * The pool goes to another controller: nothing more is begun under this authority, and attempts that are under way are waited for, a bounded time. What has not
   * ended stays `unknown`, for the next owner to understand.
   */
  leave(authority: Authority): Promise<void>;
  /** Begins nothing new; waits a bounded time for attempts that are under way. What has not ended stays `unknown`. */
  close(): Promise<void>;
}

interface Task {
  /** The step's id without its attempt. */
  readonly base: string;
  readonly pool: string;
  readonly instance: string | null;
  readonly kind: string;
  id: string;
  authority: Authority;
  pause: AbortController | undefined;
  /** What the API server said when it last refused the step for want of a permission or of quota. */
  refusal: string | undefined;
  over: Promise<void>;
  readonly recorded: PromiseWithResolvers<void>;
}

/** Whether the planner is to look again. */
type Ending = "plan_again" | "quiet";

/** What became of the wish to record a decision: it is; it is not and will be decided anew after a while; it is done; an earlier attempt goes on. */
type Recording = "recorded" | { readonly againInMs: number } | "quiet" | { readonly open: StepRecord };

/** Of places: what goes first waits for none that the others hold. */
function lineOf(pool: string, isFirst: boolean): string {
  return `${pool} ${isFirst ? "first" : "others"}`;
}

/** The task ends here and leaves its step as it is. */
function stopped(why: string): RelevoError {
  return new RelevoError("step_left", `The step is left as it is: ${why}.`, { class: "cancelled" });
}

export function createExecutor(options: ExecutorOptions): Executor {
  return new StepExecutor(options);
}

class StepExecutor implements Executor {
  readonly #options: ExecutorOptions;
  readonly #kinds: StepRegistry;
  readonly #journal: Journal;
  readonly #tasks = new Map<string, Task>();
  /** By line. */
  readonly #slots = new Map<string, Slots>();
  /** By pool: the newest epoch under which nothing is begun any more. */
  readonly #left = new Map<string, Epoch>();
  #closed = false;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#kinds = options.kinds ?? STEP_KINDS;
    this.#journal = new Journal(options.store, options.clock);
  }

  start(authority: Authority, draft: StepDraft): Promise<void> {
    const kind = this.#kinds.get(draft.kind);
    if (kind === undefined)
      throw new RelevoError("step_kind_unknown", `No step of kind ${draft.kind} is known.`, {
        allowed: [...this.#kinds.keys()].join(", "),
      });
    const bound = kind.bind(draft.payload);
    return this.#spawn(authority, draft, draft.id, (task) => this.#begin(task, draft, bound));
  }

  resume(authority: Authority, openSteps: readonly StepRecord[]): readonly Hold[] {
    const holds: Hold[] = [];
    for (const step of openSteps) {
      if (step.state !== "unknown") continue;
      const kind = this.#kinds.get(step.kind);
      if (kind === undefined) {
        holds.push({
          kind: "hold",
          subject: step.instance ?? "",
          reason: reason("step_from_newer_version", { step: step.id, kind: step.kind }),
        });
        continue;
      }
      void this.#spawn(authority, step, baseOf(step.id), (task) => this.#goOn(task, step));
      const found = this.#tasks.get(`${authority.pool} ${baseOf(step.id)}`)?.refusal;
      if (found !== undefined)
        holds.push({ kind: "hold", subject: step.instance ?? "", reason: reason("step_forbidden", { step: step.id, found }) });
    }
    return holds;
  }

  inFlight(pool: string): ReadonlySet<string> {
    return new Set([...this.#tasks.values()].filter((task) => task.pool === pool).map(({ id }) => id));
  }

  async recorded(pool: string): Promise<void> {
    await Promise.all([...this.#tasks.values()].filter((task) => task.pool === pool).map((task) => task.recorded.promise));
  }

  async leave({ pool, epoch }: Authority): Promise<void> {
    this.#left.set(pool, epoch);
    await this.#endTasks(
      [...this.#tasks.values()].filter((task) => task.pool === pool),
      LEAVE_WITHIN_MS,
    );
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#endTasks([...this.#tasks.values()], CLOSE_WITHIN_MS);
  }

  async #endTasks(tasks: readonly Task[], withinMs: number): Promise<void> {
    if (tasks.length === 0) return;
    for (const task of tasks) task.pause?.abort();
    const limit = new AbortController();
    const all = Promise.all(tasks.map(({ over }) => over)).then(() => limit.abort());
    await Promise.race([all, this.#options.clock.sleep(withinMs, limit.signal).catch(() => undefined)]);
  }

  /** Throws when nothing more may be begun for the task's pool. */
  #assertGoesOn({ pool, authority }: Task): void {
    if (this.#closed) throw stopped("this process ends");
    const left = this.#left.get(pool);
    if (left !== undefined && compareEpochs(authority.epoch, left) <= 0) throw stopped("the pool goes to another controller");
  }

  #spawn(authority: Authority, step: StepDraft, base: string, work: (task: Task) => Promise<Ending>): Promise<void> {
    const key = `${authority.pool} ${base}`;
    const running = this.#tasks.get(key);
    if (running !== undefined) {
      // The same process owns the pool under a newer epoch: what is under way goes on under that one.
      if (compareEpochs(authority.epoch, running.authority.epoch) > 0) running.authority = authority;
      return running.over;
    }
    if (this.#closed) return Promise.resolve();
    if (this.inFlight(authority.pool).size >= TASKS_PER_POOL_MAX) {
      this.#options.log.warn(
        { pool: authority.pool, step: step.id, limit: TASKS_PER_POOL_MAX },
        "too many open steps: one is left for later",
      );
      return Promise.resolve();
    }
    const task: Task = {
      base,
      pool: authority.pool,
      instance: step.instance,
      kind: step.kind,
      id: step.id,
      authority,
      pause: undefined,
      refusal: undefined,
      over: Promise.resolve(),
      recorded: Promise.withResolvers(),
    };
    this.#tasks.set(key, task);
    task.over = this.#run(task, key, work);
    return task.over;
  }

  async #run(task: Task, key: string, work: (task: Task) => Promise<Ending>): Promise<void> {
    let ending: Ending = "quiet"; // after an error nothing has ended: whoever looks next finds the step in the journal
    try {
      ending = await work(task);
    } catch (error) {
      this.#reportStop(task, error);
    }
    task.recorded.resolve();
    this.#tasks.delete(key);
    if (this.inFlight(task.pool).size === 0) for (const isFirst of [true, false]) this.#slots.delete(lineOf(task.pool, isFirst));
    if (ending === "plan_again" && !this.#closed) this.#options.onSettled(task.pool);
  }

  #reportStop(task: Task, error: unknown): void {
    const fields = { pool: task.pool, step: task.id, code: codeOf(error) };
    if (verdictOf(error) === "stop") this.#options.log.info(fields, describeError(error));
    else this.#options.log.error({ ...fields, err: error }, `a step cannot go on: ${describeError(error)}`);
  }

  async #begin(task: Task, draft: StepDraft, bound: BoundStep): Promise<Ending> {
    const since = this.#options.clock.monotonic();
    const recording = await this.#record(task, draft, bound);
    task.recorded.resolve();
    if (recording === "quiet") return recording;
    if (recording === "recorded") {
      // What was committed with it, a drain above all, must reach the gateways now and not at the end of the step.
      if (bound.begin.length > 0) this.#options.onSettled(task.pool);
      return this.#perform(task, bound, { firstSince: since, failures: 0 });
    }
    return "open" in recording ? this.#goOn(task, recording.open) : this.#planAgainIn(task, recording.againInMs);
  }

  /** An earlier attempt that is still open is gone on with, as it was recorded, whatever is wanted now. */
  async #record(task: Task, draft: StepDraft, bound: BoundStep): Promise<Recording> {
    try {
      const newest = await this.#journal.newestAttempt(task.pool, task.base);
      if (newest?.step.state === "unknown") return { open: newest.step };
      if (newest?.step.state === "done" || newest?.step.state === "held") return "quiet";
      if (newest !== undefined) {
        const coolMs = cooldownMs(newest.attempt);
        const leftMs = (newest.step.endedAt ?? 0) + coolMs - this.#options.clock.now();
        // Bounded, should the clock have been set back since.
        if (leftMs > 0) return { againInMs: Math.min(leftMs, coolMs) };
      }
      const step = { ...draft, id: withAttempt(draft.id, (newest?.attempt ?? 0) + 1) };
      task.id = step.id;
      await this.#journal.record(task.authority, step, bound);
      return "recorded";
    } catch (error) {
      if (!isStoreConflict(error) && verdictOf(error) !== "later") throw error;
      this.#options.log.warn(
        { pool: task.pool, step: task.id, code: codeOf(error) },
        `a decision could not be recorded: ${describeError(error)}`,
      );
      return { againInMs: isStoreConflict(error) ? PLAN_AGAIN_MS : RECORD_AGAIN_MS };
    }
  }

  async #planAgainIn(task: Task, delayMs: number): Promise<Ending> {
    await this.#pause(task, delayMs);
    return "plan_again";
  }

  async #goOn(task: Task, step: StepRecord): Promise<Ending> {
    task.recorded.resolve();
    task.id = step.id;
    if (!(await this.#persist(task, () => this.#journal.isOpen(task.pool, step.id)))) return "quiet";
    const bound = this.#bind(step);
    if (bound === undefined) return this.#hold(task, "step_payload_invalid");
    const waitMs = step.notBefore - this.#options.clock.now();
    if (waitMs > 0) await this.#pause(task, Math.min(waitMs, RETRY_MAX_MS));
    return this.#perform(task, bound, { firstSince: null, failures: step.attempts });
  }

  #bind(step: StepRecord): BoundStep | undefined {
    try {
      return this.#kinds.get(step.kind)?.bind(step.payload);
    } catch (error) {
      this.#options.log.error({ pool: step.pool, step: step.id }, describeError(error));
      return undefined;
    }
  }

  /** Until the outcome is known and recorded. `firstSince`: of a first attempt, monotonic ms before it was recorded: the reply may have been long on its way. */
  async #perform(task: Task, bound: BoundStep, from: { readonly firstSince: number | null; readonly failures: number }): Promise<Ending> {
    let { firstSince, failures } = from;
    let conflicts = 0;
    let doubts = 0;
    for (;;) {
      const { outcome, fault, doubt } = await this.#attempt(task, bound, firstSince);
      firstSince = null;
      if (outcome !== undefined) return this.#end(task, bound, outcome);
      if (doubt !== undefined && ++doubts >= DOUBTS_MAX) return this.#hold(task, doubt);
      const verdict = doubt === undefined ? verdictOf(fault) : "later";
      if (verdict === "stop") throw fault;
      if (verdict === "never") return this.#end(task, bound, { state: "failed", code: codeOf(fault) });
      if (verdict === "again" && ++conflicts <= CONFLICTS_AT_ONCE && !this.#closed) continue;
      conflicts = 0;
      await this.#retryLater(task, ++failures, doubt ?? codeOf(fault), fault);
    }
  }

  async #attempt(
    task: Task,
    bound: BoundStep,
    firstSince: number | null,
  ): Promise<{ readonly outcome?: Outcome; readonly fault?: unknown; readonly doubt?: string }> {
    await this.#waitForOthers(task, bound);
    const line = lineOf(task.pool, bound.isFirst);
    const slots = this.#slots.get(line) ?? new Slots(STEPS_AT_ONCE_PER_POOL);
    this.#slots.set(line, slots);
    const { kube, driver, leases, nodeSeen } = this.#options;
    const ports = { kube, driver, leases, nodeSeen, step: { id: task.id } };
    try {
      return await slots.run(async () => {
        this.#assertGoesOn(task);
        const isFresh = firstSince !== null && this.#options.clock.monotonic() - firstSince <= CONFIRM_AFTER_MS;
        if (!isFresh && !(await this.#confirm(task, bound))) return { outcome: superseded("overtaken") };
        if (firstSince !== null) return { outcome: await bound.act(ports) };
        const probe = await bound.probe(ports);
        if (probe.answer === "cannot_tell") return { doubt: probe.why };
        if (probe.answer === "not") return { outcome: await bound.act(ports) };
        return { outcome: { state: "done" as const, code: probe.code, ...(probe.result === undefined ? {} : { result: probe.result }) } };
      });
    } catch (fault) {
      return { fault };
    }
  }

  /** A store that is damaged says nothing about the step: that is not failed, it is left. */
  async #confirm(task: Task, bound: BoundStep): Promise<boolean> {
    try {
      return await this.#journal.confirm(task.authority, bound);
    } catch (error) {
      if (verdictOf(error) !== "never") throw error;
      this.#options.log.error({ pool: task.pool, step: task.id, code: codeOf(error) }, describeError(error));
      throw stopped("the journal cannot be asked");
    }
  }

  /** Wakes them first: one that sleeps between two attempts finds at once that it is overtaken. */
  async #waitForOthers(task: Task, bound: BoundStep): Promise<void> {
    if (bound.after.length === 0) return;
    const others = [...this.#tasks.values()].filter(
      (other) => other !== task && other.pool === task.pool && other.instance === task.instance && bound.after.includes(other.kind),
    );
    for (const other of others) other.pause?.abort();
    await Promise.all(others.map(({ over }) => over));
    this.#assertGoesOn(task);
  }

  async #hold(task: Task, why: string): Promise<Ending> {
    await this.#persist(task, () => this.#journal.hold(task.authority, task.id, why));
    this.#options.log.error({ pool: task.pool, step: task.id, why }, "a step is held: an operator must release it");
    return "plan_again";
  }

  async #end(task: Task, bound: BoundStep, outcome: Outcome): Promise<Ending> {
    let ended = outcome;
    await this.#persist(task, async () => {
      ended = await this.#journal.end(task.authority, task.id, outcome, bound);
    });
    const { pool, instance, kind, id } = task;
    this.#options.log.info({ pool, instance, kind, step: id, state: ended.state, outcome: ended.code }, "a step ended");
    return "plan_again";
  }

  async #retryLater(task: Task, failures: number, code: string, fault: unknown): Promise<void> {
    const delayMs = backoffMs(failures, this.#options.random);
    const notBefore = this.#options.clock.now() + delayMs;
    const fields = { pool: task.pool, step: task.id, attempts: failures, code, notBefore };
    if (fault === undefined || fault instanceof RelevoError)
      this.#options.log.warn(fields, `a step is tried again: ${fault === undefined ? code : describeError(fault)}`);
    else this.#options.log.error({ ...fields, err: fault }, "a step met a fault of the program and is tried again");
    await this.#persist(task, () => this.#journal.noteRetry(task.authority, task.id, notBefore, code));
    const isNew = task.refusal === undefined;
    task.refusal = isForbidden(fault) ? (fault.status.message ?? code).slice(0, REFUSAL_CHARS_MAX) : undefined;
    if (isNew && task.refusal !== undefined) this.#options.onSettled(task.pool); // so that the pool says at once what it lacks
    await this.#pause(task, delayMs);
  }

  /** A call of the store whose reply may be lost is repeated until it is known: while the store is away, nothing acts. */
  async #persist<T>(task: Task, commit: () => Promise<T>): Promise<T> {
    for (let failures = 1; ; failures++) {
      try {
        return await commit();
      } catch (error) {
        if (isStoreConflict(error)) throw stopped("it has ended already"); // an operator released it
        if (verdictOf(error) !== "later") throw error;
        this.#options.log.warn(
          { pool: task.pool, step: task.id, code: codeOf(error) },
          `the journal is asked again: ${describeError(error)}`,
        );
        await this.#pause(task, backoffMs(failures, this.#options.random));
      }
    }
  }

  async #pause(task: Task, delayMs: number): Promise<void> {
    this.#assertGoesOn(task);
    const pause = new AbortController();
    task.pause = pause;
    try {
      await this.#options.clock.sleep(delayMs, pause.signal);
    } catch (error) {
      if (!pause.signal.aborted) throw error;
    } finally {
      task.pause = undefined;
    }
    this.#assertGoesOn(task);
  }
}
