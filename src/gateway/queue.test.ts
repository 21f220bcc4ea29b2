import fc from "fast-check";
import { expect, test } from "vitest";
import { PRIORITIES, type Priority } from "../model/membership.ts";
import { type Waiter, WaitingRoom } from "./queue.ts";

interface Named extends Waiter {
  readonly name: string;
  refused: string | null;
}

function waiter(name: string, given: { priority?: Priority; until?: number; route?: string } = {}): Named {
  return {
    name,
    queueRoute: given.route ?? "orders",
    priority: given.priority ?? "standard",
    queueUntil: given.until ?? 1_000,
    refused: null,
    queueRefused(why) {
      this.refused = why;
    },
  };
}

function drain(room: WaitingRoom, route = "orders"): string[] {
  const names: string[] = [];
  for (let next = room.first(route); next !== undefined; next = room.first(route)) {
    room.leave(next);
    names.push((next as Named).name);
  }
  return names;
}

test("the more urgent go first, then in the order of arrival", () => {
  const room = new WaitingRoom(10);
  for (const one of [waiter("b1", { priority: "batch" }), waiter("s1"), waiter("c1", { priority: "critical" }), waiter("s2")])
    room.join(one, 10);
  expect(drain(room)).toEqual(["c1", "s1", "s2", "b1"]);
  expect(room.size).toBe(0);
});

test("a route's places are bounded; a more urgent one displaces the last of the least urgent", () => {
  const room = new WaitingRoom(10);
  const standard = waiter("s1");
  const batches = [waiter("b1", { priority: "batch" }), waiter("b2", { priority: "batch" })];
  for (const one of [standard, ...batches]) room.join(one, 3);

  expect(room.join(waiter("b3", { priority: "batch" }), 3)).toBe(false);
  expect(room.join(waiter("c1", { priority: "critical" }), 3)).toBe(true);
  expect(batches.map((one) => one.refused)).toEqual([null, "displaced"]);
  expect(drain(room)).toEqual(["c1", "s1", "b1"]);
});

test("all places together are bounded, and routes give way by urgency", () => {
  const room = new WaitingRoom(2);
  const batch = waiter("b1", { priority: "batch", route: "reports" });
  room.join(batch, 10);
  room.join(waiter("s1"), 10);
  expect(room.join(waiter("s2"), 10)).toBe(true);
  expect(batch.refused).toBe("displaced");
  expect(room.join(waiter("s3"), 10)).toBe(false);
});

test("whose time is over is refused, the others stay", () => {
  const room = new WaitingRoom(10);
  const [early, late] = [waiter("early", { until: 100 }), waiter("late", { until: 200 })];
  room.join(late, 10);
  room.join(early, 10);
  room.expire(150);
  expect([early.refused, late.refused]).toEqual(["queue_timeout", null]);
  expect(drain(room)).toEqual(["late"]);
});

test("the number that waits is always the number of those that joined and have not left", () => {
  const anAction = fc.record({
    kind: fc.constantFrom("join", "take", "leave", "expire"),
    priority: fc.constantFrom(...PRIORITIES),
    at: fc.nat(100),
  });
  fc.assert(
    fc.property(fc.array(anAction, { maxLength: 60 }), (actions) => {
      const room = new WaitingRoom(8);
      const inside = new Set<Named>();
      for (const { kind, priority, at } of actions) {
        if (kind === "join") {
          const one = waiter("x", { priority, until: at });
          if (room.join(one, 6)) inside.add(one);
        } else if (kind === "expire") room.expire(at);
        else {
          const next = kind === "take" ? room.first("orders") : [...inside][at % Math.max(1, inside.size)];
          if (next !== undefined) {
            room.leave(next);
            inside.delete(next as Named);
          }
        }
        for (const one of inside) if (one.refused !== null) inside.delete(one);
        expect(room.size).toBe(inside.size);
        expect(room.waiting("orders")).toBe(inside.size);
        expect(room.size).toBeLessThanOrEqual(6);
      }
    }),
  );
});
