import { expect, test } from "vitest";
import { epoch } from "../kernel/epoch.ts";
import type { GatewayReport } from "../model/membership.ts";
import { Reports } from "./reports.ts";

const report = (
  replica: string,
  routes: readonly (readonly [route: string, applied: number, members: readonly (readonly [string, number, number])[]])[],
) =>
  ({
    replica,
    sequence: 1,
    routes: routes.map(([route, applied, members]) => ({
      route,
      applied: epoch(0, applied),
      members: members.map(([instance, incarnation, requests]) => ({
        instance,
        incarnation,
        requests,
        sessions: 1,
        health: "passing",
        healthReason: null,
      })),
    })),
  }) as unknown as GatewayReport;

const two = new Reports([
  report("a", [
    [
      "orders",
      7,
      [
        ["i-1", 1, 3],
        ["i-2", 1, 0],
      ],
    ],
    [
      "orders-old",
      4,
      [
        ["i-1", 1, 2],
        ["i-1", 2, 9],
      ],
    ],
  ]),
  report("b", [["orders", 5, [["i-2", 1, 1]]]]),
]);

test("each replica's word on an incarnation and route, or that it says nothing", () => {
  expect(two.of("orders", "i-1", 1).map((member) => member?.requests)).toEqual([3, undefined]);
  expect(two.of("orders-old", "i-1", 2).map((member) => member?.requests)).toEqual([9, undefined]);
  expect(two.of("orders", "i-3", 1)).toEqual([undefined, undefined]);
});

test("obligations are summed over all replicas and routes, also former names; nothing is known while one has not said", () => {
  expect(two.obligationsOf("i-1", 1)).toEqual({ requests: 5, sessions: 2 });
  expect(two.obligationsOf("i-3", 1)).toEqual({ requests: 0, sessions: 0 });
  expect(new Reports([report("a", []), null]).obligationsOf("i-1", 1)).toBeNull();
});

test("a generation is applied when every replica has it on the route and on each former name under which it has the instance", () => {
  expect(two.haveApplied("orders", "i-2", epoch(0, 5))).toBe(true);
  expect(two.haveApplied("orders", "i-2", epoch(0, 6))).toBe(false);
  expect(two.haveApplied("orders", "i-1", epoch(0, 5))).toBe(false);
  expect(two.haveApplied("billing", "i-2", epoch(0, 1))).toBe(false);
  expect(new Reports([null]).haveApplied("orders", "i-2", epoch(0, 1))).toBe(false);
});
