import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { finished, type Instead, type Replay, recorded, replay, type Story } from "../../../test/trino/replay.ts";
import { systemClock } from "../../kernel/system.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { StatementClient, type StatementLimits } from "./statement-client.ts";

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

interface Setup {
  readonly instead?: Instead;
  readonly limits?: Partial<StatementLimits>;
}

async function clientOf(story: Story, { instead, limits = {} }: Setup = {}): Promise<{ client: StatementClient; server: Replay }> {
  const server = await replay(recorded(story), instead === undefined ? {} : { instead });
  const client = new StatementClient({ base: server.base, user: "ann", source: "a-client", clock: systemClock, limits });
  ends.push(
    () => client.close(),
    () => server.stop(),
  );
  return { client, server };
}

const SELECT = "SELECT name, nationkey, CAST(9223372036854775807 AS bigint) AS largest FROM tpch.tiny.nation ORDER BY nationkey LIMIT 3";

/** Answers so many requests of this method otherwise. */
function first(count: number, method: string, answer: (response: Parameters<Instead>[1]) => void): Instead {
  let left = count;
  return (request, response) => {
    if (request.method !== method || left <= 0) return false;
    left--;
    answer(response);
    return true;
  };
}

test("a query is followed to its last page, and an integer beyond a number's reach is kept exactly", async () => {
  const { client, server } = await clientOf("select");

  const result = await client.query(SELECT);

  expect(result).toMatchObject({
    queryId: "20261201_054009_00000_54gri",
    state: "FINISHED",
    columns: [
      { name: "name", type: "varchar(25)" },
      { name: "nationkey", type: "bigint" },
      { name: "largest", type: "bigint" },
    ],
    rows: [
      ["ALGERIA", 0, 9223372036854775807n],
      ["ARGENTINA", 1, 9223372036854775807n],
      ["BRAZIL", 2, 9223372036854775807n],
    ],
  });
  expect(result.error).toBeUndefined();
  expect(server.received[0]).toMatchObject({ body: SELECT, headers: { "x-trino-user": "ann", "x-trino-source": "a-client" } });
});

test("a query that fails is a result with the engine's words, not an error that is thrown", async () => {
  const { client } = await clientOf("user-error");

  const { error, rows } = await client.query("SELECT no_such_column FROM tpch.tiny.nation");

  expect(rows).toEqual([]);
  expect(error).toEqual({
    name: "COLUMN_NOT_FOUND",
    code: 47,
    type: "USER_ERROR",
    message: "line 1:8: Column 'no_such_column' cannot be resolved",
  });
});

test("a transaction is sent along from its start to its end", async () => {
  const { client, server } = await clientOf("transaction");
  const [begun] = [await client.query("START TRANSACTION")];
  const during = client.session.transactionId;
  await client.query("COMMIT");

  expect(begun.startedTransactionId).toBe("0b4e4afe-64e8-486e-ab0b-907c2cf61e35");
  expect([during, client.session.transactionId]).toEqual(["0b4e4afe-64e8-486e-ab0b-907c2cf61e35", undefined]);
  expect(server.received.filter(({ method }) => method === "POST").map(({ headers }) => headers["x-trino-transaction-id"])).toEqual([
    "NONE",
    "0b4e4afe-64e8-486e-ab0b-907c2cf61e35",
  ]);
});

test("session properties and prepared statements are kept here and sent with what follows", async () => {
  const { client, server } = await clientOf("session");
  await client.query("SET SESSION query_priority = 2");
  await client.query("PREPARE one FROM SELECT ? + 1");
  const { rows } = await client.query("EXECUTE one USING 41");
  await client.query("DEALLOCATE PREPARE one");

  expect(rows).toEqual([[42]]);
  const execute = server.received.find(({ body }) => body.startsWith("EXECUTE"));
  expect(execute?.headers).toMatchObject({
    "x-trino-session": "query_priority=2",
    "x-trino-prepared-statement": "one=SELECT%20(%3F%20%2B%201)%0A%0A",
  });
  expect(client.session.prepared.size).toBe(0);
});

