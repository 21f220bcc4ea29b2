/** The Pub/Sub adapter against Google's fake of Pub/Sub with the two gauges of Cloud Monitoring. */
import { afterEach, expect, test } from "vitest";
import { type ConnectionOf, connectionSchema } from "../../src/demand/connections.ts";
import type { DemandSource } from "../../src/demand/port.ts";
import { pubsubAdapter } from "../../src/demand/pubsub/adapter.ts";
import { look, troubleOf, within } from "../../src/demand/testing/look.ts";
import { systemClock } from "../../src/kernel/system.ts";
import { type SignalOf, signalSchema } from "../../src/model/demand.ts";
import { type PubSub, startPubSub } from "./pubsub.ts";

const PATIENT = { timeout: 30_000, interval: 200 };
const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
});

async function start(...args: readonly string[]): Promise<PubSub> {
  const pubsub = await startPubSub(...args);
  open.push({ close: () => pubsub.stop() });
  return pubsub;
}

const never = (): never => {
  throw new Error("nobody asks the API server");
};

function sourceOf({ endpoint }: PubSub, subscription: string): DemandSource {
  const source = pubsubAdapter.open(
    signalSchema.parse({ kind: "pubsub", connection: "gcp", project: "shop", subscription }) as SignalOf<"pubsub">,
    connectionSchema.parse({ kind: "google-monitoring", name: "gcp", endpoint, auth: "none" }) as ConnectionOf<"google-monitoring">,
    { clock: systemClock, kube: { get: never, list: never }, namespace: "shop" },
  );
  open.push(source);
  return source;
}

test("backlog and age follow the subscription: published, acknowledged, empty; the sibling's are its own (K1)", async () => {
  const pubsub = await start();
  await pubsub.createSubscription("orders");
  await pubsub.createSubscription("sibling");
  const source = sourceOf(pubsub, "orders");
  await expect.poll(() => look(source), PATIENT).toMatchObject({ backlog: 0, oldestAgeMs: null, flow: "pubsub/shop/orders" });
  await pubsub.publish("orders", 42);
  await expect.poll(() => look(source), PATIENT).toMatchObject({ backlog: 42 });
  await expect.poll(async () => (await source.read(within(10_000))).oldestAgeMs ?? 0, PATIENT).toBeGreaterThanOrEqual(2_000);
  let left = 42;
  while (left > 2) left -= await pubsub.takeAndAcknowledge("orders", left - 2);
  await expect.poll(() => look(source), PATIENT).toMatchObject({ backlog: 2 });
  const sibling = sourceOf(pubsub, "sibling");
  expect(await look(sibling)).toMatchObject({ backlog: 0, flow: "pubsub/shop/sibling" });
  expect(await troubleOf(sibling, { flow: "pubsub/shop/orders" })).toBe("other_flow");
});

test("a subscription that does not exist is missing; one that is deleted is stale when its last point is too old, and never zero (K11)", async () => {
  const pubsub = await start();
  expect(await look(sourceOf(pubsub, "nothing"))).toMatch(
    /^missing: Cloud Monitoring has no value of subscription nothing of project shop/,
  );
  await pubsub.createSubscription("short-lived");
  await pubsub.publish("short-lived", 3);
  const source = sourceOf(pubsub, "short-lived");
  await expect.poll(() => look(source), PATIENT).toMatchObject({ backlog: 3 });
  await pubsub.deleteSubscription("short-lived");
  await expect.poll(() => look(source, { maxAgeMs: 3_000 }), PATIENT).toMatch(/^stale: /);
  expect(await look(source)).toMatchObject({ backlog: 3 });
});

test("points that come a minute late are as old as they are: where 55 s are allowed they are stale, with two minutes they are not (K11)", async () => {
  const pubsub = await start("-lag", "60s");
  await pubsub.createSubscription("orders");
  await pubsub.publish("orders", 5);
  const source = sourceOf(pubsub, "orders");
  expect(await troubleOf(source)).toBe("missing");
  const twoMinutes = { maxAgeMs: 120_000 };
  await expect.poll(() => look(source, twoMinutes), { timeout: 90_000, interval: 500 }).toMatchObject({ backlog: 5 });
  // The clock of an answer is cut to the second.
  expect(await look(source, { maxAgeMs: 55_000 })).toMatch(/^stale: its value is (59|1m)/);
});

test.each(["5m", "-5m"])("a clock of Google's that is %s off ours changes nothing (K11)", async (ahead) => {
  const pubsub = await start(`-ahead=${ahead}`);
  await pubsub.createSubscription("orders");
  await pubsub.publish("orders", 7);
  const source = sourceOf(pubsub, "orders");
  await expect.poll(() => look(source, { maxAgeMs: 5_000 }), PATIENT).toMatchObject({ backlog: 7, flow: "pubsub/shop/orders" });
});
