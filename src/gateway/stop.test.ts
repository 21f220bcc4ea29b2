/** How a gateway stops: nothing new, what is in flight ends, and what outlives the grace ends explicitly. */
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { membershipLine, send, startInstance, startTestGateway, until, untilReady } from "./testing/gateway.ts";

async function oneOf(answer: Parameters<typeof startInstance>[1], policy = {}) {
  const one = await startInstance("orders-1", answer);
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ policy, members: [one.member()] }]));
  await untilReady(gateway);
  return { one, gateway, counts: () => gateway.core.ledger.of("orders").counts };
}

test("what is in flight ends normally, new connections are refused, and kept ones are told to close", async () => {
  let finish = () => {};
  const { one, gateway, counts } = await oneOf((_, response) => {
    finish = () => response.end("done");
  });
  const kept = connect(Number(new URL(gateway.url).port), "127.0.0.1", () => kept.write("GET / HTTP/1.1\r\nHost: orders\r\n\r\n"));
  onTestFinished(() => void kept.destroy());
  let text = "";
  kept.on("data", (chunk) => {
    text += chunk;
  });
  await until("it is taken", () => one.seen.length === 1);

  const closed = gateway.close({ graceMs: 5_000 });
  await expect(send(gateway)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  finish();
  await closed;

  expect(text).toMatch(/^HTTP\/1.1 200 OK\r\n[^]*connection: close[^]*done$/i);
  expect(counts()).toMatchObject({ accepted: 1, completed: 1, rejected: 0, cut: 0 });
});

test("what outlives the grace gets an explicit error, or is cut when its answer was under way", async () => {
  const { one, gateway, counts } = await oneOf((request, response) => void (request.url === "/stream" && response.write("begin")), {
    concurrency: 2,
  });
  const waits = send(gateway, { path: "/never" });
  const streams = send(gateway, { path: "/stream" });
  const broken = expect(streams).rejects.toMatchObject({ code: "ECONNRESET" });
  await until("both are taken", () => one.seen.length === 2);
  const queued = send(gateway, { path: "/queued" });
  await until("the third waits", () => counts().queued === 1);

  await gateway.close({ graceMs: 50 });

  for (const answer of await Promise.all([waits, queued]))
    expect(answer).toMatchObject({ status: 503, headers: { "relevo-rejected": "stopping" } });
  await broken;
  expect(counts()).toMatchObject({ accepted: 3, completed: 0, inFlight: 0, queued: 0, rejected: 2, cut: 1 });
});
