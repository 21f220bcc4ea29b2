/** Candidates that are no good: bounded, told, cleaned up, and never in the way of anybody else (D7, D14, I15, I18). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import { Harness, ordersPool } from "./harness.ts";

const MINUTE = 60_000;

let harness: Harness;
afterEach(() => harness.close());

async function failed(): Promise<readonly { readonly instance: string; readonly failure: string; readonly replaces: string | null }[]> {
  const all = await harness.store.listInstances("default/orders", 1_000);
  return all.flatMap(({ id, failure, replaces }) => (failure === null ? [] : [{ instance: id, failure, replaces }]));
}

/** Watches over a stretch of time that never fewer serve. */
async function passServing(ms: number, atLeast: number): Promise<void> {
  for (const end = harness.clock.now() + ms; harness.clock.now() < end; await harness.pass(500))
    expect((await harness.serving()).length).toBeGreaterThanOrEqual(atLeast);
}

test("a candidate that lands on a drifting node is given up and cleaned up, and the next one finds a good node (D7, D14)", async () => {
  harness = await Harness.start();
  const [victim] = await harness.serve(ordersPool({ desired: 1 }));
  expect(victim?.incarnation.nodeName).toBe("node-a1");
  for (const node of ["node-b1", "node-b2"]) await harness.cordon(node);
  await harness.drift("node-a2");

  await harness.drift("node-a1");
  await harness.until("a candidate failed", async () => (await failed()).length === 1);
  expect(await failed()).toMatchObject([{ failure: "node_drifting", replaces: victim?.id }]);
  await harness.cordon("node-b1", false);
  await harness.cordon("node-a2");
  await harness.until("it is replaced", async () => (await harness.phase(victim?.id ?? "")) === "deleted", 5 * MINUTE);

  expect((await harness.serving()).map(({ incarnation }) => incarnation.nodeName)).toEqual(["node-b1"]);
  for (const { instance } of await failed())
    await harness.until("the failed one is gone", async () => (await harness.phase(instance)) === "deleted");
  expect(harness.runtime.containers().length).toBe(1);
});

test("a candidate that never gets ready is given up in time; after four within the window no more are tried, and the old one serves on (D14, I18)", async () => {
  let areBroken = false;
  harness = await Harness.start({ model: () => (areBroken ? { readyAfterMs: undefined } : {}) });
  const [victim] = await harness.serve(ordersPool({ disruption: { candidates: { retries: 3, per: "5m", readyWithin: "20s" } } }));
  areBroken = true;

  await harness.drift(victim?.incarnation.nodeName ?? "");
  await passServing(3 * MINUTE, 2);
  expect((await failed()).map(({ failure, replaces }) => [failure, replaces])).toEqual(
    Array.from({ length: 4 }, () => ["not_ready_in_time", victim?.id]),
  );
  expect(await harness.reasons()).toContain(`${victim?.id} candidates_held`);
  expect((await harness.records()).map(({ phase }) => phase)).toEqual(["serving", "serving"]);

  areBroken = false;
  await harness.until("it is replaced", async () => (await harness.phase(victim?.id ?? "")) === "deleted", 10 * MINUTE);
  await harness.untilServing(2);
  expect((await failed()).length).toBe(4);
});

test("where only nodes without an owner have room, attempts are bounded and then held, and an unrelated repair proceeds (D7, D14, I15, I18)", async () => {
  harness = await Harness.start({ nodes: 3, provisioner: { vanishAfterMs: 5_000 } });
  const [first, second] = await harness.serve();
  const homes = [first, second].map((record) => record?.incarnation.nodeName ?? "");
  const spare = ["node-a1", "node-a2", "node-b1"].find((node) => !homes.includes(node)) ?? "";
  await harness.cordon(spare);
  await harness.startUnownedNode("node-x1");

  await harness.drift(homes[0] ?? "");
  await passServing(2 * MINUTE, 2);
  expect((await failed()).map(({ failure, replaces }) => [failure, replaces])).toEqual(
    Array.from({ length: 4 }, () => ["node_owner_unknown", first?.id]),
  );
  expect(await harness.reasons()).toContain(`${first?.id} candidates_held`);

  await harness.cordon(spare, false);
  await harness.cordon("node-x1");
  await harness.cluster.provisioner.kill(homes[1] ?? "");
  await harness.until(
    "the lost one is replaced",
    async () => (await harness.serving()).some(({ replaces }) => replaces === second?.id),
    MINUTE,
  );
  expect((await harness.serving()).map(({ incarnation }) => incarnation.nodeName).toSorted()).toEqual([homes[0], spare].toSorted());
  expect(await harness.phase(first?.id ?? "")).toBe("serving");
  expect(await harness.reasons()).toContain(`${first?.id} candidates_held`);
});

test("a candidate that waits for a place is no failure: it waits quietly, and is used when there is one (D7)", async () => {
  harness = await Harness.start({ nodes: 2 });
  const [victim] = await harness.serve(ordersPool({ desired: 1 }));
  const other = victim?.incarnation.nodeName === "node-a1" ? "node-b1" : "node-a1";
  await harness.cordon(other);

  await harness.drift(victim?.incarnation.nodeName ?? "");
  await passServing(6 * MINUTE, 1);
  expect(await failed()).toEqual([]);
  expect((await harness.reasons()).filter((line) => line.endsWith("waiting_for_schedule")).length).toBe(1);

  await harness.cordon(other, false);
  await harness.until("it is replaced", async () => (await harness.phase(victim?.id ?? "")) === "deleted");
  expect((await harness.serving()).map(({ incarnation }) => incarnation.nodeName)).toEqual([other]);
});
