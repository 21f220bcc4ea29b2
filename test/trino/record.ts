/**
 * Records what a real Trino answers, for the tests that replay it: `node test/trino/record.ts`, which rewrites recorded/*.json. Each file holds the exchanges of
 * one story in their order; addresses are made the same (`http://coordinator`, `http://worker-1`), nothing else is changed. Run it again when the server of
 * tools/peers/trino.sh becomes a newer one.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ACTIVE_WORKERS, QUEUED_QUERIES, RUNNING_QUERIES } from "../../src/model/trino.ts";
import { systemClock } from "../../src/kernel/system.ts";
import type { Exchange } from "./replay.ts";
import { startTrino, TRINO_USER, type TrinoCluster } from "./server.ts";

const FOLDER = join(import.meta.dirname, "recorded");
const KEPT_HEADERS = /^(content-type|x-trino-.*|retry-after)$/;
const SOURCE = { "x-trino-user": TRINO_USER, "x-trino-source": "relevo" };
const CLIENT = { "x-trino-user": "ann", "x-trino-source": "a-client", "x-trino-transaction-id": "NONE" };

interface Call {
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const cluster = await startTrino();
try {
  await record(cluster);
} finally {
  await cluster.stop();
}

async function record({ coordinator, workers, ...rest }: TrinoCluster): Promise<void> {
  const nodes = [coordinator, ...workers];
  const story: Exchange[] = [];

  const nameless = (text: string): string =>
    nodes.reduce((sofar, node, index) => sofar.replaceAll(node.base, index === 0 ? "http://coordinator" : `http://worker-${index}`), text);

  async function ask(url: string, { method = "GET", body, headers = {} }: Call = {}): Promise<Exchange> {
    const response = await fetch(url, { method, ...(body === undefined ? {} : { body }), headers });
    const kept = [...response.headers].filter(([name]) => KEPT_HEADERS.test(name));
    const exchange: Exchange = {
      method,
      url: nameless(url),
      ...(body === undefined ? {} : { body }),
      status: response.status,
      headers: Object.fromEntries(kept.map(([name, value]) => [name, nameless(value)])),
      text: nameless(await response.text()),
    };
    story.push(exchange);
    return exchange;
  }

  function keep(name: string): void {
    const exchanges = story.splice(0);
    writeFileSync(join(FOLDER, `${name}.json`), `${JSON.stringify(exchanges, null, 2)}\n`);
    process.stderr.write(`${name}: ${exchanges.map(({ method, status }) => `${method} ${status}`).join(", ")}\n`);
  }

  /** To its end, or for so many pages. Gives the last answer. */
  async function statement(sql: string, headers: Readonly<Record<string, string>> = CLIENT, pages = 1_000): Promise<Exchange> {
    let answer = await ask(`${coordinator.base}/v1/statement`, { method: "POST", body: sql, headers });
    for (let page = 0; page < pages; page++) {
      const next = nextUriOf(answer);
      if (next === undefined) return answer;
      answer = await ask(next.replace("http://coordinator", coordinator.base), { headers });
    }
    return answer;
  }

  await ask(`${coordinator.base}/v1/info`);
  await ask(`${coordinator.base}/v1/info/coordinator`);
  await ask(`${coordinator.base}/v1/info/state`);
  await ask(`${workers[0]?.base}/v1/info`);
  await ask(`${workers[0]?.base}/v1/info/coordinator`);
  await ask(`${workers[0]?.base}/v1/info/state`);
  keep("info");

  for (const names of [[ACTIVE_WORKERS], [QUEUED_QUERIES, RUNNING_QUERIES], ["no_such_gauge"]])
    await ask(`${coordinator.base}/metrics?${names.map((name) => `name[]=${name}`).join("&")}`, { headers: SOURCE });
  await ask(`${coordinator.base}/metrics?name[]=${ACTIVE_WORKERS}`);
  keep("gauges");

  await statement(
    "SELECT name, nationkey, CAST(9223372036854775807 AS bigint) AS largest FROM tpch.tiny.nation ORDER BY nationkey LIMIT 3",
  );
  keep("select");
  await statement("SELECT no_such_column FROM tpch.tiny.nation");
  keep("user-error");
  await statement("START TRANSACTION");
  const transaction = story.map(({ headers }) => headers["x-trino-started-transaction-id"]).find((id) => id !== undefined) ?? "";
  await statement(
    "SELECT transaction_id, auto_commit_context, read_only, idle_time_secs FROM system.runtime.transactions WHERE NOT auto_commit_context",
    SOURCE,
  );
  await statement("COMMIT", { ...CLIENT, "x-trino-transaction-id": transaction });
  keep("transaction");
  await statement("SET SESSION query_priority = 2");
  await statement("PREPARE one FROM SELECT ? + 1");
  await statement("EXECUTE one USING 41", { ...CLIENT, "x-trino-prepared-statement": "one=SELECT%20%3F%20%2B%201" });
  await statement("DEALLOCATE PREPARE one", { ...CLIENT, "x-trino-prepared-statement": "one=SELECT%20%3F%20%2B%201" });
  keep("session");

  await statement("SELECT node_id, http_uri, node_version, coordinator, state FROM system.runtime.nodes", SOURCE);
  keep("nodes");
  await statement("SELECT DISTINCT node_id, query_id FROM system.runtime.tasks", SOURCE);
  keep("probe");

  const running = await statement("SELECT count(*), sum(x * 7 % 11) FROM TABLE(sequence(1, 3000000000)) AS t(x)", CLIENT, 2);
  await systemClock.sleep(3_000);
  await ask(`${coordinator.base}/metrics?name[]=${QUEUED_QUERIES}&name[]=${RUNNING_QUERIES}`, { headers: SOURCE });
  await ask(`${coordinator.base}/v1/query?state=QUEUED&state=PLANNING&state=STARTING&state=RUNNING&state=FINISHING`, { headers: SOURCE });
  await ask((nextUriOf(running) ?? "").replace("http://coordinator", coordinator.base), { method: "DELETE", headers: CLIENT });
  keep("running");

  const [worker] = workers;
  if (worker === undefined) return;
  const put = (base: string, state: string, headers: Readonly<Record<string, string>>) =>
    ask(`${base}/v1/info/state`, {
      method: "PUT",
      body: JSON.stringify(state),
      headers: { "content-type": "application/json", ...headers },
    });
  await put(worker.base, "DRAINING", {});
  await put(worker.base, "DRAINING", { "x-trino-user": "ann" });
  await put(worker.base, "RELEVO_PROBE", { "x-trino-user": "ann" });
  await put(worker.base, "RELEVO_PROBE", SOURCE);
  await put(worker.base, "ACTIVE", SOURCE);
  await put(worker.base, "DRAINING", SOURCE);
  await ask(`${worker.base}/v1/info/state`);
  await put(worker.base, "ACTIVE", SOURCE);
  await ask(`${worker.base}/v1/info/state`);
  await put(worker.base, "SHUTTING_DOWN", SOURCE);
  await ask(`${worker.base}/v1/info/state`);
  await put(worker.base, "ACTIVE", SOURCE);
  await put(coordinator.base, "DRAINING", SOURCE);
  keep("worker-states");

  await coordinator.kill("SIGKILL");
  coordinator.begin();
  await rest.untilActive(1);
  await ask(`${coordinator.base}/v1/info`);
  await ask((nextUriOf(running) ?? "").replace("http://coordinator", coordinator.base), { headers: CLIENT });
  keep("restarted-coordinator");
}

function nextUriOf({ text }: Exchange): string | undefined {
  return (JSON.parse(text) as { nextUri?: string }).nextUri;
}
