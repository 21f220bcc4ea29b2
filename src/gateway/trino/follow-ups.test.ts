/** Follow-ups of a query: to the cluster that runs it, by what its id carries, through any replica, until the seal. */
import { expect, test } from "vitest";
import { checkCounts, until } from "../testing/gateway.ts";
import { follow, healthAt, type Page, post, runOut, sessionsAt, startFleet } from "./testing/fleet.ts";

test("each page of a query comes from the cluster that runs it, through every replica, also while that one drains (D13)", async () => {
  const { one, two, gateways, apply } = await startFleet();
  const first = await post(gateways[0], "rows 4");
  expect(first).toMatchObject({
    id: "20261201_044100_00001_aaaaa",
    nextUri: "http://trino:8443/v1/statement/queued/20261201_044100_00001_aaaaa/yb1c3/1",
  });

  await apply([one.member({ state: "draining" }), two.member()]);
  const second = await follow(gateways[1], first.nextUri);
  const elsewhere = await post(gateways[1], "rows 1");
  const last = await runOut(gateways, second);

  expect([second, last].map((page) => page.headers["relevo-instance"])).toEqual(["trino-1", "trino-1"]);
  expect(last).toMatchObject({ status: 200, data: [[4]], stats: { state: "FINISHED" } });
  expect(elsewhere).toMatchObject({ id: "20261201_044100_00001_bbbbb", headers: { "relevo-instance": "trino-2" } });
  for (const gateway of gateways) checkCounts(gateway);
});

test("a query is open work of its cluster until its last page went out, its cancel, or its failure (I14)", async () => {
  const { gateways } = await startFleet();
  const [gateway] = gateways;
  const sessions = () => sessionsAt(gateway, "trino-1");

  const queries = [await post(gateway, "rows 2"), await post(gateway, "rows 9"), await post(gateway, "fail")];
  expect(sessions()).toBe(3);
  await runOut([gateway], queries[0] as Page);
  expect(sessions()).toBe(2);
  expect((await follow(gateway, queries[1]?.nextUri, "DELETE")).status).toBe(204);
  expect(sessions()).toBe(1);
  expect(await follow(gateway, queries[2]?.nextUri)).toMatchObject({ error: { errorName: "X" } });
  expect(sessions()).toBe(0);
});

test("a query is seen to be open, and to be over, in compressed answers too", async () => {
  const { gateways } = await startFleet({}, { gzip: true });
  const headers = { "accept-encoding": "br, gzip" };
  const first = await post(gateways[0], "rows 1");
  const packed = await follow(gateways[0], first.nextUri, "GET", headers).catch((error: unknown) => error);

  expect(packed).toBeInstanceOf(SyntaxError); // it is not JSON: it came packed
  expect(sessionsAt(gateways[0], "trino-1")).toBe(0);
});

test("a client that never polls again holds its cluster for the client's time-out, and no longer", async () => {
  const { gateways } = await startFleet({ trino: { routing: {}, clientTimeoutMs: 300, transactionTimeoutMs: 60_000 } });
  await post(gateways[0], "rows 2");
  expect(sessionsAt(gateways[0], "trino-1")).toBe(1);

  await until("it is given up", () => sessionsAt(gateways[0], "trino-1") === 0);
});

test("a heartbeat keeps a query open", async () => {
  const { gateways } = await startFleet();
  const first = await post(gateways[0], "rows 2");

  expect((await follow(gateways[1], first.nextUri, "HEAD")).status).toBe(200);
  expect(sessionsAt(gateways[1], "trino-1")).toBe(1);
});

test("a poll of a query whose cluster is sealed is told that the query failed, and goes nowhere else", async () => {
  const { one, two, gateways, apply } = await startFleet();
  const first = await post(gateways[0], "rows 2");
  await apply([one.member({ state: "sealed" }), two.member()]);

  const page = await follow(gateways[1], first.nextUri);

  expect(page).toMatchObject({
    status: 200,
    id: first.id,
    stats: { state: "FAILED" },
    error: { errorName: "RELEVO_QUERY_LOST", errorType: "INTERNAL_ERROR" },
    headers: { "relevo-rejected": "query_lost" },
  });
  expect(page.nextUri).toBeUndefined();
  expect(two.paths).toEqual([]);
  checkCounts(gateways[1]);
});

test("a coordinator that was started anew at the same address gets nothing more, and a poll of a query of before is told that it failed", async () => {
  const { one, two, gateways, apply } = await startFleet({ healthEveryMs: 50 });
  await apply([one.member(), two.member()]);
  const first = await post(gateways[0], "rows 2");
  const before = one.statements.length;
  const [old, other] = first.id?.endsWith("aaaaa") === true ? [one, two] : [two, one];
  old.queries.clear();
  old.id = "ccccc";

  await until("it is seen", () => healthAt(gateways[0], old.instance.name) === "boot_id_mismatch");
  for (let count = 0; count < 3; count++) expect((await post(gateways[0], "rows 1")).headers["relevo-instance"]).toBe(other.instance.name);
  expect(one.statements.length + two.statements.length).toBe(before + (old === one ? 3 : 4));
  expect(await follow(gateways[0], first.nextUri)).toMatchObject({
    status: 200,
    id: first.id,
    error: { errorName: "RELEVO_QUERY_UNKNOWN" },
  });
  checkCounts(gateways[0]);
});

test("a coordinator that is starting gets no statement", async () => {
  const { one, gateways } = await startFleet({ healthEveryMs: 50, queueWaitMs: 50 });
  one.isStarting = true;
  await until("it is seen", () => healthAt(gateways[0], "trino-1") === "starting");

  expect(await post(gateways[0], "rows 1")).toMatchObject({ status: 503 });
  expect(one.statements).toEqual([]);
});

test("of two clusters with the same coordinator id neither is guessed", async () => {
  const { one, two, gateways, apply } = await startFleet();
  const first = await post(gateways[0], "rows 2");
  two.id = "aaaaa";
  await apply([one.member(), two.member()]);

  expect(await follow(gateways[0], first.nextUri)).toMatchObject({ error: { errorName: "RELEVO_COORDINATOR_AMBIGUOUS" } });
});

test("paths of the console with a query id go to its cluster", async () => {
  const { one, two, gateways, apply } = await startFleet();
  const first = await post(gateways[0], "rows 2");
  await apply([one.member({ state: "draining" }), two.member()]);

  const base = "http://trino:8443";
  for (const path of [`/ui/api/query/${first.id}`, `/ui/query.html?${first.id}`, `/v1/query/${first.id}?pruned=true`])
    expect((await follow(gateways[1], `${base}${path}`)).headers["relevo-instance"]).toBe("trino-1");
  expect(await follow(gateways[1], `${base}/v1/query/20261201_044100_00001_zzzzz`)).toMatchObject({
    status: 410,
    headers: { "relevo-rejected": "query_lost" },
  });
});
