/** The executor's side of the journal: what is committed when, and what a refusal means. */
import type { Clock, Instant } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { StepDraft, StepRecord } from "../model/step.ts";
import type { Authority, Store } from "../store/port.ts";
import { newestAttempt } from "./step-id.ts";
import type { BoundStep, Outcome } from "./step-kind.ts";

/** Far above what a decision is tried within the time that steps are kept. */
const ATTEMPTS_READ = 1_000;

export class Journal {
  readonly #store: Pick<Store, "commit" | "listSteps">;
  readonly #clock: Clock;

  constructor(store: Pick<Store, "commit" | "listSteps">, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  async newestAttempt(pool: string, base: string): Promise<{ readonly attempt: number; readonly step: StepRecord } | undefined> {
    return newestAttempt(base, await this.#store.listSteps(pool, ATTEMPTS_READ, base));
  }

  /** Whether the step is still there to be gone on with: the caller may have read it a while ago. */
  async isOpen(pool: string, id: string): Promise<boolean> {
    const [step] = (await this.#store.listSteps(pool, ATTEMPTS_READ, id)).filter((each) => each.id === id);
    return step?.state === "unknown";
  }

  /** The step and what must be true before its effect, in one transaction. */
  async record(authority: Authority, step: StepDraft, bound: BoundStep): Promise<void> {
    await this.#store.commit(authority, [{ kind: "record_step", step }, ...bound.begin], this.#clock.now());
  }

  /** Before a further attempt: the pool is still ours, and the step is still wanted. False when it is not. */
  async confirm(authority: Authority, bound: BoundStep): Promise<boolean> {
    try {
      await this.#store.commit(authority, bound.guard, this.#clock.now());
      return true;
    } catch (error) {
      if (isStoreConflict(error)) return false;
      throw error;
    }
  }

  async noteRetry(authority: Authority, step: string, notBefore: Instant, error: string): Promise<void> {
    await this.#store.commit(authority, [{ kind: "retry_step", step, notBefore, error }], this.#clock.now());
  }

  async hold(authority: Authority, step: string, why: string): Promise<void> {
    await this.#store.commit(authority, [{ kind: "end_step", step, state: "held", outcome: why }], this.#clock.now());
  }

  /**
   * Ends the step with what follows from its outcome. When what follows is not possible any more (the instance moved on meanwhile), the step ends as
   * superseded without it. When the step has ended already, the reply to an earlier try was lost. Answers how it ended.
   */
  async end(authority: Authority, id: string, outcome: Outcome, bound: BoundStep): Promise<Outcome> {
    try {
      await this.#commitEnd(authority, id, outcome, bound);
      return outcome;
    } catch (error) {
      if (!isStoreConflict(error)) throw error;
    }
    const overtaken: Outcome = { ...outcome, state: "superseded", code: "overtaken" };
    try {
      await this.#commitEnd(authority, id, overtaken, bound);
      return overtaken;
    } catch (error) {
      if (!isStoreConflict(error)) throw error;
      return outcome; // it was not the consequences that were refused: the step has ended
    }
  }

  async #commitEnd(authority: Authority, step: string, outcome: Outcome, bound: BoundStep): Promise<void> {
    const { state, code, result } = outcome;
    const end = { kind: "end_step", step, state, outcome: code, ...(result === undefined ? {} : { result }) } as const;
    await this.#store.commit(authority, [end, ...bound.settle(outcome)], this.#clock.now());
  }
}

export function isStoreConflict(error: unknown): boolean {
  return error instanceof RelevoError && error.code === "store_conflict";
}
