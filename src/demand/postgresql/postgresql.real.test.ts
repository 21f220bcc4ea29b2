/** Queries to a real PostgreSQL. */
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { PostgresCluster } from "../../../test/postgres/cluster.ts";
import type { DemandSource } from "../port.ts";
import { look, troubleOf, within } from "../testing/look.ts";
import { openSource } from "../testing/open-source.ts";
import { postgresqlAdapter } from "./adapter.ts";

const QUERY = `
  SELECT count(*) FILTER (WHERE state = 'waiting') AS backlog,
         count(*) FILTER (WHERE state = 'taken') AS in_flight,
         extract(epoch FROM now() - min(at) FILTER (WHERE state = 'waiting')) AS oldest_age_seconds,
         'captures' AS flow
  FROM work.jobs`;

let cluster: PostgresCluster;
const open: DemandSource[] = [];

beforeAll(async () => {
  cluster = await PostgresCluster.start({ access: ["host all guarded 127.0.0.1/32 scram-sha-256"] });
  await run(`CREATE ROLE reader LOGIN; CREATE ROLE guarded LOGIN PASSWORD 'right'`);
});
afterAll(() => cluster.stop());
beforeEach(() =>
  run(`
    DROP SCHEMA IF EXISTS work CASCADE; CREATE SCHEMA work;
    CREATE TABLE work.jobs (state text NOT NULL DEFAULT 'waiting', at timestamptz NOT NULL DEFAULT now());
    GRANT USAGE ON SCHEMA work TO reader, guarded; GRANT SELECT ON work.jobs TO reader, guarded`),
);
afterEach(async () => {
  for (const source of open.splice(0)) await source.close();
});

async function run(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url("relevo") });
  await client.connect();
  await client.query(sql);
  await client.end();
}

function url(user: string, database = "postgres"): string {
  return `postgresql://${user}@127.0.0.1:${cluster.port}/${database}`;
}

function sourceOf(query: string, address = url("reader")): DemandSource {
  const source = openSource(
    postgresqlAdapter,
    { kind: "postgresql", connection: "p", query },
    { name: "p", kind: "postgresql", url: address },
  );
  open.push(source);
  return source;
}

test("a role with SELECT alone reads backlog, what is taken, and the age by the server's clock (K1, K8)", async () => {
  await run(`
    INSERT INTO work.jobs (state, at) VALUES ('waiting', now() - interval '90 seconds'), ('waiting', now()), ('taken', now());`);
  const reading = await look(sourceOf(QUERY), { flow: "captures" });
  expect(reading).toEqual({
    backlog: 2,
    inFlight: 1,
    oldestAgeMs: expect.any(Number),
    flow: "captures",
    valueAt: null,
    sourceNow: null,
  });
  const { oldestAgeMs } = reading as { oldestAgeMs: number };
  expect(oldestAgeMs).toBeGreaterThanOrEqual(90_000);
  expect(oldestAgeMs).toBeLessThan(120_000);
  expect(await troubleOf(sourceOf(QUERY), { flow: "orders" })).toBe("other_flow");
});

