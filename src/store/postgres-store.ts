/** Opens the store in a PostgreSQL database: a bounded pool of connections, each of them checked when it is made, and the schema brought up to date. */
import pg from "pg";
import type { ClientBase } from "pg";
import { RelevoError } from "../kernel/errors.ts";
import { MIGRATIONS } from "./migrations/index.ts";
import type { Migration } from "./migrations/migration.ts";
import type { Store, StoreDescription } from "./port.ts";
import { storeUnavailable } from "./port.ts";
import { toStoreError } from "./postgres-errors.ts";
import { type Applied, migratePostgres, readSchema } from "./postgres-migrate.ts";
import { passwordFor } from "./postgres-password.ts";
import { PostgresTurns } from "./postgres-turns.ts";
import { parsePostgresUrl, type PostgresTarget, tlsAgain } from "./postgres-url.ts";
import { RelationalStore } from "./relational-store.ts";
import { requireUnderstood } from "./migrate.ts";

/** A connection that is not used for so long is ended. */
const IDLE_MS = 30_000;
/** After a failover all connections lead to the new primary after this, also those that nobody ended. */
const LIFETIME_SECONDS = 1_800;
/** Beyond the server's own limit: an answer that is later than this never comes. */
const ANSWER_EXTRA_MS = 2_000;
/** Between two statements of one transaction: a process that stands still lets go of its pool, so that another can claim it. */
const IDLE_IN_TRANSACTION_MS = 4_000;
/** The server finds out within some ten seconds that a machine is gone. */
const KEEP_ALIVES = "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3";

export interface PostgresOptions {
  /** See docs/store.md. */
  readonly url: string;
  /** Instead of one in the URL, PGPASSWORD and PGPASSFILE. A function is asked for each connection: a password may change while we run. */
  readonly password?: string | (() => string);
  readonly migrations?: readonly Migration[];
  /** The driver's connection; another one to watch it. */
  readonly client?: typeof pg.Client;
}

/** Errors: `store_url_invalid`, `store_unavailable`, `store_from_newer_version`, `store_corrupt`. */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { target, pool, migrations } = poolOf(options);
  try {
    await withClient(pool, (client) => migratePostgres(client, target.schema, migrations));
  } catch (error) {
    await pool.end();
    throw error;
  }
  return new RelationalStore(new PostgresTurns({ pool, schema: target.schema, describe: (client) => describe(client, target) }));
}

/** What `relevo store migrate` does; with `isDry` it only looks. Errors: as `openPostgres`. */
export async function migratePostgresStore(options: PostgresOptions, isDry: boolean): Promise<Applied> {
  const { target, pool, migrations } = poolOf(options);
  try {
    return await withClient(pool, async (client) => {
      if (!isDry) return migratePostgres(client, target.schema, migrations);
      const { number, least } = await readSchema(client, target.schema);
      requireUnderstood(number, least, migrations);
      return { from: number, to: Math.max(number, migrations.length) };
    });
  } finally {
    await pool.end();
  }
}

/** A pool of which the caller is in charge: for what reads and writes whole tables. */
export function poolOf({ url, password, migrations = MIGRATIONS, client }: PostgresOptions): {
  readonly target: PostgresTarget;
  readonly pool: pg.Pool;
  readonly migrations: readonly Migration[];
} {
  const target = parsePostgresUrl(url);
  const pool = new pg.Pool({
    ...configOf(target, password),
    Client: readingFilesAnew(url, target, client ?? pg.Client),
    max: target.poolSize,
    idleTimeoutMillis: IDLE_MS,
    maxLifetimeSeconds: LIFETIME_SECONDS,
    onConnect: (made) => checkConnection(made, target, migrations),
  });
  pool.on("error", () => {}); // an idle connection broke: the pool has dropped it, and the next call makes another
  return { target, pool, migrations };
}

async function withClient<T>(pool: pg.Pool, work: (client: ClientBase) => Promise<T>): Promise<T> {
  const client = await pool.connect().catch((error: unknown) => {
    throw toStoreError(error);
  });
  try {
    return await work(client);
  } catch (error) {
    throw toStoreError(error);
  } finally {
    client.release(true);
  }
}

