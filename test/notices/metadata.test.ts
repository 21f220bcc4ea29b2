/** What becomes of what agents send: one fact of several witnesses, taken back, passed; the inputs of the issue that metadata has. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { VirtualClock } from "../../src/kernel/virtual-clock.ts";
import { agentReport, type MachineIdentity } from "../../src/notices/agent-report.ts";
import { spotInterruptionWarning } from "../../src/notices/eventbridge/compose.ts";
import { NoticeDesk } from "../../src/observe/notice-desk.ts";
import { type FakeNodes, fakeNodes } from "../../src/observe/testing/fake-nodes.ts";
import type { Store } from "../../src/store/port.ts";
import { openStore } from "../../src/store/store.ts";

const AWS: MachineIdentity = { providerID: "aws:///eu-west-1a/i-0000001" };
const GCP: MachineIdentity = { providerID: "gce://shop/europe-west1-b/worker-1" };
const azure = (number: number): MachineIdentity => ({
  providerID: `azure:///subscriptions/s/resourceGroups/mc/providers/Microsoft.Compute/virtualMachineScaleSets/vmss/virtualMachines/${number}`,
  machineName: `vmss_${number}`,
});
const MINUTE = 60_000;

let store: Store;
let clock: VirtualClock;
let nodes: FakeNodes;
let desk: NoticeDesk;

beforeEach(async () => {
  store = await openStore({ path: ":memory:" });
  clock = new VirtualClock();
  nodes = fakeNodes();
  let ids = 0;
  const quiet = { onChange: () => {}, onOutcome: () => {}, log: () => {} };
  desk = new NoticeDesk({ store, world: nodes.world, clock, ids: { next: (prefix) => `${prefix}-${++ids}` }, ...quiet });
  await desk.start();
});
afterEach(async () => {
  desk.stop();
  await store.close();
});

async function tell(
  source: string,
  machine: MachineIdentity,
  kind: string,
  document: unknown,
  {
    state = "present",
    ageMs = 0,
    bootId = "boot-1",
  }: { readonly state?: "present" | "gone"; readonly ageMs?: number; readonly bootId?: string } = {},
): Promise<void> {
  const report = agentReport(machine, { kind, state, document, seenAt: clock.now() - ageMs }, { ageMs, bootId });
  await desk.receive(source, { body: JSON.stringify(report), headers: {} });
}

/** By node: reasons, and in how many seconds the machine goes. */
const found = (): Record<string, readonly string[]> =>
  Object.fromEntries(
    [...desk.findings()].map(([uid, findings]) => [
      uid,
      findings.map(({ reason, deadline }) =>
        deadline === null ? reason : `${reason} in ${Math.round((deadline - clock.now()) / 1_000)} s`,
      ),
    ]),
  );
const outcomes = async (): Promise<readonly string[]> =>
  (await store.listNotices(20)).map(({ source, outcome }) => `${source} ${outcome}`).toReversed();
const inSeconds = (seconds: number): string => new Date(clock.now() + seconds * 1_000).toISOString();

test("EventBridge and metadata that tell one loss are one fact, with the earliest deadline (S1)", async () => {
  nodes.put("node-a", AWS.providerID);
  await desk.receive("eventbridge", { body: spotInterruptionWarning({ id: "e1", at: clock.now(), machineId: "i-0000001" }), headers: {} });
  await tell("ec2-metadata", AWS, "spot/instance-action", { action: "terminate", time: inSeconds(90) });
  expect(found()).toEqual({ "uid-node-a": ["spot_interruption in 90 s"] });
});

test("an agent that was started again says the same: nothing new comes of it", async () => {
  nodes.put("node-a", AWS.providerID);
  const document = { action: "terminate", time: inSeconds(120) };
  await tell("ec2-metadata", AWS, "spot/instance-action", document);
  await clock.advance(20_000);
  await tell("ec2-metadata", AWS, "spot/instance-action", document);
  expect([found(), (await outcomes()).length]).toEqual([{ "uid-node-a": ["spot_interruption in 100 s"] }, 1]);
});

