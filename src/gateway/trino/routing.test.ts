/** Which pool takes a statement, of those that share a host. */
import { expect, test } from "vitest";
import type { Routing } from "../../model/trino.ts";
import { checkCounts, membershipLine, policyOf, startTestGateway, untilReady } from "../testing/gateway.ts";
import type { RouteState } from "../membership.ts";
import { Membership } from "../membership.ts";
import { chooseRoute, type StatementWish } from "./routing.ts";
import { startCoordinator } from "./testing/coordinator.ts";
import { follow, post, TRINO } from "./testing/fleet.ts";

function routesOf(routings: Readonly<Record<string, Routing>>): readonly RouteState[] {
  const membership = new Membership(0);
  const routes = Object.entries(routings).map(([route, routing]) => ({
    route,
    policy: policyOf({ trino: { ...TRINO, routing } }),
    members: [],
  }));
  membership.step({ type: "line", at: 0, line: membershipLine(routes) });
  return [...membership.routes.values()];
}

const WISH: StatementWish = { group: undefined, user: undefined, source: undefined };

test("a group that is asked for comes first, then rules that match whole values, then the pool without both", () => {
  const routes = routesOf({
    etl: { group: "etl", source: "airflow.*" },
    people: { user: "ann|bob", source: "cli" },
    rest: {},
    vip: { group: "vip" },
  });
  const chosen = (wish: Partial<StatementWish>) => chooseRoute(routes, { ...WISH, ...wish })?.route;

  expect(chosen({ group: "vip", source: "airflow-1" })).toBe("vip");
  expect(chosen({ group: "etl" })).toBe("etl");
  expect(chosen({ group: "none" })).toBeUndefined();
  expect(chosen({ source: "airflow-1" })).toBe("etl");
  expect(chosen({ source: "my airflow" })).toBe("rest");
  expect(chosen({ user: "ann", source: "cli" })).toBe("people");
  expect(chosen({ user: "annabel", source: "cli" })).toBe("rest");
  expect(chosen({ user: "ann" })).toBe("rest");
  expect(chosen({})).toBe("rest");
});

test("where no pool takes the rest, nothing is guessed", () => {
  expect(chooseRoute(routesOf({ vip: { group: "vip" } }), WISH)).toBeUndefined();
});

test("a value longer than the bound matches no pattern, so that no pattern runs for long", () => {
  const routes = routesOf({ all: { source: ".*" }, rest: {} });
  expect(chooseRoute(routes, { ...WISH, source: "x".repeat(256) })?.route).toBe("all");
  expect(chooseRoute(routes, { ...WISH, source: "x".repeat(257) })?.route).toBe("rest");
});

test("a pattern that cannot be read matches nothing", () => {
  expect(chooseRoute(routesOf({ bad: { source: "(" }, rest: {} }), { ...WISH, source: "(" })?.route).toBe("rest");
});

test("statements of one host go to the pool that takes them, and polls to the cluster of the query whatever their headers say", async () => {
  const etl = await startCoordinator("etl-1", "aaaaa");
  const vip = await startCoordinator("vip-1", "bbbbb");
  const gateway = await startTestGateway();
  const route = (name: string, routing: Routing, member: ReturnType<typeof etl.member>) => ({
    route: name,
    policy: { hosts: ["trino"], trino: { ...TRINO, routing } },
    members: [member],
  });
  gateway.apply(membershipLine([route("etl", { source: "airflow" }, etl.member()), route("vip", { group: "vip" }, vip.member())]));
  await untilReady(gateway);

  const byRule = await post(gateway, "rows 2", { "X-Trino-Source": "airflow" });
  const byGroup = await post(gateway, "rows 2", { "X-Trino-Source": "airflow", "x-trino-routing-group": "vip" });
  const polled = await follow(gateway, byRule.nextUri, "GET", { "X-Trino-Routing-Group": "vip" });
  const none = await post(gateway, "rows 2");

  expect([byRule, byGroup, polled].map((page) => page.headers["relevo-instance"])).toEqual(["etl-1", "vip-1", "etl-1"]);
  expect(none).toMatchObject({ status: 200, error: { errorName: "RELEVO_NO_GROUP", errorType: "USER_ERROR" } });
  checkCounts(gateway);
});
