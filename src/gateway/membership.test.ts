import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareEpochs, epoch } from "../kernel/epoch.ts";
import { Membership, type MembershipEffect } from "./membership.ts";
import { memberOf, membershipLine, type RouteGiven } from "./testing/gateway.ts";

function line(membership: Membership, routes: readonly RouteGiven[], given: { complete?: boolean; ttlMs?: number; at?: number } = {}) {
  return membership.step({ type: "line", at: given.at ?? 0, line: membershipLine(routes, given) });
}

const checked = (instance: string, failure: string | null = null, at = 10, startedAt = at - 1) =>
  ({ type: "checked", route: "orders", instance, incarnation: 1, at, startedAt, failure }) as const;

const trouble = (instance: string, at: number) =>
  ({ type: "trouble", route: "orders", instance, incarnation: 1, at, reason: "timeout" }) as const;

const kinds = (effects: readonly MembershipEffect[]) => effects.map((effect) => effect.type);

describe("generations", () => {
  test("a new one is applied, and says so", () => {
    const membership = new Membership(0);
    expect(kinds(line(membership, [{ members: [memberOf("a")] }]))).toEqual(["member_added", "applied", "capacity"]);
    expect(membership.routes.get("orders")?.generation).toBe("1.1");
  });

  test("an older one is refused, said, and changes nothing", () => {
    const membership = new Membership(0);
    line(membership, [{ generation: epoch(1, 7), members: [memberOf("a")] }]);
    expect(line(membership, [{ generation: epoch(1, 6), members: [] }])).toEqual([
      { type: "refused", route: "orders", why: "older_generation", offered: "1.6", applied: "1.7" },
    ]);
    expect(membership.find("orders", "a", 1)).toBeDefined();
  });

  test("the same one again changes nothing; with other members it is refused: two histories share a number", () => {
    const membership = new Membership(0);
    line(membership, [{ members: [memberOf("a")] }]);
    expect(kinds(line(membership, [{ members: [memberOf("a")] }]))).toEqual(["capacity"]);
    expect(line(membership, [{ members: [memberOf("b")] }])).toMatchObject([{ type: "refused", why: "same_generation_other_members" }]);
  });

  test("it is known whose the one is that was applied, also when nobody of that pool is left", () => {
    const membership = new Membership(0);
    const whose = () => membership.routes.get("orders")?.pool;
    line(membership, [{ generation: epoch(1, 5), members: [] }]);
    expect(whose(), "its controller does not say it").toBeNull();
    line(membership, [{ pool: "default/orders", generation: epoch(1, 5), members: [] }]);
    expect(whose(), "it does since it was updated").toBe("default/orders");
    line(membership, [{ pool: "default/shop", generation: epoch(1, 4), members: [] }]);
    expect(whose(), "an older one is refused").toBe("default/orders");
    line(membership, [{ pool: "default/shop", generation: epoch(1, 6), members: [] }]);
    expect(whose(), "the route has passed").toBe("default/shop");
  });

  test("a higher era beats a higher counter", () => {
    const membership = new Membership(0);
    line(membership, [{ generation: epoch(1, 90), members: [memberOf("a")] }]);
    expect(kinds(line(membership, [{ generation: epoch(2, 1), members: [memberOf("a")] }]))).toEqual(["applied", "capacity"]);
  });

  test("a route that is gone is remembered by its generation", () => {
    const membership = new Membership(0);
    line(membership, [{ generation: epoch(1, 5), members: [memberOf("a", { state: "sealed" })] }]);
    expect(kinds(line(membership, [], { complete: true }))).toEqual(["route_removed"]);
    expect(kinds(line(membership, [{ generation: epoch(1, 4), members: [] }]))).toEqual(["refused"]);
    expect(kinds(line(membership, [{ generation: epoch(1, 6), members: [] }]))).toEqual(["applied", "capacity"]);
  });

  test("a route does not vanish while it serves", () => {
    const membership = new Membership(0);
    line(membership, [{ members: [memberOf("a")] }]);
    expect(line(membership, [], { complete: true })).toMatchObject([{ type: "refused", why: "removed_while_serving" }]);
    expect(membership.routes.size).toBe(1);
  });

  test("whatever comes in whatever order, what is applied never goes back", () => {
    const anEpoch = fc.tuple(fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 5 })).map(([era, counter]) => epoch(era, counter));
    const aLine = fc.record({ generation: anEpoch, names: fc.subarray(["a", "b", "c"]), gone: fc.boolean() });
    fc.assert(
      fc.property(fc.array(aLine), (lines) => {
        const membership = new Membership(0);
        let highest = epoch(0, 0);
        for (const { generation, names, gone } of lines) {
          if (gone) line(membership, [], { complete: true });
          else line(membership, [{ generation, members: names.map((name) => memberOf(name, { state: "sealed" })) }]);
          const applied = membership.routes.get("orders")?.generation;
          if (applied === undefined) continue;
          expect(compareEpochs(applied, highest)).toBeGreaterThanOrEqual(0);
          highest = applied;
        }
      }),
    );
  });
});

