/** The agent's way to the controller's real HTTP API: bound to its node, understood by the source's own parser. */
import { expect, onTestFinished, test } from "vitest";
import { Controllers } from "../../src/agent/controllers.ts";
import { httpCaller } from "../../src/agent/http.ts";
import { systemClock } from "../../src/kernel/system.ts";
import { agentReport } from "../../src/notices/agent-report.ts";
import { findSource } from "../../src/notices/registry.ts";
import type { IncomingNotice } from "../../src/server/control-plane.ts";
import { createServer } from "../../src/server/app.ts";
import { createLogger } from "../../src/server/log.ts";
import { createMetrics } from "../../src/server/metrics.ts";
import { FakeControlPlane } from "../../src/server/testing/fake-control-plane.ts";

const signal = new AbortController().signal;

/** It understands notices as the real one does, and keeps none. */
class Understanding extends FakeControlPlane {
  readonly understood: string[] = [];

  override async receiveNotice({ source, body, headers, node }: IncomingNotice & { readonly node?: string }) {
    const announcements = findSource(source)?.parse({ body, headers }, { receivedAt: systemClock.now() }) ?? [];
    for (const { reason, machineIds } of announcements) this.understood.push(`${node} ${source} ${reason} ${machineIds.join()}`);
    return { accepted: ["notice-1"], duplicates: [], ignored: [] };
  }
}

async function anApi() {
  const controlPlane = new Understanding();
  const app = await createServer({
    options: { host: "127.0.0.1", token: null, webhookSecret: null, version: "0.0.0" },
    controlPlane,
    metrics: createMetrics(),
    log: createLogger({ level: "silent", name: "test", clock: systemClock }),
    clock: systemClock,
    authenticators: [
      { identify: async (token) => (token === "of-node-a" ? { kind: "agent", name: "node-a", node: "node-a" } : undefined) },
    ],
  });
  onTestFinished(() => app.close());
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  const controllers = (token: string): Controllers =>
    new Controllers({ http: httpCaller(systemClock), urls: ["http://127.0.0.1:1", url], token: () => token });
  return { controlPlane, controllers };
}

const report = (document: unknown) =>
  agentReport(
    { providerID: "aws:///eu-west-1a/i-0000001" },
    { kind: "spot/instance-action", state: "present", document, seenAt: systemClock.now() },
    { ageMs: 10, bootId: null },
  );
const SPOT = { action: "terminate", time: "2026-11-30T10:02:00Z" };

test("what an agent sends is taken, as its node's, and its heartbeat too", async () => {
  const { controlPlane, controllers } = await anApi();
  expect(await controllers("of-node-a").deliver("ec2-metadata", report(SPOT), signal)).toBe("kept");
  await controllers("of-node-a").heartbeat("ec2-metadata", { from: "node-a", everyMs: 30_000, trouble: null }, signal);
  expect([controlPlane.understood, controlPlane.calls.map(({ call }) => call)]).toEqual([
    ["node-a ec2-metadata spot_interruption i-0000001"],
    ["receiveHeartbeat"],
  ]);
});

test("what is malformed is refused for good; a token that nobody knows may be known later", async () => {
  const { controlPlane, controllers } = await anApi();
  expect(await controllers("of-node-a").deliver("ec2-metadata", report({ action: 7 }), signal)).toMatchObject({
    refused: expect.stringContaining("status 400"),
  });
  await expect(controllers("of-nobody").deliver("ec2-metadata", report(SPOT), signal)).rejects.toThrow("The controller answered 401.");
  await expect(
    controllers("of-node-a").heartbeat("ec2-metadata", { from: "node-b", everyMs: 30_000, trouble: null }, signal),
  ).rejects.toThrow("The controller answered 403.");
  expect(controlPlane.understood).toEqual([]);
});