/** Certificates and keys are exchanged before they end, as passwords are: what is in their files counts when a connection is made. */
function readingFilesAnew(url: string, { tls }: PostgresTarget, driver: typeof pg.Client): typeof pg.Client {
  if (tls === false) return driver;
  let last = tls;
  return class extends driver {
    constructor(config: pg.ClientConfig) {
      last = tlsAgain(url, last);
      super(Object.assign(Object.create(config), { ssl: last })); // a copy would not have its password, which is not enumerable
    }
  };
}

function configOf(target: PostgresTarget, password: PostgresOptions["password"]): pg.ClientConfig {
  return {
    host: target.host,
    port: target.port,
    database: target.database,
    user: target.user,
    // Never absent: the driver would look for one by itself, and warn.
    password:
      typeof password === "function" ? () => readable(password) : (password ?? target.password ?? (() => passwordFor(target) ?? "")),
    ssl: target.tls,
    application_name: target.applicationName,
    connectionTimeoutMillis: target.connectTimeoutMs,
    statement_timeout: target.statementTimeoutMs,
    lock_timeout: target.lockTimeoutMs,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    query_timeout: target.statementTimeoutMs + ANSWER_EXTRA_MS,
    options: `-c search_path=${target.schema} -c jit=off ${KEEP_ALIVES}`,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: { getTypeParser: parserOf } as pg.CustomTypesConfig,
  };
}

/** While its file is being exchanged there may be none: that is no reason to end. */
function readable(password: () => string): string {
  try {
    return password();
  } catch (error) {
    throw storeUnavailable("its password cannot be read", error, "see that the file of the password is there and may be read");
  }
}

const INT8 = 20;

/** Whole numbers as numbers: the largest that the store writes are below 10^15. */
function parserOf(oid: number, format?: "text" | "binary"): (value: string) => unknown {
  if (oid === INT8) return Number;
  return pg.types.getTypeParser(oid, format) as (value: string) => unknown;
}

/** Each connection may lead to another server than the one before it: after a failover, to one that is a standby yet, or has a newer schema. */
async function checkConnection(client: ClientBase, target: PostgresTarget, migrations: readonly Migration[]): Promise<void> {
  // One that breaks while it is in use tells whoever uses it, by the next query; without a listener it would end this process.
  client.on("error", () => {});
  const { rows } = await client.query<{ standby: boolean; encoding: string }>(
    `select pg_is_in_recovery() as standby, current_setting('server_encoding') as encoding,
      case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', false) end`,
  );
  const [found] = rows;
  if (found?.standby !== false)
    throw storeUnavailable("the server takes no writes: it is a standby", undefined, "let the URL lead to the primary");
  if (found.encoding !== "UTF8")
    throw new RelevoError("store_url_invalid", "the database does not hold every text", {
      found: found.encoding,
      allowed: "UTF8",
      todo: "create it anew: createdb --encoding UTF8 --template template0",
    });
  const { number, least } = await readSchema(client, target.schema);
  requireUnderstood(number, least, migrations);
}

async function describe(client: ClientBase, target: PostgresTarget): Promise<StoreDescription> {
  const { rows } = await client.query(
    `select current_setting('server_version') as version, current_setting('fsync') as fsync,
      current_setting('synchronous_standby_names') as standbys, current_setting('synchronous_commit') as waits,
      (select count(*) from pg_stat_replication) as replicas,
      (select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum')) as confirming,
      (select count(*) from pg_stat_replication where sync_state is null) as hidden`,
  );
  const found = rows[0] as Readonly<Record<string, string | number>>;
  const { number } = await readSchema(client, target.schema);
  return {
    kind: "postgresql",
    version: String(found["version"]),
    where: target.where,
    schema: number,
    synchronous: synchronousOf(found),
  };
}

function synchronousOf(found: Readonly<Record<string, string | number>>): StoreDescription["synchronous"] {
  if (found["fsync"] !== "on") return "none";
  if (found["standbys"] === "" || found["waits"] === "local") return "disk";
  if (Number(found["confirming"]) > 0) return "standby";
  return Number(found["hidden"]) > 0 ? "unknown" : "standby_missing";
}
