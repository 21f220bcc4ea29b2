/**
 * The turns of a PostgreSQL database: each port call is one transaction on one connection of a bounded pool.
 *
 * 1. `read committed`, and who writes a pool's rows holds that pool's row (`select … for update`) before it reads anything of it: what was read stays true
 *    until COMMIT. Rows of several pools share only ids and blueprints, which keys guard (see `SQLSTATES`).
 * 2. Each transaction that writes holds the era's advisory lock as one of many; a recovery holds it alone, so that no claim and no commit falls between.
 * 3. The calls of one pool wait in this process, in their order, and not with a connection in their hands.
 * 4. What the server rolled back because of others is done anew. Once COMMIT was sent it never is: if the answer is lost the caller is told that the outcome
 *    is not known, and reads again. To do it again would be harmless for every change but `count_loss` and `retry_step`, which count; and a refusal of the
 *    repeat (`store_conflict`) would hide that the first one happened.
 * 5. A connection that misbehaved is ended, never given out again.
 */
import type { ClientBase, Pool, PoolClient } from "pg";
import { RelevoError } from "../kernel/errors.ts";
import { Lanes, MAX_WAITING } from "./lanes.ts";
import { type StoreDescription, storeOutcomeUnknown, storeUnavailable } from "./port.ts";
import { PostgresKysely } from "./postgres-dialect.ts";
import { type Meaning, meaningOf, toStoreError } from "./postgres-errors.ts";
import { eraLock } from "./postgres-migrate.ts";
import type { TurnOf, Turns } from "./relational-store.ts";
import { type Tables, tablesOn } from "./tables.ts";

/** Of one transaction, whatever the reasons. */
const MAX_ATTEMPTS = 5;
/** Of one that the server does not answer: each costs the whole time-out, and whoever ends in good order waits for it. */
const MAX_SILENT_ATTEMPTS = 2;
const READ = "begin isolation level repeatable read read only";
const WRITE_ACROSS = "begin isolation level repeatable read read write";
const WRITE = "begin isolation level read committed read write";

export interface PostgresTurnsPorts {
  readonly pool: Pool;
  readonly schema: string;
  readonly describe: (client: ClientBase) => Promise<StoreDescription>;
}

export class PostgresTurns implements Turns {
  readonly #ports: PostgresTurnsPorts;
  readonly #lanes = new Lanes();
  readonly #tables = new WeakMap<ClientBase, Tables>();
  readonly #beginShared: string;
  readonly #beginAlone: string;
  readonly #beginAcross: string;
  readonly #running = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  constructor(ports: PostgresTurnsPorts) {
    this.#ports = ports;
    this.#beginShared = `${WRITE}; ${eraLock(ports.schema, "shared")}`;
    this.#beginAcross = `${WRITE_ACROSS}; ${eraLock(ports.schema, "shared")}`;
    this.#beginAlone = `${WRITE}; ${eraLock(ports.schema, "exclusive")}`;
  }

  write<T>(of: TurnOf, work: (tables: Tables) => Promise<T>): Promise<T> {
    const turn = () => this.#transaction(this.#beginShared, work);
    return this.#run(() => (of === null ? turn() : this.#lanes.run(of, turn)));
  }

  writeAlone<T>(work: (tables: Tables) => Promise<T>): Promise<T> {
    return this.#run(() => this.#transaction(this.#beginAlone, work));
  }

  writeAcross<T>(work: (tables: Tables) => Promise<T>): Promise<T> {
    return this.#run(() => this.#transaction(this.#beginAcross, work));
  }

  read<T>(work: (tables: Tables) => Promise<T>): Promise<T> {
    return this.#run(() => this.#transaction(READ, work));
  }

  describe(): Promise<StoreDescription> {
    return this.#run(() => this.#transaction(READ, (_tables, client) => this.#ports.describe(client)));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
    await this.#ports.pool.end();
  }

  async #run<T>(turn: () => Promise<T>): Promise<T> {
    if (this.#closing !== undefined) throw new RelevoError("store_closed", "the store is closed");
    const running = turn();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  async #transaction<T>(begin: string, work: (tables: Tables, client: ClientBase) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt(begin, work);
      if (outcome.ok) return outcome.value;
      if (attempt >= outcome.attempts) throw toStoreError(outcome.error);
    }
  }

  async #attempt<T>(begin: string, work: (tables: Tables, client: ClientBase) => Promise<T>): Promise<Attempt<T>> {
    const client = await this.#connect();
    let isCommitting = false;
    let isOver = false;
    try {
      await client.query(begin);
      const value = await work(this.#tablesOn(client), client);
      isCommitting = true;
      await (begin === READ ? client.query("commit") : commit(client));
      return { ok: true, value };
    } catch (error) {
      const meaning = meaningOf(error);
      isOver = meaning === "reconnect" || meaning === "silent" || !(await rolledBack(client, isCommitting));
      return { ok: false, error, attempts: ATTEMPTS[meaning] };
    } finally {
      client.release(isOver);
    }
  }

  async #connect(): Promise<PoolClient> {
    const { pool } = this.#ports;
    if (pool.waitingCount >= MAX_WAITING)
      throw storeUnavailable(`${MAX_WAITING} callers wait for a connection`, undefined, "try again later");
    try {
      return await pool.connect();
    } catch (error) {
      throw toStoreError(error);
    }
  }

  #tablesOn(client: ClientBase): Tables {
    const known = this.#tables.get(client);
    if (known !== undefined) return known;
    const made = tablesOn(new PostgresKysely(client));
    this.#tables.set(client, made);
    return made;
  }
}

type Attempt<T> =
  | { readonly ok: true; readonly value: T }
  /** `attempts`: how many there may be in all. */
  | { readonly ok: false; readonly error: unknown; readonly attempts: number };

const ATTEMPTS: Readonly<Record<Meaning, number>> = {
  again: MAX_ATTEMPTS,
  reconnect: MAX_ATTEMPTS,
  silent: MAX_SILENT_ATTEMPTS,
  unavailable: 1,
  corrupt: 1,
  fault: 1,
};

/** An error that the server gave to COMMIT with a code of its own says that it rolled back; one of the connection says nothing: see `storeOutcomeUnknown`. */
export async function commit(client: ClientBase): Promise<void> {
  try {
    await confirmedCommit(client);
  } catch (error) {
    const meaning = meaningOf(error);
    if (meaning !== "reconnect" && meaning !== "silent" && meaning !== "unavailable") throw error;
    throw storeOutcomeUnknown(error instanceof Error ? error.message : String(error), error);
  }
}

/** The server answers a COMMIT of a transaction that has failed, or that no standby confirmed, as if all were well. */
async function confirmedCommit(client: ClientBase): Promise<void> {
  let unconfirmed: Error | undefined;
  const listen = (notice: { routine?: string | undefined; message?: string | undefined }): void => {
    if (notice.routine === "SyncRepWaitForLSN") unconfirmed = new Error(notice.message);
  };
  client.on("notice", listen);
  try {
    const { command } = await client.query("commit");
    if (unconfirmed !== undefined) throw storeOutcomeUnknown("no standby confirmed it", unconfirmed);
    if (command !== "COMMIT") throw new Error(`the transaction ended with ${command}`);
  } finally {
    client.off("notice", listen);
  }
}

/** False when the connection is not fit for another transaction. */
async function rolledBack(client: ClientBase, isCommitting: boolean): Promise<boolean> {
  if (isCommitting) return false; // whatever state it is in
  try {
    await client.query("rollback");
    return true;
  } catch {
    return false; // the error that led here is the one to tell
  }
}
