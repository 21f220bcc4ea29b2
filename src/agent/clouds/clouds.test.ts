/** The adapters of the three clouds against stand-ins by their documented shapes, over real sockets. */
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../kernel/system.ts";
import type { AzureEvent } from "../../notices/azure/read.ts";
import type { Look } from "../../notices/standing.ts";
import { httpCaller } from "../http.ts";
import {
  AZURE_MACHINE,
  type MetadataServer,
  type Mood,
  startAzureMetadata,
  startEc2Metadata,
  startGcpMetadata,
} from "../testing/metadata.ts";
import { AzureCloud } from "./azure.ts";
import type { Cloud } from "./cloud.ts";
import { Ec2Cloud } from "./ec2.ts";
import { GcpCloud } from "./gcp.ts";

const http = httpCaller(systemClock);
const signal = new AbortController().signal;

function closing<T extends MetadataServer>(server: T): T {
  onTestFinished(() => server.close());
  return server;
}

/** What each path says, or that it failed. */
function shown(looks: readonly Look[]): unknown {
  return Object.fromEntries(looks.map((look) => [look.kind, "failed" in look ? "failed" : look.said.map(({ meaning }) => meaning)]));
}

async function look(cloud: Cloud): Promise<readonly Look[]> {
  return (await Promise.all(cloud.watches.map((watch) => watch.look(signal)))).flat();
}

async function anEc2(options: { readonly tokenTtlSeconds?: number } = {}) {
  const server = closing(await startEc2Metadata());
  return { server, cloud: new Ec2Cloud({ http, clock: systemClock, baseUrl: server.url, ...options }) };
}

async function aGcp() {
  const server = closing(await startGcpMetadata());
  return { server, cloud: new GcpCloud({ http, baseUrl: server.url, waitSeconds: 5 }) };
}

async function anAzure(approval?: { readonly isEmpty: boolean; readonly agreed: readonly string[] }) {
  const server = closing(await startAzureMetadata());
  const given =
    approval === undefined ? {} : { approval: { agreed: approval.agreed, isEmpty: () => approval.isEmpty, onApproved: () => undefined } };
  return { server, cloud: new AzureCloud({ http, baseUrl: server.url, ...given }) };
}

const event = (change: Partial<AzureEvent> = {}): AzureEvent => ({
  EventId: "e-1",
  EventType: "Preempt",
  EventStatus: "Scheduled",
  Resources: [AZURE_MACHINE],
  NotBefore: "Mon, 30 Nov 2026 10:15:00 GMT",
  DurationInSeconds: -1,
  ...change,
});

test("each cloud tells which machine it is, as the providerID of its node", async () => {
  const clouds = [(await anEc2()).cloud, (await aGcp()).cloud, (await anAzure()).cloud];
  expect(await Promise.all(clouds.map((cloud) => cloud.identify(signal)))).toEqual([
    { providerID: "aws:///eu-west-1a/i-0a1b2c3d4e5f60718" },
    { providerID: "gce://shop-prod/europe-west1-b/gke-workers-1" },
    {
      providerID:
        "azure:///subscriptions/0b1f6471-1bf0-4dda-aec3-cb9272f09590/resourceGroups/mc_shop/providers/Microsoft.Compute/virtualMachineScaleSets/aks-workers-vmss/virtualMachines/3",
      machineName: AZURE_MACHINE,
    },
  ]);
});

test("a cloud's adapter knows no other cloud's metadata for its own", async () => {
  const [ec2, gcp, azure] = [(await anEc2()).server, (await aGcp()).server, (await anAzure()).server];
  const wrong = [
    ...[gcp, azure].map(({ url }) => new Ec2Cloud({ http, clock: systemClock, baseUrl: url })),
    ...[ec2, azure].map(({ url }) => new GcpCloud({ http, baseUrl: url })),
    ...[ec2, gcp].map(({ url }) => new AzureCloud({ http, baseUrl: url })),
  ];
  const answers = await Promise.allSettled(wrong.map((cloud) => cloud.identify(signal)));
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => "rejected"));
});

test("EC2: what is not there says nothing, and what is there is read", async () => {
  const { server, cloud } = await anEc2();
  server.documents.set("spot/instance-action", '{"action":"stop","time":"2026-11-30T10:02:00Z"}');
  server.documents.set("autoscaling/target-lifecycle-state", "InService");
  expect(shown(await look(cloud))).toEqual({
    "spot/instance-action": ["stop"],
    "events/recommendations/rebalance": [],
    "events/maintenance/scheduled": [],
    "autoscaling/target-lifecycle-state": [],
  });
});

test("EC2: one token serves many looks; it is asked for anew when it is refused and before it ends", async () => {
  const { server, cloud } = await anEc2();
  const tokens = (): number => server.asked.filter((line) => line.startsWith("PUT")).length;
  await look(cloud);
  await look(cloud);
  expect(tokens()).toBe(1);
  server.forgetTokens();
  expect(shown(await look(cloud))).not.toContain("failed");
  await look(cloud);
  expect(tokens()).toBeGreaterThan(1);
  const { server: short, cloud: renewing } = await anEc2({ tokenTtlSeconds: 0 });
  await look(renewing);
  await look(renewing);
  expect(short.asked.filter((line) => line.startsWith("PUT")).length).toBeGreaterThanOrEqual(2);
});

