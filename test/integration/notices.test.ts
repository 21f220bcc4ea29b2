/** What arrives at the webhook, to its end in the store and in the cluster: each input must end well (S1, I17). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import { rebalanceRecommendation, spotInterruptionWarning } from "../../src/notices/eventbridge/compose.ts";
import { Harness, ordersPool } from "./harness.ts";
import { lineOf } from "./observed-kube.ts";

const MINUTE = 60_000;

let harness: Harness;
afterEach(() => harness.close());

function warning(machineId: string, id = "event-1"): string {
  return spotInterruptionWarning({ id, at: harness.clock.now(), machineId });
}

async function outcomes(): Promise<readonly string[]> {
  return (await harness.store.listNotices(100)).map(({ outcome }) => outcome);
}

/** Nothing was done, and nothing is known against anybody. */
async function expectNothing(writesBefore: number): Promise<void> {
  expect(await harness.evidence()).toEqual([]);
  expect(harness.kube.writes().slice(writesBefore).map(lineOf)).toEqual([]);
  expect((await harness.serving()).length).toBe(2);
}

async function twoServe(): Promise<number> {
  harness = await Harness.start();
  await harness.serve();
  await harness.pass(10_000);
  return harness.kube.writes().length;
}

test("a notice for an unknown machine is acknowledged, changes nothing, and waits until it is known to be another cluster's (S1, I17)", async () => {
  const before = await twoServe();

  expect(await harness.notify(warning("i-0fffffffffffffff0"))).toMatchObject({ status: 202, body: { duplicates: [], ignored: [] } });
  await harness.pass(MINUTE);
  expect(await outcomes()).toEqual(["unknown_machine"]);
  await expectNothing(before);

  await harness.pass(5 * MINUTE);
  expect(await outcomes()).toEqual(["other_cluster"]);
  await expectNothing(before);
});

test("a notice for another cluster's node leaves the nodes of this one alone, also those of the same name (S1)", async () => {
  const before = await twoServe();
  const foreign = { ...JSON.parse(warning("i-0aaaaaaaaaaaaaaaa")), account: "999999999999", region: "us-east-1" };
  foreign.resources = ["arn:aws:ec2:us-east-1:999999999999:instance/node-a1"];

  expect((await harness.notify(JSON.stringify(foreign))).status).toBe(202);
  await harness.pass(6 * MINUTE);

  expect(await outcomes()).toEqual(["other_cluster"]);
  await expectNothing(before);
});

test("a notice with an empty source is refused with its field, logged, counted, and changes nothing (S1)", async () => {
  const before = await twoServe();
  const body = JSON.stringify({ ...JSON.parse(warning(harness.machineOf("node-a1"))), source: "" });

  const answer = await harness.notify(body);
  await harness.pass(MINUTE);

  expect(answer).toMatchObject({ status: 400, body: { error: { code: "notice_malformed", field: "source" } } });
  expect(harness.log.filter(({ event }) => event === "notice_refused")).toMatchObject([{ code: "notice_malformed", field: "source" }]);
  expect(await harness.metrics.registry.metrics()).toMatch(/relevo_notices_total\{source="eventbridge",outcome="notice_malformed"\} 1/);
  expect(await outcomes()).toEqual([]);
  await expectNothing(before);
});

test.for<[string, string | Buffer]>([
  ["no JSON", "{"],
  ["nothing", ""],
  ["a list", "[]"],
  ["a number", "7"],
  ["bytes that are no text", Buffer.from([0x7b, 0xff, 0x7d])],
  ["nesting without end", "[".repeat(50_000)],
])("a notice that cannot be parsed (%s) is refused and changes nothing (S1)", async ([, body]) => {
  const before = await twoServe();

  const answer = await harness.notify(body);
  await harness.pass(MINUTE);

  expect(answer).toMatchObject({ status: 400, body: { error: { code: "notice_malformed" } } });
  expect(await outcomes()).toEqual([]);
  await expectNothing(before);
});

test("a duplicate of a notice is acknowledged and causes nothing more than the first (S1, I17)", async () => {
  harness = await Harness.start();
  const [victim] = await harness.serve();
  const node = victim?.incarnation.nodeName ?? "";
  const body = warning(harness.machineOf(node));
  harness.cluster.provisioner.interrupt(node, { deadlineMs: 120_000 });

  const answers = [await harness.notify(body), await harness.notify(body)];
  await harness.pass(30_000);
  answers.push(await harness.notify(body));
  await harness.until("the noticed one is gone", async () => (await harness.phase(victim?.id ?? "")) === "deleted", 3 * MINUTE);
  await harness.pass(MINUTE);
  answers.push(await harness.notify(body));
  await harness.pass(MINUTE);

  expect(answers.map(({ status, body: answer }) => [status, answer])).toMatchObject([
    [202, { accepted: [expect.any(String)], duplicates: [] }],
    [202, { accepted: [], duplicates: [expect.any(String)] }],
    [202, { accepted: [], duplicates: [expect.any(String)] }],
    [202, { accepted: [], duplicates: [expect.any(String)] }],
  ]);
  expect((await harness.evidence()).map(({ instance, loss, reason }) => [instance, loss, reason])).toEqual([
    [victim?.id, "deadline", "spot_interruption"],
  ]);
  expect((await harness.store.listInstances("default/orders", 100)).length).toBe(3);
  expect((await harness.serving()).length).toBe(2);
});

