/**
 * kysely over `node:sqlite`: one connection whose statements are prepared once and run synchronously, so that a query settles by microtasks alone (the
 * simulator counts on that). Turns are given out above (`group-commit.ts`): a driver that is asked by two at once would mix their transactions.
 */
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from "node:sqlite";
import { CompiledQuery, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from "kysely";
import type { DatabaseConnection, DatabaseIntrospector, Dialect, DialectAdapter, Driver, QueryCompiler, QueryResult } from "kysely";

/** More statements than this are not ours: a query whose text depends on data would grow the cache without end. */
const MAX_STATEMENTS = 500;

/**
 * Kysely whose compiled queries can also run at once: its own way to the connection, through providers and a dozen promises, costs several times what SQLite
 * needs for the answer.
 */
export class SqliteKysely<DB> extends Kysely<DB> {
  readonly #connection: NodeSqliteConnection;

  /** The database stays its opener's to close. */
  constructor(database: DatabaseSync) {
    const connection = new NodeSqliteConnection(database);
    super({ dialect: new NodeSqliteDialect(database, connection) });
    this.#connection = connection;
  }

  run<R>({ sql, parameters }: CompiledQuery<R>): QueryResult<R> {
    return this.#connection.run(sql, parameters);
  }

  /** How many statements that write this table were run; those that were rolled back count too. */
  writesTo(table: keyof DB & string): number {
    return this.#connection.writesTo(table);
  }

  get isInTransaction(): boolean {
    return this.#connection.isInTransaction;
  }
}

class NodeSqliteDialect implements Dialect {
  readonly #database: DatabaseSync;
  readonly #connection: NodeSqliteConnection;

  constructor(database: DatabaseSync, connection: NodeSqliteConnection) {
    this.#database = database;
    this.#connection = connection;
  }

  createDriver(): Driver {
    return new NodeSqliteDriver(this.#database, this.#connection);
  }

  createQueryCompiler(): QueryCompiler {
    return new SqliteQueryCompiler();
  }

  createAdapter(): DialectAdapter {
    return new SqliteAdapter();
  }

  createIntrospector(db: Kysely<unknown>): DatabaseIntrospector {
    return new SqliteIntrospector(db);
  }
}

class NodeSqliteDriver implements Driver {
  readonly #database: DatabaseSync;
  readonly #connection: NodeSqliteConnection;

  constructor(database: DatabaseSync, connection: NodeSqliteConnection) {
    this.#database = database;
    this.#connection = connection;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    return this.#connection;
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("begin immediate"));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("commit"));
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    // After some failures SQLite has rolled back on its own; to do it again is an error that would hide the first one.
    if (this.#database.isTransaction) await connection.executeQuery(CompiledQuery.raw("rollback"));
  }

  async releaseConnection(): Promise<void> {}

  /** The database is its opener's to close. */
  async destroy(): Promise<void> {
    this.#connection.forget();
  }
}

interface CachedStatement {
  readonly statement: StatementSync;
  /** Empty when it returns no rows. */
  readonly columns: readonly string[];
  /** Of the table that it writes; undefined when it only reads, or begins and ends transactions. */
  readonly writes: { count: number } | undefined;
}

const WRITES = /^\s*(?:insert into|update|delete from) "(\w+)"/i;
const WRITES_NOTHING = /^\s*(?:select|begin|commit|rollback|savepoint|release)\b/i;

class NodeSqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, CachedStatement>();
  readonly #writes = new Map<string, { count: number }>();
  /** Writes of which it is not known to which table. */
  readonly #otherWrites = { count: 0 };

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    return this.run(sql, parameters);
  }

  run<R>(sql: string, parameters: readonly unknown[]): QueryResult<R> {
    const { statement, columns, writes } = this.#prepare(sql);
    const values = parameters as readonly SQLInputValue[];
    if (writes !== undefined) writes.count += 1;
    if (columns.length > 0)
      return { rows: (statement.all(...values) as unknown as SQLOutputValue[][]).map((row) => named(columns, row) as R) };
    const { changes } = statement.run(...values);
    return { rows: [], numAffectedRows: BigInt(changes) };
  }

  writesTo(table: string): number {
    return this.#writesOf(table).count + this.#otherWrites.count;
  }

  get isInTransaction(): boolean {
    return this.#database.isTransaction;
  }

  #writesOf(table: string): { count: number } {
    const known = this.#writes.get(table);
    if (known !== undefined) return known;
    const fresh = { count: 0 };
    this.#writes.set(table, fresh);
    return fresh;
  }

  streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error("streaming would hold the only connection: read in pages");
  }

  forget(): void {
    this.#statements.clear();
  }

  #prepare(sql: string): CachedStatement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    if (this.#statements.size >= MAX_STATEMENTS) this.#statements.clear();
    const statement = this.#database.prepare(sql);
    const columns = statement.columns().map(({ name }) => name);
    // With names each row costs three times as much: they would be made anew, one by one, for every row.
    statement.setReturnArrays(true);
    const table = WRITES.exec(sql)?.[1];
    const writes = table !== undefined ? this.#writesOf(table) : WRITES_NOTHING.test(sql) ? undefined : this.#otherWrites;
    const made = { statement, columns, writes };
    this.#statements.set(sql, made);
    return made;
  }
}

function named(columns: readonly string[], row: readonly SQLOutputValue[]): Record<string, SQLOutputValue | undefined> {
  const object: Record<string, SQLOutputValue | undefined> = {};
  for (let index = 0; index < columns.length; index++) object[columns[index] as string] = row[index];
  return object;
}
