import { expect, test } from "vitest";
import { scaleOf } from "./scale.ts";

test("twenty nodes that go: 24 nodes and 40 processes, six of them standby", () => {
  expect(scaleOf(20)).toEqual({
    going: 20,
    nodes: 24,
    pools: [
      { name: "critical", priority: "critical", desired: 8, standby: 3 },
      { name: "standard", priority: "standard", desired: 12, standby: 2 },
      { name: "batch", priority: "batch", desired: 14, standby: 1 },
    ],
  });
});

test.each([1, 2, 3, 5, 10, 40])("%i nodes that go: each class has somebody, and one node at least stays", (going) => {
  const { nodes, pools } = scaleOf(going);
  expect(pools.every(({ desired }) => desired >= 1)).toBe(true);
  expect(pools[0]?.standby).toBeGreaterThanOrEqual(1);
  expect(nodes).toBeGreaterThan(going);
  // Two to a node: all fit before the storm.
  expect(pools.reduce((sum, { desired, standby }) => sum + desired + standby, 0)).toBeLessThanOrEqual(2 * nodes);
});