test("a notice for a node that is gone already is ended at once and is nobody's evidence (S1)", async () => {
  harness = await Harness.start({ provisioner: { vanishAfterMs: 1_000 } });
  await harness.serve();
  const idle = ["node-a1", "node-a2", "node-b1", "node-b2"].find(
    (name) => harness.cluster.provisioner.nodes().find((node) => node.name === name)?.pods === 0,
  );
  const machine = harness.machineOf(idle ?? "");
  await harness.cluster.provisioner.kill(idle ?? "");
  await harness.until("its objects are gone", () => harness.cluster.provisioner.nodes().every(({ name }) => name !== idle));
  await harness.pass(10_000);
  const before = harness.kube.writes().length;

  expect((await harness.notify(warning(machine))).status).toBe(202);
  await harness.pass(MINUTE);

  expect(await outcomes()).toEqual(["node_gone"]);
  await expectNothing(before);
});

test("two entities in one event condemn the instances of both their nodes, with one notice as their proof (S1, D3)", async () => {
  harness = await Harness.start({ nodes: 6 });
  const serving = await harness.serve(ordersPool({ desired: 3 }));
  const victims = serving.slice(0, 2);
  const start = Math.ceil(harness.clock.now() / MINUTE) * MINUTE + 10 * MINUTE;
  const event = {
    version: "0",
    id: "health-1",
    "detail-type": "AWS Health Event",
    source: "aws.health",
    account: "123456789012",
    time: new Date(harness.clock.now()).toISOString(),
    region: "eu-west-1",
    resources: [],
    detail: {
      service: "EC2",
      eventTypeCode: "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
      eventTypeCategory: "scheduledChange",
      startTime: new Date(start).toUTCString(),
      affectedEntities: victims.map(({ incarnation }) => ({ entityValue: harness.machineOf(incarnation.nodeName ?? "") })),
    },
  };

  expect((await harness.notify(JSON.stringify(event))).status).toBe(202);
  for (const { id } of victims) await harness.until(`${id} is gone`, async () => (await harness.phase(id)) === "deleted", 5 * MINUTE);
  await harness.untilServing(3);

  const [notice] = await harness.store.listNotices(10);
  expect(
    (await harness.evidence())
      .map(({ instance, reason, deadline, noticeId }) => ({ instance, reason, deadline, noticeId }))
      .toSorted(byInstance),
  ).toEqual(
    victims
      .map(({ id }) => ({ instance: id, reason: "scheduled_maintenance", deadline: start, noticeId: notice?.id }))
      .toSorted(byInstance),
  );
  expect((await harness.serving()).some(({ id }) => id === serving[2]?.id)).toBe(true);
});

test("a rebalance recommendation before a warning is a voluntary replacement, and the warning for the same node adds its deadline (S1, D3, I3)", async () => {
  harness = await Harness.start();
  const [victim] = await harness.serve();
  const machineId = harness.machineOf(victim?.incarnation.nodeName ?? "");
  harness.gateways[0]?.hold(victim?.id ?? "", { sessions: 1 });

  await harness.notify(rebalanceRecommendation({ id: "event-0", at: harness.clock.now(), machineId }));
  await harness.until("it drains", async () => (await harness.phase(victim?.id ?? "")) === "draining");
  expect(await harness.instance(victim?.id ?? "")).toMatchObject({ drainLoss: "voluntary", drainDeadline: null });
  const deadline = harness.clock.now() + 120_000;
  await harness.notify(warning(machineId));
  await harness.pass(5_000);

  const drained = await harness.instance(victim?.id ?? "");
  expect(drained).toMatchObject({ phase: "draining", drainLoss: "deadline" });
  expect(Math.abs((drained.drainDeadline ?? 0) - deadline)).toBeLessThan(1_000);
  expect((await harness.evidence()).map(({ reason }) => reason).toSorted()).toEqual(["node_rebalance", "spot_interruption"]);
});

