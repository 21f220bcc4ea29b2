import { expect, test } from "vitest";
import { epoch } from "../kernel/epoch.ts";
import { controllerLineSchema, gatewayReportSchema } from "../model/membership.ts";
import { Ledger } from "./ledger.ts";
import { Membership } from "./membership.ts";
import { reportOf } from "./report.ts";
import { membershipLine } from "./testing/gateway.ts";

const NONE = { accepted: 0, completed: 0, inFlight: 0, queued: 0, rejected: 0, cut: 0, retried: 0 };

test("a report says whose generation is applied, also with no member left; nothing where the controller did not say it", () => {
  const membership = new Membership(0);
  const routes = [
    { route: "orders", pool: "default/orders", generation: epoch(0, 20), members: [] },
    { route: "shop", generation: epoch(0, 3), members: [] },
  ];
  membership.step({ type: "line", at: 0, line: controllerLineSchema.parse(membershipLine(routes)) });
  expect(gatewayReportSchema.parse(reportOf("gw-1", 7, membership, new Ledger()))).toEqual({
    replica: "gw-1",
    sequence: 7,
    routes: [
      { route: "orders", pool: "default/orders", applied: "0.20", members: [], counts: NONE },
      { route: "shop", applied: "0.3", members: [], counts: NONE },
    ],
  });
});

test("a report says what was applied last of a route that is gone, until it is there again", () => {
  const membership = new Membership(0);
  const say = (routes: Parameters<typeof membershipLine>[0]) =>
    membership.step({ type: "line", at: 0, line: controllerLineSchema.parse(membershipLine(routes, { complete: true })) });
  const route = { route: "orders", pool: "default/orders", generation: epoch(0, 20), members: [] };
  say([route]);
  say([]);
  const report = reportOf("gw-1", 8, membership, new Ledger());
  expect(gatewayReportSchema.parse(report)).toEqual({
    ...{ replica: "gw-1", sequence: 8, routes: [] },
    ended: [{ route: "orders", pool: "default/orders", applied: "0.20" }],
  });
  say([{ ...route, generation: epoch(0, 21) }]);
  expect(reportOf("gw-1", 9, membership, new Ledger())).not.toHaveProperty("ended");
});
