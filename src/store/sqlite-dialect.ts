/**
 * kysely over `node:sqlite`: one connection whose statements are prepared once and run synchronously, so that a query settles by microtasks alone (the
 * simulator counts on that). Turns are given out above (`group-commit.ts`): a driver that is asked by two at once would mix their transactions.
 */
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
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
}

export class NodeSqliteDialect implements Dialect {
  readonly #database: DatabaseSync;
  readonly #connection: NodeSqliteConnection;

  constructor(database: DatabaseSync, connection = new NodeSqliteConnection(database)) {
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
  readonly returnsRows: boolean;
}

class NodeSqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, CachedStatement>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    return this.run(sql, parameters);
  }

  run<R>(sql: string, parameters: readonly unknown[]): QueryResult<R> {
    const { statement, returnsRows } = this.#prepare(sql);
    const values = parameters as readonly SQLInputValue[];
    if (returnsRows) return { rows: statement.all(...values) as R[] };
    const { changes } = statement.run(...values);
    return { rows: [], numAffectedRows: BigInt(changes) };
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
    const made = { statement, returnsRows: statement.columns().length > 0 };
    this.#statements.set(sql, made);
    return made;
  }
}