test.each<Mood>(["garbage", "failing", "huge", "hang"])(
  "metadata whose mood is %s fails each look within its bound, and is read when it is well again",
  async (mood) => {
    const all = [await anEc2(), await aGcp(), await anAzure()] as const;
    await Promise.all(all.map(({ cloud }) => cloud.identify(signal)));
    await Promise.all(all.map(({ cloud }) => look(cloud)));
    for (const { server } of all) server.mood = mood;
    const began = systemClock.monotonic();
    // GCP's second look waits; its third, after a failure, does not.
    const failed = await Promise.all(all.map(({ cloud }) => look(cloud)));
    expect(failed.map((looks) => looks.every((each) => "failed" in each))).toEqual([true, true, true]);
    expect(systemClock.monotonic() - began).toBeLessThan(9_000);
    for (const { server } of all) server.mood = "well";
    const again = await Promise.all(all.map(({ cloud }) => look(cloud)));
    expect(again.map((looks) => looks.some((each) => "failed" in each))).toEqual([false, false, false]);
  },
);

test("slow metadata is waited for", async () => {
  const { server, cloud } = await anEc2();
  server.documents.set("spot/instance-action", '{"action":"stop","time":"2026-11-30T10:02:00Z"}');
  server.mood = { slowMs: 300 };
  expect(shown(await look(cloud))).toMatchObject({ "spot/instance-action": ["stop"] });
});

test("a look ends at once when the agent is asked to end", async () => {
  const { server, cloud } = await anEc2();
  server.mood = "hang";
  const stop = new AbortController();
  const looking = cloud.watches[0]?.look(stop.signal);
  stop.abort(new Error("asked to end"));
  await expect(looking).rejects.toThrow("asked to end");
});

test("GCP: the first look answers at once, the next waits and answers when something changes", async () => {
  const { server, cloud } = await aGcp();
  expect(shown(await look(cloud))).toEqual({ "instance/preempted": [], "instance/maintenance-event": [] });
  const [preempted, maintenance] = cloud.watches.map((watch) => watch.look(signal));
  await expect.poll(() => server.asked.filter((line) => line.includes("wait_for_change")).length).toBe(2);
  server.set("instance/preempted", "TRUE");
  server.set("instance/maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE");
  expect(shown([...((await preempted) ?? []), ...((await maintenance) ?? [])])).toEqual({
    "instance/preempted": ["TRUE"],
    "instance/maintenance-event": ["TERMINATE_ON_HOST_MAINTENANCE"],
  });
});

test("GCP: between two looks there is a rest, for a server that does not wait would be called in a loop", async () => {
  const { cloud } = await aGcp();
  expect(cloud.watches.map(({ everyMs }) => everyMs)).toEqual([250, 250]);
});

test("GCP: a wait without a change says again what is there", async () => {
  const server = closing(await startGcpMetadata());
  const cloud = new GcpCloud({ http, baseUrl: server.url, waitSeconds: 0 });
  await look(cloud);
  expect(shown(await look(cloud))).toEqual({ "instance/preempted": [], "instance/maintenance-event": [] });
});

test("Azure: Preempt for a neighbour is nothing of ours, and an event that is gone is not said any more", async () => {
  const { server, cloud } = await anAzure();
  await cloud.identify(signal);
  server.list(event({ EventId: "theirs", Resources: ["aks-workers-vmss_4"] }), event({ EventId: "ours", EventType: "Reboot" }));
  expect(shown(await look(cloud))).toEqual({ scheduledevents: ["Reboot Scheduled"] });
  server.list();
  expect(shown(await look(cloud))).toEqual({ scheduledevents: [] });
});

test("Azure: nothing is approved unless that is switched on, this machine is empty, and each other machine has agreed", async () => {
  const approvedWith = async (approval: Parameters<typeof anAzure>[0], ...events: AzureEvent[]): Promise<readonly string[]> => {
    const { server, cloud } = await anAzure(approval);
    await cloud.identify(signal);
    server.list(...events);
    await look(cloud);
    await look(cloud);
    return server.approved;
  };
  const ours = event({ EventType: "Reboot" });
  const both = event({ EventType: "Reboot", Resources: [AZURE_MACHINE, "aks-workers-vmss_4"] });
  expect({
    off: await approvedWith(undefined, ours),
    occupied: await approvedWith({ isEmpty: false, agreed: [] }, ours),
    empty: await approvedWith({ isEmpty: true, agreed: [] }, ours),
    withANeighbour: await approvedWith({ isEmpty: true, agreed: [] }, both),
    whoAgreed: await approvedWith({ isEmpty: true, agreed: ["aks-workers-vmss_4"] }, both),
  }).toEqual({ off: [], occupied: [], empty: ["e-1"], withANeighbour: [], whoAgreed: ["e-1"] });
});
