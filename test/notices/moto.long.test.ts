/** What a queue does, against moto's SQS and EventBridge; the same cases run against stand-ins in the fast tier. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { systemClock, systemIds, systemRandom } from "../../src/kernel/system.ts";
import { LifecycleKeeper } from "../../src/notices/autoscaling/keeper.ts";
import { SdkAutoScalingGroups } from "../../src/notices/autoscaling/sdk-groups.ts";
import { spotInterruptionWarning, stateChange } from "../../src/notices/eventbridge/compose.ts";
import { QueuePoller, type PollerOptions } from "../../src/notices/sqs/poller.ts";
import { SdkQueue } from "../../src/notices/sqs/sdk-queue.ts";
import { startAutoScalingStandIn } from "../../src/notices/testing/autoscaling-server.ts";
import { NoticeDesk } from "../../src/observe/notice-desk.ts";
import { type FakeNodes, fakeNodes } from "../../src/observe/testing/fake-nodes.ts";
import type { Store } from "../../src/store/port.ts";
import { openStore } from "../../src/store/store.ts";
import { type Moto, startMoto } from "./moto.ts";

let moto: Moto;
const opened: { close(): unknown }[] = [];

beforeAll(async () => {
  moto = await startMoto();
});
afterAll(() => moto?.stop());
beforeEach(() => {
  vi.stubEnv("AWS_ACCESS_KEY_ID", "stand-in");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "stand-in");
  vi.stubEnv("AWS_REGION", "eu-west-1");
});
afterEach(async () => {
  for (const each of opened.splice(0).toReversed()) await each.close();
  vi.unstubAllEnvs();
});

interface Cluster {
  readonly store: Store;
  readonly desk: NoticeDesk;
  readonly nodes: FakeNodes;
  /** Starts to receive. */
  poll(url: string, options?: Partial<PollerOptions>): void;
  notices(): Promise<readonly string[]>;
}

/** A controller's part of it, over a store of its own. */
async function cluster(...machines: readonly string[]): Promise<Cluster> {
  const store = await openStore({ path: ":memory:" });
  const nodes = fakeNodes();
  for (const machine of machines) nodes.put(`node-${machine}`, `aws:///eu-west-1a/${machine}`);
  const quiet = { onChange: () => {}, onOutcome: () => {}, log: () => {} };
  const desk = new NoticeDesk({ store, world: nodes.world, clock: systemClock, ids: systemIds, ...quiet });
  opened.push({ close: () => (desk.stop(), store.close()) });
  return {
    store,
    desk,
    nodes,
    poll(url, options = {}) {
      const poller = new QueuePoller({
        queue: new SdkQueue({ url }),
        keeper: desk,
        clock: systemClock,
        random: systemRandom,
        waitSeconds: 2,
        onHeard: () => {},
        onTrouble: () => {},
        log: () => {},
        ...options,
      });
      poller.start();
      opened.push({ close: () => poller.stop() });
    },
    notices: async () => (await store.listNotices(2_000)).map(({ source, dedupeKey, outcome }) => `${source} ${dedupeKey} ${outcome}`),
  };
}

const PATIENT = { timeout: 300_000, interval: 200 };
const isEmpty = async (url: string): Promise<void> =>
  void (await expect.poll(() => moto.depth(url), PATIENT).toEqual({ visible: 0, inHand: 0 }));
const spot = (id: string, machineId: string): string => spotInterruptionWarning({ id, at: systemClock.now(), machineId });

