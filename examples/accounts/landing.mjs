/**
 * Where the deposits of `accounts` land: a database row is the landing. The row of the workload holds the highest writer epoch; it is compared and raised in
 * the transaction that writes the deposit, so that nothing older ever gets in.
 *
 *   POST /open      {stamp}                        a new writer begins
 *   POST /deposits  {id, account, cents, stamp}    409 `stale_writer`
 *   GET  /accounts/NAME
 */
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { DatabaseSync } from "node:sqlite";

const sources = new URL("../../src/sdk/index.ts", import.meta.url);
const { createLanding } = await import(existsSync(sources) ? sources.href : "relevo/sdk");

/** The storage of a landing in SQLite. Transactions of one connection cannot overlap, so they wait for each other. */
export function sqliteEpochs(database) {
  database.exec("CREATE TABLE IF NOT EXISTS writer (workload TEXT PRIMARY KEY, epoch TEXT NOT NULL) STRICT");
  const read = database.prepare("SELECT epoch FROM writer WHERE workload = ?");
  const raise = database.prepare("INSERT INTO writer VALUES (?, ?) ON CONFLICT (workload) DO UPDATE SET epoch = excluded.epoch");
  let last = Promise.resolve();
  return {
    transaction(workload, use) {
      const turn = last.then(async () => {
        database.exec("BEGIN IMMEDIATE");
        try {
          const row = { highest: read.get(workload)?.epoch ?? null, raise: (epoch) => void raise.run(workload, epoch) };
          const result = await use(row, database);
          database.exec("COMMIT");
          return result;
        } catch (error) {
          database.exec("ROLLBACK");
          throw error;
        }
      });
      last = turn.catch(() => undefined); // the caller hears of it; the next one only waits
      return turn;
    },
  };
}

export function createLandingServer(path) {
  const database = new DatabaseSync(path);
  database.exec(
    "CREATE TABLE IF NOT EXISTS deposit (id TEXT PRIMARY KEY, account TEXT NOT NULL, cents INTEGER NOT NULL, epoch TEXT) STRICT",
  );
  const landing = createLanding(sqliteEpochs(database));
  const insert = database.prepare("INSERT INTO deposit VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING");
  const sum = database.prepare("SELECT coalesce(sum(cents), 0) AS cents, count(*) AS deposits FROM deposit WHERE account = ?");

  async function deposit({ id, account, cents, stamp }) {
    if (stamp === null) insert.run(id, account, cents, null);
    else await landing.land(stamp, () => void insert.run(id, account, cents, stamp.epoch));
    return { id, ...sum.get(account) };
  }

  async function answer(request) {
    const [, what, name] = request.url.split("/");
    if (request.method === "GET" && what === "accounts") return sum.get(decodeURIComponent(name ?? ""));
    const body = JSON.parse(await textOf(request));
    if (what === "open") return { opened: await landing.open(body.stamp).then(() => true) };
    if (what === "deposits") return deposit(body);
    throw Object.assign(new Error("there is nothing here"), { code: "not_found" });
  }

  return createServer((request, response) => {
    answer(request).then(
      (body) => send(response, 200, body),
      (error) =>
        send(response, error.code === "stale_writer" ? 409 : 400, { error: { code: error.code ?? "failed", message: error.message } }),
    );
  });
}

async function textOf(request) {
  let text = "";
  for await (const chunk of request) {
    text += chunk;
    if (text.length > 64 * 1024) throw new Error("the body is too long");
  }
  return text;
}

function send(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

if (import.meta.main) {
  const port = Number(process.env.PORT ?? "8090");
  const server = createLandingServer(process.env.DATABASE ?? "accounts.db").listen(port, "127.0.0.1", () =>
    console.log(JSON.stringify({ message: "landing serves", port: server.address().port })),
  );
}
