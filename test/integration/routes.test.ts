/** Routes are names that pools share with nobody, and that may change under traffic. Level: simulated. */
import { afterEach, expect, test } from "vitest";
import { NAMESPACES, POOLS } from "../../src/kube/resources.ts";
import { Harness, ordersPool } from "./harness.ts";

let harness: Harness;
afterEach(() => harness.close());

test("of two pools with one route the first keeps it; the other admits nothing, says why, and can be deleted", async () => {
  harness = await Harness.start();
  const first = (await harness.serve()).map(({ id }) => id).toSorted();
  await harness.cluster.api.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: "other" } });
  await harness.apply(ordersPool({ namespace: "other" }));
  await harness.pass(10_000);
  expect(harness.gateways[0]?.routed()).toEqual(first);
  expect([(await harness.serving("other/orders")).length, await harness.reasons("other/orders")]).toEqual([
    0,
    expect.arrayContaining(["route_taken"]),
  ]);

  const ref = { type: POOLS, namespace: "other", name: "orders" };
  await harness.cluster.api.patch(ref, { spec: { deletion: "drain" } });
  await harness.cluster.api.delete(ref);
  await harness.until("it is gone", async () => (await harness.records("other/orders")).length === 0);
  expect((await harness.serving()).map(({ id }) => id).toSorted()).toEqual(first);
});

test("what a replica still holds under a route's former name is held against the seal (D5)", async () => {
  harness = await Harness.start();
  const [victim] = await harness.serve();
  harness.gateways[0]?.hold(victim?.id ?? "", { requests: 1 }, "orders");
  await harness.cluster.api.patch({ type: POOLS, namespace: "default", name: "orders" }, { spec: { traffic: { route: "renamed" } } });
  await harness.until("the new name is served", () => harness.gateways[0]?.routed("renamed").length === 2);
  await harness.drift(victim?.incarnation.nodeName ?? "");
  await harness.until("it drains", async () => (await harness.phase(victim?.id ?? "")) === "draining");
  await harness.pass(10_000);
  expect(await harness.phase(victim?.id ?? "")).toBe("draining");
  expect(harness.gateways[0]?.routed("orders")).not.toContain(victim?.id);

  harness.gateways[0]?.release(victim?.id ?? "");
  await harness.until("it is sealed and gone", async () => (await harness.phase(victim?.id ?? "")) === "deleted");
  expect(await harness.instance(victim?.id ?? "")).toMatchObject({ seal: "confirmed" });
});
