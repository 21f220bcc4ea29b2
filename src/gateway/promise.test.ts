/** The sentences of the gateway's promise, each against real sockets. */
import { expect, test } from "vitest";
import { epoch } from "../kernel/epoch.ts";
import { checkCounts, membershipLine, send, startInstance, startTestGateway, until, untilReady } from "./testing/gateway.ts";

const counts = (gateway: Awaited<ReturnType<typeof startTestGateway>>) => ({ ...gateway.core.ledger.of("orders").counts });

test("a request goes to a serving member and comes back whole, with the name of the instance", async () => {
  const one = await startInstance("orders-1", (request, response, body) => {
    response.writeHead(201, { "content-type": "text/plain", "x-own": "yes" });
    response.end(`${request.method} ${request.url} ${body}`);
  });
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members: [one.member()] }]));
  await untilReady(gateway);

  const answer = await send(gateway, { method: "POST", path: "/a?b=c", body: "hello", headers: { "x-forwarded-for": "10.1.1.1" } });

  expect(answer).toMatchObject({ status: 201, body: "POST /a?b=c hello", headers: { "x-own": "yes", "relevo-instance": "orders-1" } });
  expect(one.seen[0]?.headers).toMatchObject({
    host: "orders",
    "x-forwarded-for": "10.1.1.1, 127.0.0.1",
    "x-forwarded-proto": "http",
    "x-forwarded-host": "orders",
    "content-length": "5",
  });
  expect(counts(gateway)).toEqual({ accepted: 1, completed: 1, inFlight: 0, queued: 0, rejected: 0, cut: 0, retried: 0 });
});

test("a draining member gets no new request, and its last one is waited for", async () => {
  let finish = () => {};
  const one = await startInstance("orders-1", (_, response) => {
    response.writeHead(200);
    response.write("begin ");
    finish = () => response.end("end");
  });
  const two = await startInstance("orders-2", (_, response) => response.end("two"));
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members: [one.member()] }]));
  await untilReady(gateway);
  const first = send(gateway);
  await until("it is taken", () => one.seen.length === 1);

  gateway.apply(membershipLine([{ generation: epoch(1, 2), members: [one.member({ state: "draining" }), two.member()] }]));
  await untilReady(gateway);
  const others = await Promise.all([send(gateway), send(gateway), send(gateway)]);

  expect(others.map((answer) => answer.headers["relevo-instance"])).toEqual(["orders-2", "orders-2", "orders-2"]);
  expect(gateway.report().routes[0]?.members.map(({ instance, requests }) => [instance, requests])).toEqual([
    ["orders-1", 1],
    ["orders-2", 0],
  ]);
  finish();
  expect((await first).body).toBe("begin end");
  expect(gateway.report().routes[0]?.members[0]?.requests).toBe(0);
  checkCounts(gateway);
});

test("what a dead instance provably never took is sent elsewhere, also when it is not idempotent", async () => {
  const one = await startInstance("orders-1", (_, response) => response.end("one"));
  const two = await startInstance("orders-2", (_, response, body) => response.end(`two ${body}`));
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ policy: { healthEveryMs: 60_000 }, members: [one.member(), two.member()] }]));
  await untilReady(gateway);
  await one.kill();

  const answers = await Promise.all([1, 2, 3, 4].map((n) => send(gateway, { method: "POST", body: `${n}` })));

  expect(answers.map((answer) => answer.body)).toEqual(["two 1", "two 2", "two 3", "two 4"]);
  expect(answers.some((answer) => answer.headers["relevo-retried"] === "1")).toBe(true);
  expect(counts(gateway)).toMatchObject({ accepted: 4, completed: 4, rejected: 0 });
});

test("when nothing can serve, requests wait for the first member that passes its check (I11)", async () => {
  const one = await startInstance("orders-1", (_, response) => response.end("one"));
  one.healthy = false;
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members: [one.member()] }]));

  const answer = send(gateway);
  await until("it waits", () => counts(gateway).queued === 1);
  expect(one.seen.length).toBe(0);
  one.healthy = true;

  expect(await answer).toMatchObject({ status: 200, body: "one" });
  expect(Number((await answer).headers["relevo-queued-ms"])).toBeGreaterThan(0);
  expect(counts(gateway)).toMatchObject({ accepted: 1, completed: 1, queued: 0 });
});

test("what waits too long, or finds no place to wait, gets 503 with Retry-After", async () => {
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ policy: { queueLimit: 1, queueWaitMs: 100 }, members: [] }]));

  const waits = send(gateway);
  await until("it waits", () => counts(gateway).queued === 1);
  const full = await send(gateway);

  expect(full).toMatchObject({ status: 503, headers: { "retry-after": "1", "relevo-rejected": "queue_full" } });
  expect(await waits).toMatchObject({ status: 503, headers: { "retry-after": "1", "relevo-rejected": "queue_timeout" } });
  expect(counts(gateway)).toEqual({ accepted: 2, completed: 0, inFlight: 0, queued: 0, rejected: 2, cut: 0, retried: 0 });
});

test("a gateway that just started makes requests wait for its first membership instead of knowing no route", async () => {
  const one = await startInstance("orders-1", (_, response) => response.end("one"));
  const gateway = await startTestGateway();
  const answer = send(gateway);
  const session = send(gateway, { headers: { connection: "Upgrade", upgrade: "websocket" } });
  await until("both came", () => gateway.core.lobby.size === 2);

  gateway.apply(membershipLine([{ members: [one.member()] }]));

  expect(await answer).toMatchObject({ status: 200, body: "one" });
  expect((await session).headers["relevo-instance"]).toBe("orders-1");
});
