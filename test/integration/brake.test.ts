/** Most of a site is silent at once and nobody announced it: the observer is suspected first (D12). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import { Harness, ordersPool } from "./harness.ts";

const MINUTE = 60_000;

let harness: Harness;
afterEach(() => harness.close());

test("more than half of a site silent at once without a notice: the brake holds, however long, and a second witness releases it (D12)", async () => {
  harness = await Harness.start({ nodes: 12 });
  const serving = await harness.serve(ordersPool({ desired: 10, disruption: { unreachableAfter: "5s" } }));
  const silent = serving.slice(0, 6);
  const [gateway] = harness.gateways;
  gateway?.cutOff();
  for (const { incarnation } of silent) harness.instances.unreachable.add(incarnation.host ?? "");

  await harness.until("the brake holds", async () => (await harness.reasons()).includes("brake"));
  await harness.pass(10 * MINUTE);
  expect([await harness.evidence(), (await harness.serving()).map(({ id }) => id)]).toEqual([[], serving.map(({ id }) => id)]);

  await gateway?.connect(harness.controlPlane);
  await harness.until("all six are lost", async () => (await harness.evidence()).length === 6);
  expect(new Set((await harness.evidence()).map(({ reason }) => reason))).toEqual(new Set(["process_unreachable"]));
  await harness.untilServing(10, "default/orders", 5 * MINUTE);
  expect(await harness.reasons()).not.toContain("brake");
  expect((await harness.serving()).filter(({ id }) => silent.some((each) => each.id === id))).toEqual([]);
});

test("when most answer again nobody was lost, and nothing is replaced (D12)", async () => {
  harness = await Harness.start({ nodes: 12 });
  const serving = await harness.serve(ordersPool({ desired: 10, disruption: { unreachableAfter: "5s" } }));
  harness.gateways[0]?.cutOff();
  for (const { incarnation } of serving) harness.instances.unreachable.add(incarnation.host ?? "");
  await harness.until("the brake holds", async () => (await harness.reasons()).includes("brake"));
  await harness.pass(5 * MINUTE);

  harness.instances.unreachable.clear();
  await harness.gateways[0]?.connect(harness.controlPlane);
  await harness.until("it is over", async () => !(await harness.reasons()).includes("brake"));
  await harness.pass(5 * MINUTE);
  expect([await harness.evidence(), (await harness.serving()).map(({ id }) => id)]).toEqual([[], serving.map(({ id }) => id)]);
});
