import { expect, test } from "vitest";
import type { KubeApi, KubeObject, ListOptions } from "../kube/api.ts";
import { type KubeEvent, parseEvent } from "../kube/types.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { PlacementTroubles, troubleOf } from "./placement-troubles.ts";
import type { World } from "./world.ts";

function eventObject(reason: string, message: string, kind = "Pod", second = 0): KubeObject {
  const at = `2026-11-30T22:40:${String(second).padStart(2, "0")}Z`;
  const metadata = {
    name: `${kind}.${reason}.${second}`,
    namespace: "default",
    uid: `e-${reason}-${second}`,
    resourceVersion: "1",
    creationTimestamp: at,
  };
  return { apiVersion: "v1", kind: "Event", metadata, involvedObject: { kind }, reason, message, lastTimestamp: at } as KubeObject;
}

function event(...args: Parameters<typeof eventObject>): KubeEvent {
  const parsed = parseEvent(eventObject(...args));
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.value;
}

test.each([
  [
    "FailedScaleUp",
    "Node scale up in zones europe-west1-b associated with this pod failed: Quota 'SSD_TOTAL_GB' exceeded. Limit: 250.0 in region europe-west1. Pod is at risk of not being scheduled.",
    { kind: "quota", dimension: "SSD_TOTAL_GB" },
  ],
  [
    "FailedScaleUp",
    "Node scale up in zones us-central1-a associated with this pod failed: GCE quota exceeded.",
    { kind: "quota", dimension: "quota" },
  ],
  [
    "FailedScaleUp",
    "Node scale up in zones a failed: GCE out of resources (ZONE_RESOURCE_POOL_EXHAUSTED)",
    { kind: "capacity", dimension: "machines" },
  ],
  [
    "InsufficientCapacityError",
    "NodeClaim fleet-x event: creating instance, insufficient capacity",
    { kind: "capacity", dimension: "machines" },
  ],
  ["NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached", { kind: "limit", dimension: "node group size" }],
  [
    "FailedScheduling",
    "Failed to schedule pod, all available instance types exceed limits for nodepool (NodePool=fleet)",
    { kind: "limit", dimension: "NodePool fleet" },
  ],
  [
    "FailedScheduling",
    'Failed to schedule pod, all available instance types exceed limits for nodepool: "fleet"',
    { kind: "limit", dimension: "NodePool fleet" },
  ],
  [
    "FailedScheduling",
    "0/5 nodes are available: 3 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint(s). preemption: 0/5 nodes are available",
    { kind: "resource", dimension: "nvidia.com/gpu" },
  ],
  ["FailedScheduling", "0/5 nodes are available: 5 node(s) didn't match Pod's node affinity/selector", undefined],
  ["Pulled", "Insufficient cpu, quota exceeded", undefined],
])("%s: %s (T7)", (reason, message, expected) => {
  expect(troubleOf([event(reason, message)])).toEqual(expected);
});

test("what a provisioner says outweighs what the scheduler says later, and the newest of both kinds counts", () => {
  const quota = event("FailedScaleUp", "failed: Quota 'CPUS' exceeded", "Pod", 1);
  expect(troubleOf([quota, event("FailedScheduling", "0/5 nodes are available: 5 Insufficient cpu.", "Pod", 9)])).toEqual({
    kind: "quota",
    dimension: "CPUS",
  });
  expect(troubleOf([quota, event("FailedScaleUp", "failed: Quota 'SSD_TOTAL_GB' exceeded", "Pod", 5)])).toEqual({
    kind: "quota",
    dimension: "SSD_TOTAL_GB",
  });
});

const POD = { namespace: "default", name: "orders-a-1", uid: "pod-1", pool: "default/orders" };

function reading(answer: (options: ListOptions) => readonly KubeObject[]) {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const changed: string[] = [];
  const api = {
    list: async (_type: unknown, options: ListOptions) => {
      asked.push(options.fieldSelector ?? "");
      return { resourceVersion: "1", items: answer(options) };
    },
  } as unknown as KubeApi;
  const world = { nodeClaims: { get: () => undefined } } as unknown as Pick<World, "nodeClaims">;
  const troubles = new PlacementTroubles({ api, world, clock, onChange: (pool) => changed.push(pool), log: () => undefined });
  const look = () => [...troubles.look(POD.pool, [POD])];
  return { clock, asked, changed, troubles, look };
}

test("a pod is asked about only once it has waited a while, and then now and then; one that has a place is forgotten", async () => {
  const { clock, asked, changed, troubles, look } = reading(() => [eventObject("FailedScaleUp", "Quota 'CPUS' exceeded")]);
  expect(look()).toEqual([]);
  await clock.advance(4_999);
  expect([look(), asked]).toEqual([[], []]);
  await clock.advance(1);
  look();
  await clock.advance(1);
  expect(look()).toEqual([["pod-1", { kind: "quota", dimension: "CPUS" }]]);
  expect(asked).toEqual(["involvedObject.uid=pod-1"]);
  expect(changed).toContain(POD.pool);
  await clock.advance(10_000);
  look();
  expect(asked).toHaveLength(2);
  expect([...troubles.look(POD.pool, [])]).toEqual([]);
  expect(look()).toEqual([]);
});

test("what no node has left now is said only when it lasts: a provisioner may be bringing it", async () => {
  const { clock, look } = reading(() => [eventObject("FailedScheduling", "0/5 nodes are available: 5 Insufficient cpu.")]);
  const seen: boolean[] = [];
  for (let waited = 0; waited <= 30_000; waited += 5_000) {
    seen.push(look().length > 0);
    await clock.advance(5_000);
  }
  expect(seen).toEqual([false, false, false, false, false, false, true]);
});

test("the NodeClaim that was made for the pod is asked too", async () => {
  const { clock, asked, look } = reading(({ fieldSelector = "" }) =>
    fieldSelector.includes("NodeClaim")
      ? [eventObject("InsufficientCapacityError", "creating instance, insufficient capacity", "NodeClaim")]
      : [eventObject("Nominated", "Pod should schedule on: nodeclaim/fleet-7rw68")],
  );
  look();
  await clock.advance(5_000);
  look();
  await clock.advance(1);
  expect(look()).toEqual([["pod-1", { kind: "capacity", dimension: "machines" }]]);
  expect(asked).toEqual(["involvedObject.uid=pod-1", "involvedObject.kind=NodeClaim,involvedObject.name=fleet-7rw68"]);
});

test("what cannot be read keeps nobody", async () => {
  const { clock, look } = reading(() => {
    throw new Error("events is forbidden");
  });
  look();
  await clock.advance(5_000);
  look();
  await clock.advance(1);
  expect(look()).toEqual([]);
});
