/**
 * What was read of a table stays known until the table is written: this process is the file's only owner, so nobody else writes it.
 *
 * 1. The connection counts the writes of each table (`SqliteKysely.writesTo`); what was read under another count is old.
 * 2. A repository may say which row each of its writes was about (`wrote`); then only those rows are read again. When the counts show a write that nobody told of,
 *    all is read again.
 * 3. Inside a transaction nothing is kept: it may yet be rolled back. A write that is rolled back counts all the same, and costs one more look.
 * 4. Of a pool that nobody owns nothing is kept (`forget`): anybody may ask for a pool of any name.
 */
import type { Kysely } from "kysely";
import type { Schema } from "./schema.ts";

/** The part of the connection that this needs. Where other processes write too it counts nothing and is always in a transaction: then nothing is kept. */
export interface WriteCounts {
  writesTo(table: keyof Schema): number;
  readonly isInTransaction: boolean;
}

/** What the repositories work on. */
export type StoreConnection = Kysely<Schema> & WriteCounts;

/** Writes that are remembered; a list that is further behind is read anew. */
const MAX_REMEMBERED = 1_000;

/** A value per pool, read again when the count that it depends on has changed. */
export class KeptValue<T> {
  readonly #db: Pick<WriteCounts, "isInTransaction">;
  readonly #countOf: () => number;
  readonly #read: (pool: string) => Promise<T>;
  readonly #known = new Map<string, { readonly at: number; readonly value: T }>();

  constructor(db: Pick<WriteCounts, "isInTransaction">, countOf: () => number, read: (pool: string) => Promise<T>) {
    this.#db = db;
    this.#countOf = countOf;
    this.#read = read;
  }

  async get(pool: string): Promise<T> {
    const at = this.#countOf();
    const known = this.#known.get(pool);
    if (known?.at === at) return known.value;
    const value = await this.#read(pool);
    if (!this.#db.isInTransaction) this.#known.set(pool, { at, value });
    return value;
  }

  forget(pool: string): void {
    this.#known.delete(pool);
  }
}

export interface KeptListOptions<Row, T> {
  readonly db: WriteCounts;
  readonly table: keyof Schema;
  /** In the order of `seq`. */
  readonly all: (pool: string) => Promise<readonly Row[]>;
  readonly one: (id: string) => Promise<Row | undefined>;
  readonly isListed: (row: Row) => boolean;
  readonly toRecord: (row: Row) => T;
}

interface KeptPool<T> {
  /** The count of the table's writes that it is as of. */
  at: number;
  readonly entries: Map<string, T>;
  list: readonly T[];
}

/** The rows of a table that a pool's list holds, each read again only when it was written. A list in which nothing changed is the same array. */
export class KeptList<Row extends { readonly id: string; readonly pool: string; readonly seq: number }, T> {
  readonly #options: KeptListOptions<Row, T>;
  readonly #pools = new Map<string, KeptPool<T>>();
  /** The rows of the newest writes; the last of them is of write `#told`. */
  #written: string[] = [];
  #told: number;
  #untold = 0;

  constructor(options: KeptListOptions<Row, T>) {
    this.#options = options;
    this.#told = options.db.writesTo(options.table);
  }

  /** To be called right after each statement that wrote one row. */
  wrote(id: string): void {
    const count = this.#options.db.writesTo(this.#options.table);
    this.#untold += count - this.#told - 1;
    if (count !== this.#told + 1 || this.#written.length >= MAX_REMEMBERED) this.#written = [];
    this.#written.push(id);
    this.#told = count;
  }

  /** Writes of which nobody said what they wrote. */
  get untoldWrites(): number {
    const { db, table } = this.#options;
    return this.#untold + db.writesTo(table) - this.#told;
  }

  async list(pool: string): Promise<readonly T[]> {
    const { db, table, all, toRecord } = this.#options;
    const count = db.writesTo(table);
    const known = this.#pools.get(pool);
    if (known?.at === count) return known.list;
    if (db.isInTransaction) return (await all(pool)).map(toRecord);
    const behind = count - (known?.at ?? 0);
    if (known !== undefined && this.#told === count && behind <= this.#written.length) {
      await this.#readAgain(pool, known, new Set(this.#written.slice(-behind)));
      known.at = count;
      return known.list;
    }
    const entries = new Map((await all(pool)).map((row) => [row.id, toRecord(row)]));
    const list = [...entries.values()];
    this.#pools.set(pool, { at: count, entries, list });
    return list;
  }

  forget(pool: string): void {
    this.#pools.delete(pool);
  }

  async #readAgain(pool: string, known: KeptPool<T>, ids: ReadonlySet<string>): Promise<void> {
    const { one, isListed, toRecord } = this.#options;
    // All before anything of it is used: a read that fails half way changes nothing.
    const read: (readonly [string, Row | undefined])[] = [];
    for (const id of ids) read.push([id, await one(id)]);
    const added: Row[] = [];
    let isChanged = false;
    for (const [id, row] of read) {
      if (row === undefined || row.pool !== pool || !isListed(row)) isChanged = known.entries.delete(id) || isChanged;
      else if (known.entries.has(id)) {
        known.entries.set(id, toRecord(row));
        isChanged = true;
      } else added.push(row);
    }
    for (const row of added.toSorted((a, b) => a.seq - b.seq)) known.entries.set(row.id, toRecord(row));
    if (isChanged || added.length > 0) known.list = [...known.entries.values()];
  }
}
