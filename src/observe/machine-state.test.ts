import { expect, test } from "vitest";
import { machineStateOf } from "./machine-state.ts";
import { fakeNodes } from "./testing/fake-nodes.ts";

type World = Parameters<typeof machineStateOf>[0];

function worldWith(
  nodes: ReturnType<typeof fakeNodes>,
  pods: readonly { readonly node: string; readonly instance?: string }[],
  isSynced = true,
): World {
  const labelled = pods.map(({ node, instance }) => ({
    node,
    metadata: { labels: instance === undefined ? {} : { "relevo.dev/instance": instance } },
  }));
  return {
    ...nodes.world,
    pods: { synced: () => isSynced, byIndex: (_index: string, name: string) => labelled.filter(({ node }) => node === name) },
  } as unknown as World;
}

test("a machine is occupied by instances of ours alone, free without them, gone with its node, and unknown where it was never ours", () => {
  const nodes = fakeNodes();
  nodes.put("a", "aws:///eu-west-1a/i-a");
  nodes.put("b", "aws:///eu-west-1a/i-b");
  const world = worldWith(nodes, [{ node: "a", instance: "orders-1" }, { node: "b" }]);
  const knows = (machine: string) => machine === "i-c";
  expect(["i-a", "i-b", "i-c", "i-d"].map((machine) => machineStateOf(world, knows, machine))).toEqual([
    "occupied",
    "free",
    "gone",
    "unknown",
  ]);
});

test("while pods or nodes are not all known nothing is said of any machine", () => {
  const nodes = fakeNodes();
  nodes.put("b", "aws:///eu-west-1a/i-b");
  expect(machineStateOf(worldWith(nodes, [], false), () => true, "i-b")).toBe("unknown");
  nodes.complete(false);
  expect(machineStateOf(worldWith(nodes, []), () => true, "i-b")).toBe("unknown");
});