test("an event that EventBridge's rule delivers to a queue is found at its node, and its message is deleted (S1)", async () => {
  const { url, arn } = await moto.createQueue("by-rule");
  const pattern = JSON.stringify({ source: ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"] });
  await moto.call("AWSEvents.PutRule", { Name: "spot", EventPattern: pattern });
  await moto.call("AWSEvents.PutTargets", { Rule: "spot", Targets: [{ Id: "queue", Arn: arn }] });
  const ours = await cluster("i-0000001");
  ours.poll(url);
  await moto.call("AWSEvents.PutEvents", {
    Entries: [
      {
        Source: "aws.ec2",
        DetailType: "EC2 Spot Instance Interruption Warning",
        Detail: JSON.stringify({ "instance-id": "i-0000001", "instance-action": "terminate" }),
      },
      { Source: "aws.ec2", DetailType: "EC2 Instance State-change Notification", Detail: "{}" },
    ],
  });
  await expect.poll(() => [...ours.desk.findings().keys()], PATIENT).toEqual(["uid-node-i-0000001"]);
  await isEmpty(url);
});

test("a message that fails four times is kept, shown, and a dead letter; the others go on", async () => {
  const dead = await moto.createQueue("dead");
  const { url } = await moto.createQueue("poisoned", {
    RedrivePolicy: JSON.stringify({ deadLetterTargetArn: dead.arn, maxReceiveCount: 4 }),
  });
  const ours = await cluster("i-0000001");
  ours.poll(url);
  await moto.send(url, "{ not JSON", spot("e1", "i-0000001"));
  await expect.poll(async () => (await moto.depth(dead.url)).visible, PATIENT).toBe(1);
  const shown = await ours.notices();
  expect(shown.map((line) => line.replace(/malformed [0-9a-f-]{36}/, "malformed ID")).toSorted()).toEqual([
    "eventbridge e1 machine_found",
    "eventbridge malformed ID malformed",
  ]);
});

test("two clusters on one queue: each gets what is about its own machines", async () => {
  const { url } = await moto.createQueue("shared");
  const [ours, theirs] = [await cluster("i-0000001"), await cluster("i-0000002")];
  ours.poll(url);
  theirs.poll(url);
  await moto.send(url, ...Array.from({ length: 40 }, (_, index) => spot(`e${index}`, index % 2 === 0 ? "i-0000001" : "i-0000002")));
  await isEmpty(url);
  const found = async ({ notices }: Cluster) => (await notices()).filter((line) => line.endsWith("machine_found")).length;
  expect([await found(ours), await found(theirs)]).toEqual([20, 20]);
});

test("a message that comes again while the first delivery is still in work is one notice", async () => {
  const { url } = await moto.createQueue("slow");
  const ours = await cluster("i-0000001");
  const take = ours.desk.take.bind(ours.desk);
  let deliveries = 0;
  const slow = {
    take: async (...input: Parameters<NoticeDesk["take"]>) => {
      deliveries++;
      await systemClock.sleep(3_000);
      return take(...input);
    },
    keepMalformed: ours.desk.keepMalformed.bind(ours.desk),
    knows: () => true,
    knowsSubject: () => true,
  };
  const queue = new SdkQueue({ url });
  queue.setVisibility = async () => {}; // renewals are lost
  ours.poll(url, { keeper: slow, queue, visibilitySeconds: 1 });
  await moto.send(url, spot("e1", "i-0000001"));
  await isEmpty(url);
  expect(deliveries).toBeGreaterThan(1);
  expect(await ours.notices()).toEqual(["eventbridge e1 machine_found"]);
});

test("while it is in work a message is kept from others by renewing its visibility", async () => {
  const { url } = await moto.createQueue("renewed");
  const ours = await cluster("i-0000001");
  let deliveries = 0;
  const slow = {
    take: async (...input: Parameters<NoticeDesk["take"]>) => {
      deliveries++;
      await systemClock.sleep(5_000);
      return ours.desk.take(...input);
    },
    keepMalformed: ours.desk.keepMalformed.bind(ours.desk),
    knows: () => true,
    knowsSubject: () => true,
  };
  ours.poll(url, { keeper: slow, visibilitySeconds: 2 });
  await moto.send(url, spot("e1", "i-0000001"));
  await isEmpty(url);
  expect(deliveries).toBe(1);
});

test("a thousand interruptions at once are all found at their nodes", async () => {
  const { url } = await moto.createQueue("storm");
  const machines = Array.from({ length: 1_000 }, (_, index) => `i-${String(index).padStart(7, "0")}`);
  const ours = await cluster(...machines);
  await moto.send(url, ...machines.map((machine) => spot(`e-${machine}`, machine)));
  ours.poll(url);
  await expect.poll(() => ours.desk.findings().size, PATIENT).toBe(1_000);
  await isEmpty(url);
});

test("a lifecycle action is kept waiting while its machine is occupied, and completed when it is free; a state-change of the same machine is the same loss", async () => {
  const { url } = await moto.createQueue("hooks");
  const hooks = await startAutoScalingStandIn({ heartbeatTimeoutS: 30 });
  const ours = await cluster("i-0000001");
  let state: "occupied" | "free" = "occupied";
  const keeper = new LifecycleKeeper({
    groups: new SdkAutoScalingGroups({ region: "eu-west-1", endpoint: hooks.endpoint }),
    open: () => ours.desk.open(),
    stateOf: () => state,
    clock: systemClock,
    log: () => {},
  });
  keeper.start();
  opened.push({ close: () => (keeper.stop(), hooks.close()) });
  hooks.begin("token-1");
  ours.poll(url);
  const action = {
    LifecycleHookName: "drain",
    LifecycleTransition: "autoscaling:EC2_INSTANCE_TERMINATING",
    AutoScalingGroupName: "workers",
    EC2InstanceId: "i-0000001",
    LifecycleActionToken: "token-1",
  };
  await moto.send(
    url,
    JSON.stringify({ Message: JSON.stringify(action) }),
    stateChange({ id: "e1", at: systemClock.now(), machineId: "i-0000001" }, "Stopping"),
  );
  await expect.poll(() => hooks.calls(), PATIENT).toContain("RecordLifecycleActionHeartbeat token-1");
  expect([...ours.desk.findings().values()].map((findings) => findings.map(({ reason }) => reason))).toEqual([["instance_state_change"]]);
  state = "free";
  await expect.poll(() => hooks.active(), PATIENT).toEqual([]);
  expect((await ours.notices()).toSorted()).toEqual(["autoscaling token-1 machine_found", "eventbridge e1 machine_found"]);
});
