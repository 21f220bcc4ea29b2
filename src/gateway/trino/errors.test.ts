/** Errors as Trino's clients understand them: they repeat 502, 503 and 504, POSTs too, so what may run already is never answered so. */
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../kernel/system.ts";
import { checkCounts, membershipLine, startTestGateway, until, untilReady, virtualClock } from "../testing/gateway.ts";
import { startCoordinator } from "./testing/coordinator.ts";
import { follow, post, runOut, sessionsAt, startFleet, TRINO } from "./testing/fleet.ts";

test("a statement whose coordinator is killed while it has it failed for its client, and runs nowhere else", async () => {
  const { one, two, gateways, apply } = await startFleet();
  await apply([one.member()]);
  one.intercept = () => true; // it takes it and says nothing
  const answer = post(gateways[0], "insert");
  await until("it is taken", () => one.statements.length === 0 && one.paths.includes("/v1/statement"));
  await apply([one.member(), two.member()]);

  await one.instance.kill();

  expect(await answer).toMatchObject({
    status: 200,
    stats: { state: "FAILED" },
    error: { errorName: "RELEVO_ANSWER_LOST", errorType: "INTERNAL_ERROR" },
  });
  expect(two.statements).toEqual([]);
  checkCounts(gateways[0]);
});

test("a statement that a dead coordinator provably did not take runs at another one", async () => {
  const { one, two, gateways, apply } = await startFleet({ healthEveryMs: 60_000 });
  await apply([one.member(), two.member()]);
  await one.instance.kill();

  for (let count = 0; count < 4; count++) expect((await post(gateways[0], "rows 1")).headers["relevo-instance"]).toBe("trino-2");
});

test("while nothing can serve, a statement is refused so that its client tries again, whatever key it has", async () => {
  const { one, gateways, apply } = await startFleet({ queueWaitMs: 50, healthEveryMs: 60_000 });
  await one.instance.kill();
  expect(await post(gateways[0], "rows 1", { "Idempotency-Key": "k" })).toMatchObject({ status: 503, headers: { "retry-after": "1" } });

  await apply([one.member({ state: "draining" })]);
  expect(await post(gateways[0], "rows 1")).toMatchObject({
    status: 503,
    headers: { "retry-after": "1", "relevo-rejected": "queue_timeout" },
  });
  checkCounts(gateways[0]);
});

test("polls of a killed coordinator are refused so that their client tries again, until it is known to be gone: then the query has failed", async () => {
  const { one, two, gateways, apply } = await startFleet();
  const first = await post(gateways[0], "rows 3");
  one.intercept = () => true;
  const polled = follow(gateways[0], first.nextUri);
  await until("it is asked", () => one.paths.length === 2);
  await one.instance.kill();

  expect(await polled).toMatchObject({ status: 503, headers: { "relevo-rejected": "session_unreachable", "retry-after": "1" } });
  expect(await follow(gateways[1], first.nextUri)).toMatchObject({ status: 503 });
  await apply([one.member({ state: "sealed" }), two.member()]);
  expect(await follow(gateways[0], first.nextUri)).toMatchObject({ status: 200, id: first.id, error: { errorName: "RELEVO_QUERY_LOST" } });
  expect(sessionsAt(gateways[0], "trino-1")).toBe(0);
  for (const gateway of gateways) checkCounts(gateway);
});

test("a poll that is under way when its cluster is sealed is told so at once", async () => {
  const { one, two, gateways, apply } = await startFleet();
  const first = await post(gateways[0], "rows 3");
  one.intercept = () => true;
  const polled = follow(gateways[0], first.nextUri);
  await until("it is asked", () => one.paths.length === 2);

  await apply([one.member({ state: "sealed" }), two.member()]);

  expect(await polled).toMatchObject({ status: 200, id: first.id, error: { errorName: "RELEVO_SESSION_LOST" } });
  checkCounts(gateways[0]);
});

test("a page whose answer was lost is asked for again at the same cluster, for its number makes it the same page", async () => {
  const { one, gateways } = await startFleet();
  const first = await post(gateways[0], "rows 2");
  let lost = 0;
  one.intercept = (request) => {
    if (lost > 0) return false;
    lost += 1;
    request.socket.resetAndDestroy();
    return true;
  };

  const page = await follow(gateways[0], first.nextUri);

  expect(page).toMatchObject({ status: 200, data: [[1]], headers: { "relevo-retried": "1" } });
  expect(await runOut(gateways, page)).toMatchObject({ stats: { state: "FINISHED" } });
});

test("a replica that has not heard of a cluster yet lets the client try again, at this replica or another", async () => {
  const { gateways } = await startFleet();
  const now = new Date(systemClock.now()).toISOString().replaceAll(/[-:]/g, "").replace("T", "_").slice(0, 15);
  const path = (begun: string) => `http://trino:8443/v1/statement/executing/${begun}_00001_zzzzz/y1/1`;

  expect(await follow(gateways[0], path(now))).toMatchObject({
    status: 503,
    headers: { "relevo-rejected": "cluster_unknown", "retry-after": "1" },
  });
  expect(await follow(gateways[0], path("20201201_044100"))).toMatchObject({ status: 200, error: { errorName: "RELEVO_QUERY_LOST" } });
});

test("an upgrade to another protocol is refused: nothing of it would be seen", async () => {
  const { gateways } = await startFleet();

  expect((await post(gateways[0], "rows 1", { connection: "Upgrade", upgrade: "websocket" })).status).toBe(400);
});

test("a coordinator that stands still is given up after a minute for each try, and the client may ask again", async () => {
  const clock = { ...virtualClock(), sleep: systemClock.sleep };
  const one = await startCoordinator("trino-1", "aaaaa");
  const gateway = await startTestGateway({ clock });
  gateway.apply(membershipLine([{ route: "trino", policy: { trino: TRINO, tries: 2 }, members: [one.member()] }]));
  await untilReady(gateway);
  const first = await post(gateway, "rows 2");
  one.intercept = () => true;

  const polled = follow(gateway, first.nextUri);
  for (const asked of [2, 3]) {
    await until("it is asked", () => one.paths.length === asked);
    clock.advance(60_000);
  }

  expect(await polled).toMatchObject({ status: 504, headers: { "relevo-rejected": "answer_timeout" } });
  checkCounts(gateway);
});

test("of a statement with two transaction ids none is guessed", async () => {
  const { one, gateways } = await startFleet();
  const { port } = new URL(gateways[0].url);
  const request =
    "POST /v1/statement HTTP/1.1\r\nHost: trino\r\nConnection: close\r\nX-Trino-Transaction-Id: a\r\nx-trino-transaction-id: NONE\r\nContent-Length: 1\r\n\r\nx";
  const socket = connect(Number(port), "127.0.0.1", () => socket.write(request));
  onTestFinished(() => void socket.destroy());
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  await until("it is answered", () => text.includes("RELEVO_"));

  expect(text).toContain("RELEVO_TRANSACTION_UNKNOWN");
  expect(one.statements).toEqual([]);
});
