/**
 * One fsync for many commits: callers that wait are run one after the other inside one transaction, each in a savepoint of its own. Nobody is answered before
 * the COMMIT, not even with a refusal; when that fails, everybody in it is told so and nothing of it was done.
 */
import type { DatabaseSync } from "node:sqlite";
import { RelevoError } from "../../kernel/errors.ts";
import { unavailable } from "./queue-file.ts";

/** So that the first of a group does not wait for ever. */
const MAX_GROUP = 256;
/** More callers than this cannot be served in useful time. */
const MAX_WAITING = 10_000;

interface Turn {
  readonly work: () => unknown;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

type Outcome = { readonly value: unknown } | { readonly error: unknown };

export class QueueTurns {
  readonly #database: DatabaseSync;
  readonly #afterCommit: () => void;
  #waiting: Turn[] = [];
  #running: Promise<void> | undefined;
  #isClosed = false;
  #trouble: RelevoError | undefined;

  /** `afterCommit` runs before the callers are answered. */
  constructor(database: DatabaseSync, afterCommit: () => void) {
    this.#database = database;
    this.#afterCommit = afterCommit;
  }

  /** What the last write came to: why it failed; undefined when it did not. A commit that changed nothing touches no disk, and says nothing. */
  get trouble(): RelevoError | undefined {
    return this.#trouble;
  }

  /** Settles when it is durable. `work` must not wait for anything. */
  write<T>(work: () => T): Promise<T> {
    if (this.#isClosed) return Promise.reject(new RelevoError("queue_stopping", "the queue is stopping", { class: "retryable" }));
    if (this.#waiting.length >= MAX_WAITING)
      return Promise.reject(new RelevoError("queue_busy", "too many callers wait already", { class: "retryable", found: MAX_WAITING }));
    const turn = new Promise<T>((resolve, reject) => this.#waiting.push({ work, resolve, reject }));
    this.#running ??= this.#serve();
    return turn;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running;
  }

  async #serve(): Promise<void> {
    while (this.#waiting.length > 0) {
      // A turn of the event loop costs less than the fsync it saves.
      await new Promise((resolve) => setImmediate(resolve));
      this.#commit(this.#waiting.splice(0, MAX_GROUP));
    }
    this.#running = undefined;
  }

  #commit(group: readonly Turn[]): void {
    const outcomes: Outcome[] = [];
    const before = this.#trouble === undefined ? 0 : this.#changes();
    try {
      this.#database.exec("BEGIN IMMEDIATE");
      for (const { work } of group) outcomes.push(this.#inSavepoint(work));
      this.#database.exec("COMMIT");
    } catch (error) {
      const failure = this.#rollBack(error);
      this.#trouble = failure;
      for (const { reject } of group) reject(failure);
      return;
    }
    if (this.#trouble !== undefined && this.#changes() !== before) this.#trouble = undefined;
    this.#afterCommit();
    for (const [index, { resolve, reject }] of group.entries()) {
      const outcome = outcomes[index] as Outcome;
      if ("error" in outcome) reject(outcome.error);
      else resolve(outcome.value as never);
    }
  }

  #changes(): unknown {
    return this.#database.prepare("SELECT total_changes() AS count").get()?.["count"];
  }

  #inSavepoint(work: () => unknown): Outcome {
    this.#database.exec("SAVEPOINT caller");
    let outcome: Outcome;
    try {
      outcome = { value: work() };
    } catch (error) {
      if (!(error instanceof RelevoError)) throw error; // the storage failed, or we did: no part of the group is to be trusted
      this.#database.exec("ROLLBACK TO caller");
      outcome = { error };
    }
    this.#database.exec("RELEASE caller");
    return outcome;
  }

  #rollBack(error: unknown): RelevoError {
    try {
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
    } catch (second) {
      return unavailable(new AggregateError([error, second]));
    }
    return unavailable(error);
  }
}
