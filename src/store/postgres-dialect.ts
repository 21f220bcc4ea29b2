/** kysely over one connection of `pg`, with its own set of repositories: what is prepared for a connection is compiled once for it. */
import { Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from "kysely";
import type { CompiledQuery, DatabaseConnection, Dialect, Driver, QueryResult } from "kysely";
import type { ClientBase } from "pg";
import type { WriteCounts } from "./kept-rows.ts";
import type { Schema } from "./schema.ts";

/** Nothing is kept between calls: another process may write at any moment. */
export class PostgresKysely extends Kysely<Schema> implements WriteCounts {
  readonly isInTransaction = true;

  /** The client stays its pool's to end. */
  constructor(client: ClientBase) {
    super({ dialect: dialectOf(new PostgresConnection(client)) });
  }

  writesTo(): number {
    return 0;
  }
}

function dialectOf(connection: DatabaseConnection): Dialect {
  const driver: Driver = {
    init: async () => {},
    acquireConnection: async () => connection,
    // Transactions are given out above (`postgres-turns.ts`).
    beginTransaction: refuse,
    commitTransaction: refuse,
    rollbackTransaction: refuse,
    releaseConnection: async () => {},
    destroy: async () => {},
  };
  return {
    createDriver: () => driver,
    createQueryCompiler: () => new PostgresQueryCompiler(),
    createAdapter: () => new PostgresAdapter(),
    createIntrospector: (db) => new PostgresIntrospector(db),
  };
}

async function refuse(): Promise<never> {
  throw new Error("a transaction is a turn of the store");
}

class PostgresConnection implements DatabaseConnection {
  readonly #client: ClientBase;

  constructor(client: ClientBase) {
    this.#client = client;
  }

  /**
   * Without a name on the server: a statement that was prepared there fails once a migration has added a column (`cached plan must not change result type`), and an
   * old replica must go on.
   */
  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const { rows, rowCount } = await this.#client.query(sql, parameters.map(storable));
    return { rows: rows as R[], numAffectedRows: BigInt(rowCount ?? 0) };
  }

  streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error("read in pages");
  }
}

/** PostgreSQL's text holds no NUL; what a stranger sends may. */
export function storable(value: unknown): unknown {
  return typeof value === "string" && value.includes("\0") ? value.replaceAll("\0", "\uFFFD") : value;
}