test("EventBridge, Auto Scaling, a webhook and the NodeClaim speak of one loss: one fact for each class, and the others are its witnesses (S1, D3)", async () => {
  harness = await Harness.start();
  const [victim] = await harness.serve();
  const node = victim?.incarnation.nodeName ?? "";
  const machineId = harness.machineOf(node);
  harness.gateways[0]?.hold(victim?.id ?? "", { sessions: 1 });

  const end = harness.clock.now() + 120_000;
  await harness.notify(warning(machineId));
  await harness.pass(5_000);
  const action = {
    LifecycleHookName: "drain",
    LifecycleTransition: "autoscaling:EC2_INSTANCE_TERMINATING",
    AutoScalingGroupName: "workers",
    EC2InstanceId: machineId,
    LifecycleActionToken: "token-1",
  };
  await harness.notify(JSON.stringify({ Message: JSON.stringify(action) }), "autoscaling");
  const sooner = new Date(end - 30_000).toISOString();
  await harness.notify(JSON.stringify({ id: "w-1", kind: "interruption", machines: [machineId], deadline: sooner }), "webhook");
  await harness.drift(node);
  await harness.pass(5_000);

  const read = (await harness.http.inject({ url: "/v1/evidence" })).json() as {
    readonly items: readonly {
      readonly reason: string;
      readonly witnesses: readonly { readonly source: string; readonly reason: string }[];
    }[];
  };
  expect(
    read.items
      .map(({ reason, witnesses }) => [reason, witnesses.map(({ source, reason: why }) => `${source} ${why}`).toSorted()])
      .toSorted(),
  ).toEqual([
    ["node_drifted", ["autoscaling instance_state_change", "eventbridge spot_interruption", "webhook spot_interruption"]],
    ["spot_interruption", ["autoscaling instance_state_change", "cluster node_drifted", "webhook spot_interruption"]],
  ]);
  // The earliest deadline that anybody gave is the one that counts, also when it was said last.
  await harness.until("it drains", async () => (await harness.phase(victim?.id ?? "")) === "draining");
  expect((await harness.instance(victim?.id ?? "")).drainDeadline).toBe(Date.parse(sooner));
});

test("a recommendation that no interruption follows: the instance is replaced once, and after an hour the notice is over (S1, D10)", async () => {
  harness = await Harness.start();
  const [victim] = await harness.serve();
  const node = victim?.incarnation.nodeName ?? "";
  await harness.notify(rebalanceRecommendation({ id: "event-0", at: harness.clock.now(), machineId: harness.machineOf(node) }));
  await harness.until("it is replaced", async () => (await harness.phase(victim?.id ?? "")) === "deleted", 5 * MINUTE);
  await harness.pass(50 * MINUTE);
  expect(await outcomes()).toEqual(["machine_found"]);

  await harness.pass(15 * MINUTE);
  expect(await outcomes()).toEqual(["passed"]);
  expect((await harness.store.listInstances("default/orders", 100)).length).toBe(3);
  expect((await harness.serving()).length).toBe(2);
});

test.for<[string, object]>([
  ["an empty state", { "detail-type": "EC2 Instance State-change Notification", detail: { state: "" } }],
  ["a state that EC2 does not have", { "detail-type": "EC2 Instance State-change Notification", detail: { state: "hovering" } }],
  ["another type of event", { "detail-type": "EC2 Fast Launch State-change Notification", detail: {} }],
])("%s is kept and counted as unknown, and nothing is done because of it (S1)", async ([, change]) => {
  const before = await twoServe();
  const event = JSON.parse(warning(harness.machineOf("node-a1"))) as { readonly detail: object };
  const body = JSON.stringify({
    ...event,
    ...change,
    detail: { ...event.detail, ...("detail" in change ? (change.detail as object) : {}) },
  });

  expect(await harness.notify(body)).toMatchObject({ status: 202, body: { accepted: [], ignored: [expect.any(String)] } });
  await harness.pass(MINUTE);
  expect(await outcomes()).toEqual(["unknown_kind"]);
  expect(await harness.metrics.registry.metrics()).toMatch(/relevo_notices_total\{source="eventbridge",outcome="unknown_kind"\} 1/);
  await expectNothing(before);
});

function byInstance(a: { readonly instance: string }, b: { readonly instance: string }): number {
  return a.instance < b.instance ? -1 : 1;
}

test("of many notices at once each costs one request on its node: the node is not read first (I6, D15)", async () => {
  const count = 12;
  harness = await Harness.start({ nodes: count + 2 });
  const served = await harness.serve(ordersPool({ desired: count }));
  await harness.pass(10_000);
  const nodes = served.map(({ incarnation }) => incarnation.nodeName ?? "").toSorted();
  harness.kube.calls.length = 0;
  await Promise.all(nodes.map((node) => harness.warn(harness.machineOf(node))));
  const onNodes = () => harness.kube.calls.filter(({ kind }) => kind === "Node").map(lineOf);
  await harness.until("all are cordoned", () => onNodes().length >= count);

  expect(onNodes().toSorted()).toEqual(nodes.map((node) => `patch Node/${node}`));
  const condemned = new Set((await harness.evidence()).map(({ instance }) => instance));
  expect(served.filter(({ id }) => !condemned.has(id))).toEqual([]);
});
