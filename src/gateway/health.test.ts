import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../kernel/system.ts";
import { httpHealthCheck } from "./health.ts";
import { Membership, type MemberState } from "./membership.ts";
import { memberOf, membershipLine, startInstance, startTestGateway, until, untilReady, virtualClock } from "./testing/gateway.ts";

function memberAt(port: number, bootId: string | null = null): MemberState {
  const membership = new Membership(0);
  membership.step({ type: "line", at: 0, line: membershipLine([{ members: [memberOf("a", { port, bootId })] }]) });
  const member = membership.find("orders", "a", 1);
  if (member === undefined) throw new Error("not applied");
  return member;
}

async function answering(status: number, body: string): Promise<number> {
  const server = createServer((_, response) => response.writeHead(status).end(body));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

test.each([
  [200, "ok", null, null],
  [204, "", null, null],
  [302, "", null, null],
  [404, "", null, "status_404"],
  [503, '{"ok":false,"bootId":"b1","reason":"full"}', "b1", "status_503"],
  [200, '{"ok":true,"bootId":"b1","reason":null}', "b1", null],
  [200, '{"ok":true,"bootId":"b2","reason":null}', "b1", "boot_id_mismatch"],
  [200, '{"ok":true,"bootId":"b2","reason":null}', null, null],
  [200, "{not json", "b1", null],
  [200, "x".repeat(100_000), "b1", null],
])("an answer %i %s for a process admitted as %s means %s", async (status, body, bootId, failure) => {
  expect(await httpHealthCheck(systemClock)(memberAt(await answering(status, body), bootId), "/healthz")).toBe(failure);
});

test("a port that nobody listens on is refused, and silence is a time-out", async () => {
  const server = createServer(() => undefined);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const clock = virtualClock();
  const silent = httpHealthCheck(clock)(memberAt((server.address() as AddressInfo).port), "/healthz");
  clock.advance(1_000);

  expect(await silent).toBe("timeout");
  expect(await httpHealthCheck(systemClock)(memberAt(1), "/healthz")).toBe("connection_refused");
});

test("a member that fails its check gets no traffic, and does again when it passes", async () => {
  const one = await startInstance("orders-1", (_, response) => response.end("one"));
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ policy: { healthEveryMs: 50 }, members: [one.member()] }]));
  await untilReady(gateway);
  const health = () => gateway.report().routes[0]?.members[0];

  one.healthy = false;
  await until("it fails", () => health()?.health === "failing");
  expect(health()?.healthReason).toBe("status_503");
  one.healthy = true;
  await until("it passes", () => health()?.health === "passing");
});
