import { expect, test } from "vitest";
import { chooseMember, weightOf } from "./balancer.ts";
import type { MemberState, RouteState } from "./membership.ts";
import { policyOf } from "./testing/gateway.ts";

function member(instance: string, given: Partial<MemberState> & { requests?: number } = {}): MemberState {
  const { requests = 0, ...rest } = given;
  return {
    route: "orders",
    instance,
    incarnation: 1,
    host: "127.0.0.1",
    port: 1,
    load: { requests, upgraded: 0, sessions: 0 },
    bootId: null,
    state: "serving",
    deadline: null,
    writer: null,
    health: "passing",
    healthReason: null,
    timeouts: 0,
    troubleAt: 0,
    slowStartFrom: null,
    startsSlowly: false,
    gone: false,
    ...rest,
  };
}

function route(members: MemberState[], policy: Parameters<typeof policyOf>[0] = {}): RouteState {
  return { route: "orders", pool: null, generation: "1.1" as RouteState["generation"], policy: policyOf(policy), members, turn: 0 };
}

test("the least loaded gets it", () => {
  expect(
    chooseMember(route([member("a", { requests: 3 }), member("b", { requests: 1 }), member("c", { requests: 2 })]), 0, [])?.instance,
  ).toBe("b");
});

test("among equals it goes round", () => {
  const equal = route([member("a"), member("b"), member("c")]);
  expect([1, 2, 3, 4].map(() => chooseMember(equal, 0, [])?.instance)).toEqual(["b", "c", "a", "b"]);
});

test.each([
  ["draining", { state: "draining" }],
  ["sealed", { state: "sealed" }],
  ["unknown", { health: "unknown" }],
  ["failing", { health: "failing" }],
  ["gone", { gone: true }],
  ["full", { requests: 10 }],
] as const)("one that is %s gets nothing", (_, given) => {
  expect(chooseMember(route([member("a", given)], { concurrency: 10 }), 0, [])).toBe(undefined);
});

test("one that was tried is left out", () => {
  const tried = member("a");
  expect(chooseMember(route([tried, member("b", { requests: 5 })]), 0, [tried])?.instance).toBe("b");
});

test("a new one gets a share, and room, that grow with time (slow start)", () => {
  const fresh = member("new", { slowStartFrom: 1_000 });
  const policy = policyOf({ slowStartMs: 10_000, concurrency: 20 });
  expect([1_000, 6_000, 10_000].map((now) => weightOf(fresh, policy, now))).toEqual([0.1, 0.5, 0.9]);

  const both = route([member("old", { requests: 8 }), fresh], { slowStartMs: 10_000, concurrency: 20 });
  const taken = (now: number) => {
    fresh.load.requests = 0;
    while (chooseMember(both, now, []) === fresh) fresh.load.requests += 1;
    return fresh.load.requests;
  };
  expect([1_000, 6_000].map(taken)).toEqual([0, 4]);
  expect(weightOf(fresh, policy, 11_000)).toBe(1);
  expect(fresh.slowStartFrom).toBe(null);
});
