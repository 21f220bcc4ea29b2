import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { Epoch } from "../kernel/epoch.ts";
import { systemClock } from "../kernel/system.ts";
import { answerOf, httpLeaseCall, type LeaseAccess } from "./lease-call.ts";

async function serve(listener: RequestListener): Promise<LeaseAccess> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1/leases/renew`, token: "t-1", pool: "default/orders", instance: "orders-1", ttlMs: 10_000 };
}

test("a renewal is a POST that says who, and under which epoch", async () => {
  const seen: unknown[] = [];
  const access = await serve(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    seen.push([request.method, request.url, request.headers.authorization, JSON.parse(text)]);
    response.end(JSON.stringify({ pool: "default/orders", ordinal: 3, writerEpoch: "1.7", ttlMs: 10_000, proof: "p-1" }));
  });
  const answer = await httpLeaseCall(systemClock)(access, "boot-1", { ordinal: 3, epoch: "1.7" as Epoch, proof: "p-1" }, 5_000);
  expect(answer).toEqual({ kind: "renewed", ordinal: 3, epoch: "1.7", ttlMs: 10_000, proof: "p-1" });
  expect(seen).toEqual([
    [
      "POST",
      "/v1/leases/renew",
      "Bearer t-1",
      { pool: "default/orders", instance: "orders-1", bootId: "boot-1", epoch: "1.7", ordinal: 3, proof: "p-1" },
    ],
  ]);
  await httpLeaseCall(systemClock)(access, "boot-1", null, 5_000);
  expect(seen[1]).toMatchObject({ 3: { pool: "default/orders", instance: "orders-1", bootId: "boot-1", epoch: null } });
});

test.each([
  [200, '{"ordinal":0,"writerEpoch":"1.1","ttlMs":5000}', { kind: "renewed", ordinal: 0, epoch: "1.1", ttlMs: 5_000 }],
  [200, '{"ordinal":0,"writerEpoch":"x","ttlMs":5000}', { kind: "failed", why: "the answer is not understood" }],
  [200, '{"ordinal":0,"writerEpoch":"1.1","ttlMs":0}', { kind: "failed", why: "the answer is not understood" }],
  [200, "<html>", { kind: "failed", why: "the answer is not understood" }],
  [409, '{"error":{"code":"lease_fenced","message":"-"}}', { kind: "refused", code: "lease_fenced" }],
  [409, '{"error":{"code":"lease_not_held","message":"-"}}', { kind: "refused", code: "lease_not_held" }],
  [401, '{"error":{"code":"unauthorized","message":"-"}}', { kind: "failed", why: "401 unauthorized" }],
  [503, '{"error":{"code":"store_unavailable","message":"-"}}', { kind: "failed", why: "503 store_unavailable" }],
  [502, "bad gateway", { kind: "failed", why: "status 502" }],
  [500, "null", { kind: "failed", why: "status 500" }],
] as const)("status %d with %s is %j: only the controller's word about the lease decides anything", (status, text, answer) => {
  expect(answerOf(status, text)).toEqual(answer);
});

test("a controller that is away, silent or endless is a failure within the limit", async () => {
  const call = httpLeaseCall(systemClock);
  const silent = await serve(() => undefined);
  const endless = await serve((_, response) => {
    const more = (): void => {
      if (!response.destroyed && response.write("x".repeat(10_000))) setImmediate(more);
      else response.once("drain", more);
    };
    more();
  });
  const answers = await Promise.all([
    call({ ...silent, url: "http://127.0.0.1:9/" }, "b", null, 1_000),
    call(silent, "b", null, 50),
    call(endless, "b", null, 5_000),
  ]);
  expect(answers.map(({ kind }) => kind)).toEqual(["failed", "failed", "failed"]);
  expect(answers[1]).toEqual({ kind: "failed", why: "no answer within 50 ms" });
  expect(answers[2]).toEqual({ kind: "failed", why: "the answer is too long" });
});