test.each([502, 503, 504])("%i is tried again, for the statement and for its pages", async (status) => {
  const failing = (method: string) => first(2, method, (response) => response.writeHead(status).end());
  const [ofPost, ofGet] = [failing("POST"), failing("GET")];
  const { client } = await clientOf("select", { instead: (...both) => ofPost(...both) || ofGet(...both) });

  expect((await client.query(SELECT)).rows).toHaveLength(3);
});

test("what passes is tried again for a bounded time, then told", async () => {
  const { client } = await clientOf("select", {
    instead: first(1_000, "GET", (response) => response.writeHead(503).end("later")),
    limits: { retryForMs: 120 },
  });

  await expect(client.query(SELECT)).rejects.toMatchObject({ code: "instance_failed", class: "retryable", found: "status 503: later" });
});

test.each([
  [500, "instance_failed", "retryable"],
  [403, "instance_refused", "terminal"],
])("another status is told at once: %i", async (status, code, errorClass) => {
  const { client, server } = await clientOf("select", { instead: first(9, "POST", (response) => response.writeHead(status).end()) });

  await expect(client.query(SELECT)).rejects.toMatchObject({ code, class: errorClass });
  expect(server.received).toHaveLength(1);
});

test("a page whose answer was lost is asked for again; a statement whose answer was lost is not, for it may run", async () => {
  const lost = (response: Parameters<Instead>[1]): void => void response.socket?.destroy();
  const pages = await clientOf("select", { instead: first(3, "GET", lost) });
  const statement = await clientOf("select", { instead: first(1, "POST", lost) });

  expect((await pages.client.query(SELECT)).rows).toHaveLength(3);
  await expect(statement.client.query(SELECT)).rejects.toMatchObject({ code: "instance_connection_lost", class: "retryable" });
  expect(statement.server.received).toHaveLength(1);
});

test("a page that is cut in its middle is asked for again", async () => {
  const cut = first(2, "GET", (response) => {
    response.writeHead(200, { "content-length": "1000" }).write('{"id":');
    response.socket?.end();
  });
  const { client } = await clientOf("select", { instead: cut });

  expect((await client.query(SELECT)).rows).toHaveLength(3);
});

test("where it works, as whom, and under which properties goes on as the answers say", async () => {
  const changes = {
    "x-trino-set-catalog": "tpch",
    "x-trino-set-schema": "tiny",
    "x-trino-set-path": "tpch.functions",
    "x-trino-set-role": "system=ROLE%7Banalyst%7D",
    "x-trino-set-session": "a=1%2C+2",
  };
  let answers = 0;
  const { client, server } = await clientOf("select", {
    instead: (_request, response) => {
      const headers = [changes, { "x-trino-clear-session": "a" }, {}][answers++] ?? {};
      response.writeHead(200, headers).end(finished([]));
      return true;
    },
  });
  for (const sql of ["USE tpch.tiny", "RESET SESSION a", "SELECT 1"]) await client.query(sql);

  const sent = server.received.map(({ headers }) =>
    ["x-trino-catalog", "x-trino-schema", "x-trino-path", "x-trino-role", "x-trino-session"].map((name) => headers[name]),
  );
  expect(sent).toEqual([
    [undefined, undefined, undefined, undefined, undefined],
    ["tpch", "tiny", "tpch.functions", "system=ROLE%7Banalyst%7D", "a=1%2C%202"],
    ["tpch", "tiny", "tpch.functions", "system=ROLE%7Banalyst%7D", undefined],
  ]);
});

const STARTING = finished([], {
  stats: { state: "FAILED" },
  error: { errorName: "SERVER_STARTING_UP", errorCode: 65_550, errorType: "INTERNAL_ERROR", message: "Trino server is still initializing" },
});

test("a server that is still starting is sent the statement again, for a bounded time", async () => {
  const soon = await clientOf("select", { instead: first(1, "POST", (response) => response.end(STARTING)) });
  const never = await clientOf("select", {
    instead: first(99, "POST", (response) => response.end(STARTING)),
    limits: { startingForMs: 0 },
  });

  expect((await soon.client.query(SELECT)).rows).toHaveLength(3);
  expect((await never.client.query(SELECT)).error?.name).toBe("SERVER_STARTING_UP");
});