test("an interruption that metadata does not tell any more is withdrawn", async () => {
  nodes.put("node-a", AWS.providerID);
  const document = { action: "stop", time: inSeconds(120) };
  await tell("ec2-metadata", AWS, "spot/instance-action", document);
  await clock.advance(15_000);
  await tell("ec2-metadata", AWS, "spot/instance-action", document, { state: "gone", ageMs: 15_000 });
  await clock.advance(1_000);
  expect([found(), (await outcomes())[0]]).toEqual([{}, "ec2-metadata withdrawn"]);
});

test("a rebalance recommendation that no interruption follows is over after its time, while metadata still tells it", async () => {
  nodes.put("node-a", AWS.providerID);
  const document = { noticeTime: inSeconds(0) };
  await tell("ec2-metadata", AWS, "events/recommendations/rebalance", document);
  expect(found()).toEqual({ "uid-node-a": ["node_rebalance"] });
  await clock.advance(61 * MINUTE);
  await tell("ec2-metadata", AWS, "events/recommendations/rebalance", document);
  expect([found(), await outcomes()]).toEqual([{}, ["ec2-metadata passed"]]);
});

test("a lifecycle state that is empty is kept and never acted upon", async () => {
  nodes.put("node-a", AWS.providerID);
  await tell("ec2-metadata", AWS, "autoscaling/target-lifecycle-state", "");
  expect([found(), await outcomes()]).toEqual([{}, ["ec2-metadata unknown_kind"]]);
});

test("Azure's Preempt for a neighbour is no notice of ours, also when the agent sends it", async () => {
  nodes.put("node-3", azure(3).providerID);
  nodes.put("node-4", azure(4).providerID);
  const preempt = {
    EventId: "e-1",
    EventType: "Preempt",
    EventStatus: "Scheduled",
    Resources: ["vmss_4"],
    NotBefore: "",
    DurationInSeconds: -1,
  };
  await tell("azure", azure(3), "scheduledevents", preempt);
  expect([found(), await outcomes()]).toEqual([{}, ["azure ignored"]]);
  await tell("azure", azure(4), "scheduledevents", preempt);
  expect(found()).toEqual({ "uid-node-4": ["spot_interruption in 0 s"] });
});

test("a providerID in another case means the same machine of Azure", async () => {
  nodes.put("node-3", azure(3).providerID.replace("resourceGroups", "resourcegroups"));
  const reboot = {
    EventId: "e-1",
    EventType: "Reboot",
    EventStatus: "Started",
    Resources: ["VMSS_3"],
    NotBefore: "",
    DurationInSeconds: -1,
  };
  await tell("azure", azure(3), "scheduledevents", reboot);
  expect(found()).toEqual({ "uid-node-3": ["scheduled_maintenance in 0 s"] });
});

test("a preempted GCP machine that still exists, stopped, is not going for ever; started again it may be preempted again", async () => {
  nodes.put("node-a", GCP.providerID);
  await tell("gcp", GCP, "instance/preempted", "TRUE", { ageMs: 2_000 });
  expect(found()).toEqual({ "uid-node-a": ["spot_interruption in 28 s"] });
  // Its Node stays: the machine is there, and its kubelet says nothing.
  await clock.advance(6 * MINUTE);
  expect([found(), await outcomes()]).toEqual([{}, ["gcp passed"]]);
  await tell("gcp", GCP, "instance/preempted", "TRUE", { bootId: "boot-2" });
  expect(found()).toEqual({ "uid-node-a": ["spot_interruption in 30 s"] });
});

test("maintenance of a host that was called off is withdrawn; one that moves the machine while it runs is no reason", async () => {
  nodes.put("node-a", GCP.providerID);
  await tell("gcp", GCP, "instance/maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE");
  expect(found()).toEqual({ "uid-node-a": ["scheduled_maintenance in 60 s"] });
  await clock.advance(10_000);
  await tell("gcp", GCP, "instance/maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE", { state: "gone", ageMs: 10_000 });
  await tell("gcp", GCP, "instance/maintenance-event", "MIGRATE_ON_HOST_MAINTENANCE");
  expect(found()).toEqual({});
});

test("a notice that waited for a controller has the deadline of when it was seen", async () => {
  nodes.put("node-a", GCP.providerID);
  await tell("gcp", GCP, "instance/preempted", "TRUE", { ageMs: 25_000 });
  expect(found()).toEqual({ "uid-node-a": ["spot_interruption in 5 s"] });
});
