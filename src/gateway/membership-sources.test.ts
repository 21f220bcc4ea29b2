/** What a replica makes of several controllers that speak to it. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { compareEpochs, epoch, EPOCH_ZERO } from "../kernel/epoch.ts";
import { Membership, type MembershipEffect } from "./membership.ts";
import { memberOf, membershipLine, type RouteGiven } from "./testing/gateway.ts";

const kinds = (effects: readonly MembershipEffect[]) => effects.map((effect) => effect.type);

function said(membership: Membership, source: string, routes: readonly RouteGiven[], given: { complete?: boolean; names?: string[] } = {}) {
  const { names, ...rest } = given;
  const line = membershipLine(routes, rest);
  return membership.step({ type: "line", at: 0, source, line: { ...line, ...(names === undefined ? {} : { names }) } as typeof line });
}

const sealed = (route: string): RouteGiven => ({ route, members: [memberOf("a", { state: "sealed" })] });

test("the newest generation of a route counts, whoever says it; an older one from the former owner is refused", () => {
  const membership = new Membership(0);
  said(membership, "one", [{ generation: epoch(1, 7), members: [memberOf("a")] }]);
  said(membership, "two", [{ generation: epoch(1, 8), members: [memberOf("a", { state: "draining" })] }]);
  expect(said(membership, "one", [{ generation: epoch(1, 7), members: [memberOf("a")] }])).toMatchObject([{ why: "older_generation" }]);
  expect(membership.find("orders", "a", 1)?.state).toBe("draining");
});

test("a controller that does not have a route, and names it, leaves it alone", () => {
  const membership = new Membership(0);
  said(membership, "one", [sealed("orders")], { complete: true });
  expect(kinds(said(membership, "two", [], { complete: true, names: ["orders"] }))).toEqual([]);
  expect(membership.routes.has("orders")).toBe(true);
});

test("a route that one of the connected ones publishes is not dropped because another never heard of it", () => {
  const membership = new Membership(0);
  said(membership, "one", [sealed("orders")]);
  said(membership, "two", [], { complete: true, names: [] });
  expect(membership.routes.has("orders")).toBe(true);
});

test("a route goes when none of them publishes or names it any more", () => {
  const membership = new Membership(0);
  said(membership, "one", [sealed("orders")], { complete: true, names: ["orders"] });
  said(membership, "two", [], { complete: true, names: ["orders"] });
  expect(kinds(said(membership, "one", [], { complete: true, names: [] }))).toEqual([]);
  expect(kinds(said(membership, "two", [], { complete: true, names: [] }))).toEqual(["route_removed"]);
});

test("one whose stream is over has no say in what is gone; what it said stays applied until another one says all", () => {
  const membership = new Membership(0);
  said(membership, "one", [sealed("orders")], { complete: true });
  expect(membership.step({ type: "closed", source: "one" })).toEqual([]);
  expect(membership.routes.has("orders")).toBe(true);
  expect(kinds(said(membership, "two", [], { complete: true, names: [] }))).toEqual(["route_removed"]);
});

test("whoever says what in whatever order, what is applied never goes back, and what serves is never dropped", () => {
  const aLine = fc.record({
    source: fc.constantFrom("one", "two", "three"),
    counter: fc.integer({ min: 1, max: 5 }),
    says: fc.constantFrom("route", "all", "nothing", "closed"),
  });
  fc.assert(
    fc.property(fc.array(aLine), (lines) => {
      const membership = new Membership(0);
      let highest = EPOCH_ZERO;
      for (const { source, counter, says } of lines) {
        const route = { generation: epoch(1, counter), members: [memberOf("a")] };
        if (says === "closed") membership.step({ type: "closed", source });
        else said(membership, source, says === "nothing" ? [] : [route], says === "route" ? {} : { complete: true, names: [] });
        const applied = membership.routes.get("orders")?.generation;
        if (highest !== EPOCH_ZERO) expect(applied).toBeDefined();
        if (applied === undefined) continue;
        expect(compareEpochs(applied, highest)).toBeGreaterThanOrEqual(0);
        highest = applied;
      }
    }),
  );
});