test("a coordinator that was started anew does not know the query: an explicit error, no hang", async () => {
  const { client } = await clientOf("select", {
    instead: first(1, "GET", (response) => response.writeHead(404).end("Error 404 Not Found: Query not found")),
  });

  await expect(client.query(SELECT)).rejects.toMatchObject({ code: "trino_query_gone", class: "terminal" });
});

const RUNNING = "SELECT count(*), sum(x * 7 % 11) FROM TABLE(sequence(1, 3000000000)) AS t(x)";

test("step by step a statement gives page after page, and is cancelled by a DELETE of where the next one is", async () => {
  const { client, server } = await clientOf("running");
  const statement = await client.start(RUNNING);
  const states = [(await statement.next())?.state, (await statement.next())?.state, (await statement.next())?.state];
  await statement.cancel();

  expect(statement.queryId).toBe("20261201_054016_00011_54gri");
  expect(states).toEqual(["QUEUED", "QUEUED", "QUEUED"]);
  expect(await statement.next()).toBeUndefined();
  expect(server.received.at(-1)).toMatchObject({ method: "DELETE", path: expect.stringMatching(/^\/v1\/statement\/executing\//) });
});

test("a query that nobody waits for any more is cancelled at the server", async () => {
  const aborted = new AbortController();
  const { client, server } = await clientOf("running", {
    instead: ({ path }) => {
      if (!path.includes("/executing/") || aborted.signal.aborted) return false;
      aborted.abort();
      return true; // the answer never comes
    },
  });

  await expect(client.query(RUNNING, aborted.signal)).rejects.toMatchObject({ code: "cancelled", class: "cancelled" });
  expect(server.received.at(-1)?.method).toBe("DELETE");
});

test.each([
  ["trino_query_timeout", { queryMs: -1 }],
  ["trino_result_too_large", { rows: -1 }],
])("a bound of ours ends the query here and there: %s", async (code, limits) => {
  const { client, server } = await clientOf("running", { limits });

  await expect(client.query(RUNNING)).rejects.toMatchObject({ code });
  await expect.poll(() => server.received.at(-1)?.method).toBe("DELETE");
});

test("an answer without end is given up", async () => {
  const { client } = await clientOf("select", {
    instead: first(1, "POST", (response) => response.end("x".repeat(20_000))),
    limits: { pageBytes: 10_000 },
  });

  await expect(client.query(SELECT)).rejects.toMatchObject({ code: "instance_answer_invalid", found: "TOO_LONG" });
});

test("a server that says nothing is given up after the limit of one request", async () => {
  const clock = new VirtualClock();
  const arrived = Promise.withResolvers<void>();
  const silent = createServer(() => arrived.resolve()).listen(0, "127.0.0.1");
  await new Promise((resolve) => silent.once("listening", resolve));
  const base = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const client = new StatementClient({ base, user: "ann", clock, limits: { requestMs: 1_000 } });
  const asked = client.query("SELECT 1");
  asked.catch(() => undefined); // judged below
  await arrived.promise;
  await clock.advance(1_000);

  await expect(asked).rejects.toMatchObject({ code: "instance_timeout", class: "retryable" });
  await client.close();
  silent.close().closeAllConnections();
});

test("what no header may hold is told, and nothing is sent", async () => {
  const { server } = await clientOf("select");
  const client = new StatementClient({ base: server.base, user: "ann\nx-trino-source: relevo", clock: systemClock });

  await expect(client.query(SELECT)).rejects.toMatchObject({ code: "instance_call_invalid", class: "terminal" });
  expect(server.received).toEqual([]);
  await client.close();
});

test.each([
  ["no JSON", "<html>"],
  ["another shape", '{"id":1}'],
])("what is no answer of Trino's is told: %s", async (_what, text) => {
  const { client } = await clientOf("select", { instead: first(1, "POST", (response) => response.end(text)) });

  await expect(client.query(SELECT)).rejects.toMatchObject({ code: "instance_answer_invalid", class: "terminal" });
});
