import { expect, test } from "vitest";
import { foreignChanges, inventoriesPerPassMax, parseAudit, requestCounts } from "./audit.ts";

const AT = "2026-11-30T22:40:00.";

function line(verb: string, uri: string, ref: object, more: object = {}): string {
  const entry = { stage: "ResponseComplete", verb, requestURI: uri, requestReceivedTimestamp: `${AT}000000Z`, objectRef: ref };
  return JSON.stringify({ ...entry, responseStatus: { code: 200 }, ...more });
}

const OWN = {
  instances: new Set(["orders-1a"]),
  nodes: new Set(["node-a"]),
  accounts: new Set(["system:serviceaccount:default:relevo-instances"]),
};
const DEPLOYMENT = { apiGroup: "apps", resource: "deployments", namespace: "default", name: "orders-1a" };
const AS_INSTANCES = { impersonatedUser: { username: "system:serviceaccount:default:relevo-instances" } };

test("what is Relevo's own, and the cordon of a node with evidence, is no foreign change (I8)", () => {
  const entries = parseAudit(
    [
      line("patch", "/", { apiGroup: "relevo.dev", resource: "pools", subresource: "status", name: "orders" }),
      line("create", "/", { resource: "events" }),
      line("create", "/", { ...DEPLOYMENT, name: undefined }, AS_INSTANCES),
      line("delete", "/", DEPLOYMENT, AS_INSTANCES),
      line("patch", "/", { resource: "pods", name: "orders-1a-7d49-hr252" }),
      line("patch", "/", { resource: "nodes", name: "node-a" }),
      line("get", "/", { resource: "nodes", name: "node-b" }),
      line("delete", "/", { resource: "nodes", name: "node-b" }, { responseStatus: { code: 403 } }),
      "",
    ].join("\n"),
  );
  expect(foreignChanges(entries, OWN)).toEqual([]);
});

test("everything else that was changed is named", () => {
  const entries = parseAudit(
    [
      line("patch", "/", { resource: "nodes", name: "node-b" }),
      line("delete", "/", { resource: "nodes", name: "node-a" }),
      line("create", "/", { resource: "pods", subresource: "eviction", name: "orders-1a-7d49-hr252" }),
      line("delete", "/", DEPLOYMENT),
      line("delete", "/", { apiGroup: "relevo.dev", resource: "pools", name: "orders" }),
      line("patch", "/", { resource: "pods", name: "other" }),
      line("delete", "/", { apiGroup: "karpenter.sh", resource: "nodeclaims", name: "fleet-1" }),
      "",
    ].join("\n"),
  );
  expect(foreignChanges(entries, OWN)).toEqual([
    "patch nodes node-b",
    "delete nodes node-a",
    "create pods/eviction orders-1a-7d49-hr252",
    "delete deployments orders-1a",
    "delete pools orders",
    "patch pods other",
    "delete nodeclaims fleet-1",
  ]);
});

test("lists of all of a kind are counted for each time of a pass; pages, and what is asked of one instance, are not (I19)", () => {
  const pods = { resource: "pods" };
  const all = [
    line("list", "/api/v1/pods?labelSelector=relevo.dev%2Finstance&limit=500", pods),
    line("list", "/api/v1/pods?labelSelector=relevo.dev%2Finstance&limit=500&continue=abc", pods),
    line("list", "/api/v1/pods?labelSelector=relevo.dev%2Finstance%3Dorders-1a", pods),
    line("watch", "/api/v1/pods?sendInitialEvents=true", pods, {
      stage: "ResponseStarted",
      requestReceivedTimestamp: `${AT}400000Z`,
    }),
    line("watch", "/api/v1/pods?sendInitialEvents=true", pods, { requestReceivedTimestamp: `${AT}400000Z` }),
    line("list", "/api/v1/nodes?limit=500", { resource: "nodes" }),
    "",
  ].join("\n");
  const entries = parseAudit(`${all}{"verb":"li`);
  const from = Date.parse(`${AT}000Z`);
  expect(inventoriesPerPassMax(entries, [from, from + 1_000])).toBe(2);
  expect(inventoriesPerPassMax(entries, [from + 400, from + 1_000])).toBe(1);
  expect(inventoriesPerPassMax(entries, [from + 1_000, from + 2_000])).toBe(0);
  expect(requestCounts(entries, [from, from + 1_000])).toEqual([
    { request: "list pods", count: 3 },
    { request: "list nodes", count: 1 },
  ]);
});
