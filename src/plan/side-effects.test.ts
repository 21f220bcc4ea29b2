/** What is done beside an instance (its node, its pods) never stands in the way of what the instance itself must do. */
import { expect, test } from "vitest";
import { at, instance, node, NOON, pod, poolOf, serving } from "../../test/builders/pool.ts";
import { planPool } from "./plan.ts";
import type { PoolSnapshot } from "./snapshot.ts";

const kinds = (pool: PoolSnapshot): readonly string[] =>
  planPool(pool, NOON).decisions.map((decision) => `${decision.kind} ${"instance" in decision ? decision.instance : ""}`.trim());

const going = node("z", { findings: [] });

test("a node that cannot be cordoned does not keep its instance from draining before the deadline (D12, I15)", () => {
  const pool = poolOf({}, [serving({ on: [going], evidence: ["spot_interruption"], deadline: at("12:00:05") })]);
  expect(kinds(pool)).toContain("drain_instance orders-a");
});

test("an operator who uncordons a node does not end the replacement of what runs on it (D10)", () => {
  const pool = poolOf({}, [
    serving({ on: [going], evidence: ["node_drifted"] }),
    serving({ id: "orders-b", record: { purpose: "replace", replaces: "orders-a" } }),
  ]);
  expect(kinds(pool)).toContain("drain_instance orders-a");
});

test("a pod that cannot be marked does not keep its instance from leaving (I15)", () => {
  const pool = poolOf({}, [
    serving({ pods: [pod("p", going, { protectedByUs: false })], evidence: ["process_unreachable"] }),
    serving({ id: "orders-b", record: { purpose: "replace", replaces: "orders-a" } }),
  ]);
  expect(kinds(pool)).toContain("drain_instance orders-a");
});

test("a condemned candidate is given up in the same pass in which its node is cordoned", () => {
  const candidate = instance("validating", { on: [going], evidence: ["node_drifted"], health: { state: "unknown" } });
  expect(kinds(poolOf({}, [candidate]))).toContain("move orders-a");
});

test.each(["creating", "retiring"] as const)(
  "an instance whose step ended without its consequences does not stay %s for ever (D14)",
  (phase) => {
    expect(kinds(poolOf({ desired: 0 }, [instance(phase)]))).toEqual([phase === "creating" ? "move orders-a" : "delete_instance orders-a"]);
  },
);
