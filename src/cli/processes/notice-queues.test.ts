/** The composition of `relevo controller --sqs-queue … --lifecycle-hooks`, over stand-ins that speak the SDK's protocols. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemClock, systemIds, systemRandom } from "../../kernel/system.ts";
import { spotInterruptionWarning } from "../../notices/eventbridge/compose.ts";
import { type AutoScalingStandIn, startAutoScalingStandIn } from "../../notices/testing/autoscaling-server.ts";
import { type SqsStandIn, startSqsStandIn } from "../../notices/testing/sqs-server.ts";
import { NoticeDesk } from "../../observe/notice-desk.ts";
import { HeartbeatRegistry } from "../../observe/source-heartbeats.ts";
import { fakeNodes } from "../../observe/testing/fake-nodes.ts";
import { createLogger } from "../../server/log.ts";
import { createMetrics } from "../../server/metrics.ts";
import type { Store } from "../../store/port.ts";
import { openStore } from "../../store/store.ts";
import { startNoticeQueues } from "./notice-queues.ts";

let sqs: SqsStandIn;
let groups: AutoScalingStandIn;
let store: Store;

beforeEach(async () => {
  sqs = await startSqsStandIn();
  groups = await startAutoScalingStandIn();
  store = await openStore({ path: ":memory:" });
  vi.stubEnv("AWS_ACCESS_KEY_ID", "stand-in");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "stand-in");
  vi.stubEnv("AWS_REGION", "eu-west-1");
  vi.stubEnv("AWS_ENDPOINT_URL_AUTO_SCALING", groups.endpoint);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await sqs.close();
  await groups.close();
  await store.close();
});

test("what a queue says is found at the node, its messages go, the queue is heard; a lifecycle hook is answered when the node is free (S1)", async () => {
  const nodes = fakeNodes();
  nodes.put("a", "aws:///eu-west-1a/i-0000001");
  nodes.put("b", "aws:///eu-west-1a/i-0000002");
  const desk = new NoticeDesk({
    store,
    world: nodes.world,
    clock: systemClock,
    ids: systemIds,
    onChange: () => {},
    onOutcome: () => {},
    log: () => {},
  });
  const heartbeats = new HeartbeatRegistry(systemClock);
  const isOccupied = new Set(["i-0000002"]);
  const queue = sqs.queue("notices");
  const metrics = createMetrics();
  const log = createLogger({ level: "silent", name: "test", clock: systemClock });
  const queues = await startNoticeQueues(
    { urls: [queue.url], unclaimed: "delete", answersLifecycleHooks: true },
    {
      metrics,
      door: { desk, heartbeats, stateOf: (machine) => (isOccupied.has(machine) ? "occupied" : "free") },
      clock: systemClock,
      random: systemRandom,
      log,
    },
  );
  groups.begin("token-1");
  queue.send(
    spotInterruptionWarning({ id: "e1", at: systemClock.now(), machineId: "i-0000001" }),
    JSON.stringify({
      LifecycleHookName: "drain",
      LifecycleTransition: "autoscaling:EC2_INSTANCE_TERMINATING",
      AutoScalingGroupName: "workers",
      EC2InstanceId: "i-0000002",
      LifecycleActionToken: "token-1",
    }),
  );
  await vi.waitFor(() => expect(queue.messages()).toEqual([]), { timeout: 10_000 });
  expect([...desk.findings().keys()].toSorted()).toEqual(["uid-a", "uid-b"]);
  expect(heartbeats.summary().map(({ source, senders, silent, trouble }) => ({ source, senders, silent, trouble }))).toEqual([
    { source: "sqs", senders: 1, silent: 0, trouble: null },
  ]);
  await vi.waitFor(() => expect(groups.calls()).toContain("RecordLifecycleActionHeartbeat token-1"), { timeout: 10_000 });
  expect(groups.active()).toEqual(["token-1"]);
  isOccupied.clear();
  await vi.waitFor(() => expect(groups.active()).toEqual([]), { timeout: 10_000 });
  expect(await metrics.registry.metrics()).toContain(`relevo_notice_queue_has_redrive{queue="${queue.url}"} 0`);
  await queues.stop();
  desk.stop();
});
