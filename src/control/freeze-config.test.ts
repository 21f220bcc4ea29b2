/** A freeze by ConfigMap: what it says, whom it concerns, and that what is not understood holds too. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { KubeObject } from "../kube/api.ts";
import { concerns, FREEZE_CONFIG, joinFreezes, parseFreezeConfig, UNTIL_REMOVED } from "./freeze-config.ts";

const NOON = Date.UTC(2030, 0, 1, 12);

function configMap(data: unknown, namespace = "shop"): KubeObject {
  const metadata = { name: FREEZE_CONFIG, namespace, uid: "u", resourceVersion: "1", creationTimestamp: "" };
  return { apiVersion: "v1", kind: "ConfigMap", metadata, data };
}

function ruleOf(data: unknown, namespace?: string) {
  const parsed = parseFreezeConfig(configMap(data, namespace));
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.value;
}

test("it names pools, an end and a reason", () => {
  expect(ruleOf({ pool: "orders, billing", until: "2030-01-01T12:00:00Z", reason: "a migration" })).toEqual({
    namespace: "shop",
    pools: ["orders", "billing"],
    freeze: { until: NOON, why: "a migration", by: "ConfigMap shop/relevo-freeze" },
  });
});

test("* means all; without an end it holds until it is removed", () => {
  expect(ruleOf({ pool: "*" })).toEqual({
    namespace: "shop",
    pools: null,
    freeze: { until: UNTIL_REMOVED, why: "no reason was given", by: "ConfigMap shop/relevo-freeze" },
  });
});

test.each([
  ["no data", undefined, "pool is missing, allowed is * or names separated by commas (no reason was given)"],
  ["an empty pool", { pool: " " }, 'pool is " ", allowed is * or names separated by commas (no reason was given)'],
  ["* among names", { pool: "*, orders" }, 'pool is "*, orders", allowed is * or names separated by commas (no reason was given)'],
  [
    "a time that is none",
    { pool: "*", until: "tomorrow", reason: "why" },
    'until is "tomorrow", allowed is a time such as 2030-01-01T12:00:00Z (why)',
  ],
  [
    "a key that is none",
    { pool: "*", Until: "2030-01-01T12:00:00Z" },
    '"Until" is no key, allowed are pool, until, reason (no reason was given)',
  ],
  ["data of another form", { pool: 1 }, "pool is missing, allowed is * or names separated by commas (no reason was given)"],
])("what is not understood freezes until it is repaired, and says so: %s", (_name, data, said) => {
  const { freeze } = ruleOf(data);
  expect(freeze.until).toBe(UNTIL_REMOVED);
  expect(freeze.why).toBe(`ConfigMap shop/relevo-freeze is not understood, so all that it may mean is frozen: ${said}`);
});

test("a mistake in the time leaves the pools as they were named; one in the pools means all", () => {
  expect(ruleOf({ pool: "orders", until: "soon" }).pools).toEqual(["orders"]);
  expect(ruleOf({ pool: "ORDERS!", until: "2030-01-01T12:00:00Z" }).pools).toBeNull();
});

test("whatever is in it, it is understood or it freezes: it is never refused", () => {
  fc.assert(
    fc.property(fc.anything(), (data) => {
      const { freeze, pools } = ruleOf(data);
      expect(freeze.until).toBeGreaterThan(0);
      expect(freeze.why.length).toBeLessThan(2_000);
      expect(pools === null || pools.length > 0).toBe(true);
    }),
  );
});

test("in a namespace with Pools it speaks of these alone; in the controller's own of all", () => {
  const all = ruleOf({ pool: "*" });
  const one = ruleOf({ pool: "orders" });
  const foreign = ruleOf({ pool: "other/orders" });
  const own = ruleOf({ pool: "*" }, "relevo-system");
  const named = ruleOf({ pool: "shop/orders" }, "relevo-system");
  const asked = (pool: string) => [all, one, foreign, own, named].map((rule) => concerns(rule, pool, "relevo-system"));

  expect(asked("shop/orders")).toEqual([true, true, false, true, true]);
  expect(asked("shop/billing")).toEqual([true, false, false, true, false]);
  expect(asked("other/orders")).toEqual([false, false, false, true, false]);
  expect(concerns(own, "shop/orders", null)).toBe(false);
});

test("of two freezes the later end holds, with both reasons", () => {
  const store = { until: NOON, why: "a test", by: "ann" };
  const config = { until: UNTIL_REMOVED, why: "a migration", by: "ConfigMap shop/relevo-freeze" };
  expect(joinFreezes(store, null)).toBe(store);
  expect(joinFreezes(null, null)).toBeNull();
  expect(joinFreezes(store, config)).toEqual({ until: UNTIL_REMOVED, why: "a migration; ann: a test", by: config.by });
});