describe("members", () => {
  test("a new incarnation is a new member; what the old one held is void", () => {
    const membership = new Membership(0);
    line(membership, [{ members: [memberOf("a")] }]);
    const effects = line(membership, [{ generation: epoch(1, 2), members: [memberOf("a", { incarnation: 2 })] }]);
    expect(kinds(effects)).toEqual(["member_added", "member_gone", "applied", "capacity"]);
    expect(effects[1]).toMatchObject({ why: "replaced", member: { incarnation: 1, gone: true } });
    expect(membership.find("orders", "a", 2)).toMatchObject({ health: "unknown" });
  });

  test("a sealed one is gone and never comes back", () => {
    const membership = new Membership(0);
    line(membership, [{ members: [memberOf("a")] }]);
    expect(kinds(line(membership, [{ generation: epoch(1, 2), members: [memberOf("a", { state: "sealed" })] }]))).toContain("member_gone");
    line(membership, [{ generation: epoch(1, 3), members: [memberOf("a")] }]);
    expect(membership.find("orders", "a", 1)).toMatchObject({ state: "sealed", gone: true });
  });

  const writer = (counter: number, era = 1) => ({ ordinal: 0, minAccepted: epoch(era, counter) });

  test("a fenced one is gone for ever and says why (S10)", () => {
    const membership = new Membership(0);
    line(membership, [{ members: [memberOf("a", { writer: writer(1) })] }]);
    const effects = line(membership, [{ generation: epoch(1, 2), members: [memberOf("a", { state: "fenced", writer: writer(2) })] }]);
    expect(effects.filter(({ type }) => type === "member_gone")).toMatchObject([{ why: "fenced", member: { instance: "a", gone: true } }]);
    line(membership, [{ generation: epoch(1, 3), members: [memberOf("a", { writer: writer(2) })] }]);
    expect(membership.find("orders", "a", 1)).toMatchObject({ state: "fenced", gone: true });
  });

  test("one that is fenced when the replica learns of it is nothing to check or to serve", () => {
    const membership = new Membership(0);
    expect(kinds(line(membership, [{ members: [memberOf("a", { state: "fenced" })] }]))).toEqual(["applied", "capacity"]);
  });

  test("a suspect one keeps what it has and may come back (S10)", () => {
    const membership = new Membership(0);
    line(membership, [{ members: [memberOf("a")] }]);
    membership.step(checked("a"));
    const suspected = line(membership, [{ generation: epoch(1, 2), members: [memberOf("a", { state: "suspect" })] }]);
    expect(kinds(suspected)).toEqual(["applied", "capacity"]);
    expect(membership.find("orders", "a", 1)).toMatchObject({ state: "suspect", gone: false, health: "passing" });
    line(membership, [{ generation: epoch(1, 3), members: [memberOf("a")] }]);
    expect(membership.find("orders", "a", 1)).toMatchObject({ state: "serving", gone: false, health: "passing" });
  });

  test("a route does not vanish while its last member is only suspect", () => {
    const membership = new Membership(0);
    line(membership, [{ members: [memberOf("a", { state: "suspect" })] }]);
    expect(line(membership, [], { complete: true })).toMatchObject([{ type: "refused", why: "removed_while_serving" }]);
  });

  test("a tombstone that rises is said once; it never falls and never goes away (I2)", () => {
    const membership = new Membership(0);
    const told = (generation: number, given: ReturnType<typeof writer> | null) =>
      line(membership, [{ generation: epoch(1, generation), members: [memberOf("a", { writer: given })] }]).flatMap((effect) =>
        effect.type === "writer_raised" ? [effect.minAccepted] : [],
      );
    const heard = [null, writer(3), writer(3), writer(2), null, writer(2), writer(1, 2)].map((given, index) => told(index + 1, given));
    expect(heard).toEqual([[], ["1.3"], [], [], [], [], ["2.1"]]);
    expect(membership.find("orders", "a", 1)?.writer).toEqual(writer(1, 2));
  });

  test("a tombstone that rises without a new generation is refused: two histories share a number", () => {
    const membership = new Membership(0);
    line(membership, [{ members: [memberOf("a", { writer: writer(1) })] }]);
    expect(line(membership, [{ members: [memberOf("a", { writer: writer(2) })] }])).toMatchObject([
      { type: "refused", why: "same_generation_other_members" },
    ]);
  });

  test("a drain and a deadline that moves are said once each", () => {
    const membership = new Membership(0);
    const draining = (deadline: number | null) => [memberOf("a", { state: "draining", deadline })];
    line(membership, [{ members: [memberOf("a")] }]);
    expect(kinds(line(membership, [{ generation: epoch(1, 2), members: draining(null) }]))).toContain("member_draining");
    expect(kinds(line(membership, [{ generation: epoch(1, 3), members: draining(null) }]))).not.toContain("member_draining");
    expect(kinds(line(membership, [{ generation: epoch(1, 4), members: draining(500) }]))).toContain("member_draining");
  });

  test("only those admitted after the first generation start slowly, from their first passed check", () => {
    const membership = new Membership(0);
    line(membership, [{ members: [memberOf("a")] }]);
    line(membership, [{ generation: epoch(1, 2), members: [memberOf("a"), memberOf("b")] }]);
    membership.step(checked("a", null, 100));
    membership.step(checked("b", null, 100));
    expect(membership.find("orders", "a", 1)?.slowStartFrom).toBe(null);
    expect(membership.find("orders", "b", 1)?.slowStartFrom).toBe(100);
  });
});

