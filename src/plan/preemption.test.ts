import { expect, test } from "vitest";
import { instance, NOON, pod, poolOf, serving } from "../../test/builders/pool.ts";
import { NO_ORDINAL } from "../model/instance.ts";
import type { Priority } from "../model/membership.ts";
import { MAKES_ROOM_AFTER_MS, roomToMake } from "./preemption.ts";
import type { InstanceSnapshot, PoolSnapshot } from "./snapshot.ts";

const standby = (id: string): InstanceSnapshot => instance("standby", { id, record: { purpose: "standby", ordinal: NO_ORDINAL } });
const waiting = (id: string, sinceMs = MAKES_ROOM_AFTER_MS): InstanceSnapshot =>
  instance("preparing", {
    id,
    pods: [pod(`${id}-0`, null)],
    record: { purpose: "replace", replaces: "gone", phaseSince: NOON - sinceMs },
  });
const pool = (name: string, priority: Priority, instances: readonly InstanceSnapshot[], standbyCount = 0): PoolSnapshot =>
  poolOf({ spec: { priority, standby: { count: standbyCount } } }, instances, { pool: `default/${name}`, name });

const batch = pool("reports", "batch", [serving(), standby("s1"), standby("s2")], 2);

test("a batch pool gives one standby for each critical replacement that has found no place for a while (S12, I13)", () => {
  const critical = pool("orders", "critical", [waiting("a"), waiting("b"), waiting("c")]);
  expect(roomToMake(batch, [batch, critical], NOON)).toBe(2);
  expect(roomToMake(batch, [critical, pool("one", "critical", [])], NOON)).toBe(2);
  expect(roomToMake(batch, [pool("orders", "critical", [waiting("a")])], NOON)).toBe(1);
});

test("not for one that only began to wait, that has its place, or that replaces nobody", () => {
  const begun = waiting("a", MAKES_ROOM_AFTER_MS - 1);
  const placed = instance("preparing", { id: "b", record: { purpose: "replace", replaces: "gone", phaseSince: NOON - 60_000 } });
  const fill = { ...waiting("c"), record: { ...waiting("c").record, purpose: "fill" as const, replaces: null } };
  expect(roomToMake(batch, [pool("orders", "critical", [begun, placed, fill])], NOON)).toBe(0);
});

test("never for one of its own class or of a lower one", () => {
  expect(roomToMake(batch, [pool("others", "batch", [waiting("a")])], NOON)).toBe(0);
  const standard = pool("web", "standard", [serving(), standby("s3")], 1);
  expect(roomToMake(standard, [pool("others", "batch", [waiting("a")])], NOON)).toBe(0);
});

test("the least important pools give first, and of those of one class the first by name", () => {
  const standard = pool("web", "standard", [serving(), standby("s3")], 1);
  const other = pool("zzz", "batch", [serving(), standby("s4")], 1);
  const all = (count: number): readonly PoolSnapshot[] => [
    pool(
      "orders",
      "critical",
      Array.from({ length: count }, (_, index) => waiting(`w${index}`)),
    ),
    standard,
    batch,
    other,
  ];
  const given = (count: number): readonly number[] => [batch, other, standard].map((each) => roomToMake(each, all(count), NOON));
  expect([given(1), given(2), given(3), given(4), given(9)]).toEqual([
    [1, 0, 0],
    [2, 0, 0],
    [2, 1, 0],
    [2, 1, 1],
    [2, 1, 1],
  ]);
});
