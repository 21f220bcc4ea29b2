/** The gateway before a real coordinator: what its answers look like from outside, and that nothing of them is read wrongly. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { StatementClient } from "../../src/drivers/trino/statement-client.ts";
import { epoch } from "../../src/kernel/epoch.ts";
import { systemClock } from "../../src/kernel/system.ts";
import type { Gateway } from "../../src/gateway/server.ts";
import { checkCounts, memberOf, membershipLine, startTestGateway, until, untilReady } from "../../src/gateway/testing/gateway.ts";
import { bootIdOf } from "../../src/model/trino.ts";
import { startTrino, type TrinoCluster, TRINO_USER } from "./server.ts";

let cluster: TrinoCluster;

beforeAll(async () => {
  cluster = await startTrino({ workers: 1 });
});
afterAll(() => cluster.stop());

interface Info {
  readonly nodeId: string;
  readonly coordinatorId: string;
}

async function member() {
  const { nodeId, coordinatorId } = (await (await fetch(`${cluster.coordinator.base}/v1/info`)).json()) as Info;
  return memberOf("trino-1", { port: cluster.coordinator.port, bootId: bootIdOf(nodeId, coordinatorId) });
}

async function twoReplicas(): Promise<readonly [Gateway, Gateway]> {
  const gateways = [await startTestGateway(), await startTestGateway()] as const;
  const trino = { routing: {}, clientTimeoutMs: 300_000, transactionTimeoutMs: 300_000 };
  const line = membershipLine([
    { route: "trino", generation: epoch(1, 1), policy: { trino, retry: "idempotent" }, members: [await member()] },
  ]);
  for (const gateway of gateways) gateway.apply(line);
  await Promise.all(gateways.map(untilReady));
  return gateways;
}

const sessions = (gateway: Gateway) => gateway.report().routes[0]?.members[0]?.sessions;

interface Page {
  readonly id: string;
  readonly nextUri?: string;
  readonly data?: readonly unknown[];
  readonly error?: { readonly errorName: string; readonly message: string };
}

/** As a client would that another replica answers each time; `fetch` asks for gzip. */
async function runThrough(
  gateways: readonly Gateway[],
  sql: string,
): Promise<{ readonly pages: readonly Page[]; readonly packed: number }> {
  const headers = { "x-trino-user": TRINO_USER };
  const pages: Page[] = [];
  let packed = 0;
  let answer = await fetch(`${gateways[0]?.url}/v1/statement`, { method: "POST", body: sql, headers });
  for (let turn = 1; ; turn++) {
    expect(answer.status).toBe(200);
    if (answer.headers.get("content-encoding") === "gzip") packed += 1;
    const page = (await answer.json()) as Page;
    pages.push(page);
    if (page.nextUri === undefined) return { pages, packed };
    const { origin, pathname, search } = new URL(page.nextUri);
    expect(gateways.map((gateway) => gateway.url)).toContain(origin);
    answer = await fetch(`${gateways[turn % gateways.length]?.url}${pathname}${search}`, { headers });
  }
}

test("pages come through every replica, with addresses that lead to it, packed or not, and the query is over with the last one", async () => {
  const gateways = await twoReplicas();

  const { pages, packed } = await runThrough(gateways, "SELECT orderkey, comment FROM tpch.tiny.orders");

  expect(pages.flatMap((page) => page.data ?? []).length).toBe(15_000);
  expect(packed).toBeGreaterThan(0);
  // The replica that saw the last page counts nothing any more; the other one waits for its time.
  expect(gateways.map(sessions)).toContain(0);
  for (const gateway of gateways) checkCounts(gateway);
});

test("a transaction is committed through the gateway with the id that it gave out, and not with a bare one", async () => {
  const [gateway] = await twoReplicas();
  const client = new StatementClient({ base: gateway.url, user: TRINO_USER, clock: systemClock });

  const started = await client.query("START TRANSACTION");
  expect(started.startedTransactionId).toContain(".v1.");
  expect(sessions(gateway)).toBe(1);
  expect((await client.query("SELECT count(*) FROM tpch.tiny.nation")).rows).toEqual([[25]]);
  await client.query("COMMIT");
  expect(sessions(gateway)).toBe(0);

  const bare = await fetch(`${gateway.url}/v1/statement`, {
    method: "POST",
    body: "SELECT 1",
    headers: { "x-trino-user": TRINO_USER, "x-trino-transaction-id": String(started.startedTransactionId).split(".")[0] ?? "" },
  });
  expect(await bare.json()).toMatchObject({ error: { errorName: "RELEVO_TRANSACTION_UNKNOWN" }, stats: { state: "FAILED" } });
  await client.close();
});

test("a query whose coordinator is killed fails at its client in the protocol's own shape, before and after it was started anew", async () => {
  const [gateway, other] = await twoReplicas();
  const headers = { "x-trino-user": TRINO_USER };
  const first = (await (
    await fetch(`${gateway.url}/v1/statement`, { method: "POST", body: "SELECT count(*) FROM tpch.sf100.lineitem", headers })
  ).json()) as Page;

  await cluster.coordinator.kill();
  const refused = await fetch(String(first.nextUri), { headers });
  expect([refused.status, refused.headers.get("retry-after"), refused.headers.get("relevo-rejected")]).toEqual([
    503,
    "1",
    "session_unreachable",
  ]);
  await refused.text();

  cluster.coordinator.begin();
  await until("another process answers", () => gateway.report().routes[0]?.members[0]?.healthReason === "boot_id_mismatch", 300_000);
  const unknown = async () => ((await (await fetch(String(first.nextUri), { headers })).json()) as Page).error?.errorName;
  await until("it takes polls", async () => (await unknown()) === "RELEVO_QUERY_UNKNOWN", 300_000);

  for (const one of [gateway, other]) checkCounts(one);
});
