/**
 * Turns at the one connection, and one fsync for many commits.
 *
 * 1. Writers that wait are run one after the other inside one transaction, each in a savepoint of its own: a writer that is refused takes nothing of the others
 *    with it.
 * 2. Nobody is answered, not even with a refusal, before the outer COMMIT: what a refusal was based on might not last.
 * 3. When the storage fails, the whole group is rolled back and everybody in it is told so. (Only when an fsync fails and the process dies before its next
 *    commit may such a group be found in the log afterwards, as a whole. A repeat is harmless: moves compare, steps have ids.)
 * 4. Readers run between groups and see committed rows only.
 */
import { CompiledQuery } from "kysely";
import { RelevoError } from "../kernel/errors.ts";
import { storeUnavailable } from "./port.ts";
import type { Schema } from "./schema.ts";
import type { SqliteKysely } from "./sqlite-dialect.ts";
import { isStorageFailure, toStoreError } from "./sqlite-errors.ts";

/** One transaction never holds more writers than this, so that the first of them does not wait for ever. */
const MAX_GROUP = 128;
/** More callers than this cannot be served in useful time. */
const MAX_WAITING = 10_000;

const BEGIN = CompiledQuery.raw("begin immediate");
const COMMIT = CompiledQuery.raw("commit");
const ROLLBACK = CompiledQuery.raw("rollback");
const SAVEPOINT = CompiledQuery.raw("savepoint writer");
const RELEASE = CompiledQuery.raw("release writer");
const UNDO = CompiledQuery.raw("rollback to writer");

interface Turn {
  readonly work: () => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Outcome = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: unknown };

export interface GroupCommitPorts {
  readonly db: Pick<SqliteKysely<Schema>, "run">;
  /** SQLite ends a transaction on its own after some failures. */
  readonly inTransaction: () => boolean;
  /** Lets others join the next group; what it waits for must not be a timer. */
  readonly gather: () => Promise<void>;
}

export class GroupCommit {
  readonly #ports: GroupCommitPorts;
  #writers: Turn[] = [];
  #readers: Turn[] = [];
  #running: Promise<void> | undefined;
  #closed = false;

  constructor(ports: GroupCommitPorts) {
    this.#ports = ports;
  }

  /** Runs `work` in a transaction; settles after it is durable, or rejects and nothing of it was applied. */
  write<T>(work: () => Promise<T>): Promise<T> {
    return this.#enter(this.#writers, work);
  }

  /** Runs `work` while no transaction is open. */
  read<T>(work: () => Promise<T>): Promise<T> {
    return this.#enter(this.#readers, work);
  }

  /** Takes no more work and settles when the last turn is over. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  #enter<T>(queue: Turn[], work: () => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new RelevoError("store_closed", "the store is closed"));
    if (queue.length >= MAX_WAITING) return Promise.reject(storeUnavailable(`${MAX_WAITING} callers wait already`, undefined));
    const turn = new Promise<T>((resolve, reject) => queue.push({ work, resolve: resolve as (value: unknown) => void, reject }));
    this.#running ??= this.#serve();
    return turn;
  }

  async #serve(): Promise<void> {
    while (this.#writers.length + this.#readers.length > 0) {
      await this.#ports.gather();
      const writers = this.#writers.splice(0, MAX_GROUP);
      if (writers.length > 0) await this.#commitGroup(writers);
      for (const reader of this.#readers.splice(0, MAX_GROUP)) settle(reader, await attempt(reader.work));
    }
    this.#running = undefined;
  }

  async #commitGroup(writers: readonly Turn[]): Promise<void> {
    const outcomes: Outcome[] = [];
    try {
      this.#execute(BEGIN);
      for (const writer of writers) outcomes.push(await this.#inSavepoint(writer));
      this.#execute(COMMIT);
    } catch (error) {
      const failure = { ok: false, error: this.#rollback(error) } as const;
      for (const writer of writers) settle(writer, failure);
      return;
    }
    for (const [index, writer] of writers.entries()) settle(writer, outcomes[index] as Outcome);
  }

  async #inSavepoint(writer: Turn): Promise<Outcome> {
    this.#execute(SAVEPOINT);
    const outcome = await attempt(writer.work);
    if (!outcome.ok) {
      if (isStorageFailure(outcome.error)) throw outcome.error;
      this.#execute(UNDO);
    }
    this.#execute(RELEASE);
    return outcome;
  }

  /** Returns the error for the callers. */
  #rollback(error: unknown): unknown {
    try {
      if (this.#ports.inTransaction()) this.#execute(ROLLBACK);
    } catch (second) {
      return storeUnavailable("a failed transaction could not be rolled back", new AggregateError([error, second]));
    }
    return toStoreError(error);
  }

  #execute(query: CompiledQuery): void {
    this.#ports.db.run(query);
  }
}

async function attempt(work: () => Promise<unknown>): Promise<Outcome> {
  try {
    return { ok: true, value: await work() };
  } catch (error) {
    return { ok: false, error: toStoreError(error) };
  }
}

function settle(turn: Turn, outcome: Outcome): void {
  if (outcome.ok) turn.resolve(outcome.value);
  else turn.reject(outcome.error);
}