describe("health", () => {
  const passing = () => {
    const membership = new Membership(0);
    line(membership, [{ members: [memberOf("a")] }]);
    membership.step(checked("a"));
    return membership;
  };

  test("the first passed check makes room (I11)", () => {
    const membership = new Membership(0);
    line(membership, [{ members: [memberOf("a")] }]);
    expect(membership.find("orders", "a", 1)?.health).toBe("unknown");
    expect(kinds(membership.step(checked("a")))).toEqual(["health_changed", "capacity"]);
    expect(kinds(membership.step(checked("a")))).toEqual([]);
  });

  test("one slow check is forgiven, two are not; a refused one is not", () => {
    const membership = passing();
    expect(kinds(membership.step(checked("a", "timeout")))).toEqual([]);
    expect(kinds(membership.step(checked("a", "timeout")))).toEqual(["health_changed"]);
    expect(kinds(passing().step(checked("a", "connection_refused")))).toEqual(["health_changed"]);
  });

  test("after trouble only a check that began later proves anything", () => {
    const membership = passing();
    expect(kinds(membership.step(trouble("a", 50)))).toEqual(["health_changed", "check_now"]);
    expect(kinds(membership.step(checked("a", null, 60, 49)))).toEqual([]);
    expect(kinds(membership.step(checked("a", null, 61, 51)))).toEqual(["health_changed", "capacity"]);
  });
});

test("silence for longer than the TTL is said once and changes no member; any word ends it", () => {
  const membership = new Membership(0);
  line(membership, [{ members: [memberOf("a")] }], { ttlMs: 1_000, at: 0 });
  expect(membership.step({ type: "tick", at: 1_000 })).toEqual([]);
  expect(membership.step({ type: "tick", at: 1_001 })).toEqual([{ type: "cut_off", silentMs: 1_001 }]);
  expect(membership.step({ type: "tick", at: 9_000 })).toEqual([]);
  expect(membership.find("orders", "a", 1)?.state).toBe("serving");
  expect(membership.step({ type: "line", at: 9_001, line: { type: "ping" } })).toEqual([{ type: "connected" }]);
});
