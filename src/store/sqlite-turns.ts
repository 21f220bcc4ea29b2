/** The turns of a SQLite file: one connection, group commit, and what was read stays known (`kept-rows.ts`). */
import { GroupCommit } from "./group-commit.ts";
import type { StoreDescription } from "./port.ts";
import type { TurnOf, Turns } from "./relational-store.ts";
import type { Schema } from "./schema.ts";
import { SqliteKysely } from "./sqlite-dialect.ts";
import type { SqliteFile } from "./sqlite-file.ts";
import { type Tables, tablesOn } from "./tables.ts";

/** Taken at import: a simulator may forbid the global later. */
const nextTurn = setImmediate;

export class SqliteTurns implements Turns {
  readonly #file: SqliteFile;
  readonly #db: SqliteKysely<Schema>;
  readonly #group: GroupCommit;
  readonly #tables: Tables;
  #closing: Promise<void> | undefined;

  constructor(file: SqliteFile) {
    const db = new SqliteKysely<Schema>(file.database);
    this.#file = file;
    this.#db = db;
    this.#tables = tablesOn(db);
    this.#group = new GroupCommit({
      db,
      inTransaction: () => file.database.isTransaction,
      // On disk a turn of the event loop costs less than the fsync it saves; in memory there is nothing to save, and the simulator drains microtasks only.
      gather: file.isOnDisk ? () => new Promise((resolve) => nextTurn(resolve)) : () => Promise.resolve(),
    });
  }

  write<T>(_of: TurnOf, work: (tables: Tables) => Promise<T>): Promise<T> {
    return this.#group.write(() => work(this.#tables));
  }

  writeAlone<T>(work: (tables: Tables) => Promise<T>): Promise<T> {
    return this.#group.write(() => work(this.#tables));
  }

  writeAcross<T>(work: (tables: Tables) => Promise<T>): Promise<T> {
    return this.#group.write(() => work(this.#tables));
  }

  read<T>(work: (tables: Tables) => Promise<T>): Promise<T> {
    return this.#group.read(() => work(this.#tables));
  }

  describe(): Promise<StoreDescription> {
    return this.#group.read(async () => ({
      kind: "sqlite",
      version: String(this.#file.database.prepare("SELECT sqlite_version() AS version").get()?.["version"]),
      where: this.#file.path,
      schema: this.#file.schema(),
      synchronous: this.#file.isOnDisk ? "disk" : "memory",
    }));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#group.close();
    await this.#db.destroy();
    this.#file.close();
  }
}