test.each([
  ["nothing at all", "SELECT 1 AS backlog WHERE false", /^missing: the query answers no row/],
  ["several rows", "SELECT 1 AS backlog UNION ALL SELECT 2", /^partial: /],
  ["null", "SELECT NULL::int AS backlog", /^not_a_number: backlog is null/],
  ["text", "SELECT 'many' AS backlog", /^not_a_number: backlog is the text "many"/],
  ["NaN", "SELECT 'NaN'::numeric AS backlog", /^not_a_number: /],
  ["no end", "SELECT 'Infinity'::float8 AS backlog", /^infinite: /],
  ["less than nothing", "SELECT -1 AS backlog", /^negative: /],
  ["a number too large for us", "SELECT 9223372036854775807 AS backlog", /^infinite: /],
  ["no table", "SELECT count(*) AS backlog FROM work.none", /^missing: .*42P01/],
  ["no SQL", "SELEC 1", /^missing: .*42601/],
  ["a failing query", "SELECT 1/0 AS backlog", /^missing: .*22012/],
  ["an end of our parenthesis", "SELECT 1 AS backlog) AS x; DROP TABLE work.jobs; --", /^missing: .*42601/],
  ["a write", "WITH gone AS (DELETE FROM work.jobs RETURNING 1) SELECT count(*) AS backlog FROM gone", /^missing: .*0A000/],
  ["a write by a function", "SELECT setval('work.s', 5) AS backlog", /^missing: .*25006/],
])("%s is no demand (K11)", async (_what, query, expected) => {
  await run("INSERT INTO work.jobs DEFAULT VALUES; CREATE SEQUENCE work.s; GRANT ALL ON SEQUENCE work.s TO reader");
  expect(await look(sourceOf(query))).toMatch(expected);
  expect(await look(sourceOf(QUERY))).toMatchObject({ backlog: 1 });
});

test("a query keeps no lock in the connection that all signals share", async () => {
  expect(await look(sourceOf("SELECT 0 AS backlog FROM pg_advisory_lock(7)"))).toMatchObject({ backlog: 0 });
  expect(await look(sourceOf("SELECT count(*) AS backlog FROM pg_locks WHERE locktype = 'advisory'"))).toMatchObject({ backlog: 0 });
});

test("what may not be read, or not by this password, is refused by name (K8)", async () => {
  expect(await look(sourceOf("SELECT count(*) AS backlog FROM pg_authid"))).toMatch(/^credentials_refused: the role may not read.*42501/);
  expect(await look(sourceOf(QUERY, url("guarded:wrong")))).toMatch(/^credentials_refused: PostgreSQL refuses our credentials.*28P01/);
  expect(await troubleOf(sourceOf(QUERY, url("guarded")))).toBe("credentials_refused");
  expect(await look(sourceOf(QUERY, url("guarded:right")))).toMatchObject({ backlog: 0 });
  expect(await troubleOf(sourceOf(QUERY, url("nobody-is-called-so")))).toBe("credentials_refused");
  expect(await look(sourceOf(QUERY, url("reader", "none")))).toMatch(/^missing: there is no such database/);
});

test("a query that lasts is given up, and leaves no connection behind", async () => {
  const source = sourceOf("SELECT count(*) AS backlog FROM pg_sleep(60)");
  for (let index = 0; index < 6; index++) expect(await troubleOf(source, {}, within(100))).toBe("unreachable");
  expect(await look(sourceOf(QUERY))).toMatchObject({ backlog: 0 });
});

test("a connection that ends under a query is a look that failed, never an error that nobody handles", async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  process.on("uncaughtExceptionMonitor", note);
  try {
    const source = sourceOf("SELECT pg_terminate_backend(pg_backend_pid())::int AS backlog");
    for (let index = 0; index < 5; index++) expect(await troubleOf(source)).toBe("unreachable");
    expect(await look(sourceOf(QUERY))).toMatchObject({ backlog: 0 });
  } finally {
    process.off("uncaughtExceptionMonitor", note);
  }
  expect(unhandled).toEqual([]);
});

test("a server that was killed is unreachable, and read again when it is back; a table that was made anew counts from zero", async () => {
  const source = sourceOf(QUERY);
  await run("INSERT INTO work.jobs DEFAULT VALUES");
  expect(await look(source)).toMatchObject({ backlog: 1 });
  await cluster.end("killed");
  expect(await troubleOf(source)).toBe("unreachable");
  await cluster.launch();
  expect(await troubleOf(source)).toBe("valid");
  await run("DROP TABLE work.jobs");
  expect(await troubleOf(source)).toBe("missing");
  await run("CREATE TABLE work.jobs (state text, at timestamptz); GRANT SELECT ON work.jobs TO reader");
  expect(await look(source)).toMatchObject({ backlog: 0, inFlight: 0, oldestAgeMs: null });
});
