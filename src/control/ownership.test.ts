import { expect, test } from "vitest";
import { assigneeOf } from "./ownership.ts";

const POOLS = Array.from({ length: 3_000 }, (_, index) => `team-${index % 7}/pool-${index}`);

function assignments(replicas: readonly string[]): ReadonlyMap<string, string | undefined> {
  return new Map(POOLS.map((pool) => [pool, assigneeOf(pool, replicas)]));
}

test("a pool has no replica where there is none, and the only one where there is one", () => {
  expect(assigneeOf("default/orders", [])).toBeUndefined();
  expect(assigneeOf("default/orders", ["a"])).toBe("a");
});

test("all replicas come to the same answer, in whatever order they know one another", () => {
  expect(assignments(["a", "b", "c"])).toEqual(assignments(["c", "a", "b"]));
});

test("pools are spread evenly: each of three replicas has a third, within a tenth of it", () => {
  const counts = new Map<string, number>();
  for (const replica of assignments(["a", "b", "c"]).values()) counts.set(replica ?? "", (counts.get(replica ?? "") ?? 0) + 1);
  expect([...counts.keys()].toSorted()).toEqual(["a", "b", "c"]);
  for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(100);
});

test("when a replica leaves only its own pools move", () => {
  const before = assignments(["a", "b", "c"]);
  const after = assignments(["a", "c"]);
  const moved = POOLS.filter((pool) => before.get(pool) !== after.get(pool));
  expect(moved).toEqual(POOLS.filter((pool) => before.get(pool) === "b"));
});

test("to a replica that comes only those pools move that become its own, a fourth of them", () => {
  const before = assignments(["a", "b", "c"]);
  const after = assignments(["a", "b", "c", "d"]);
  const moved = POOLS.filter((pool) => before.get(pool) !== after.get(pool));
  expect(moved.every((pool) => after.get(pool) === "d")).toBe(true);
  expect(Math.abs(moved.length - 750)).toBeLessThan(90);
});
