/** Writer leases while a part is away: silence that nobody listened to is no silence (S10). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import { storeUnavailable } from "../../src/store/port.ts";
import { Harness, ordersPool } from "./harness.ts";
import { intercept } from "./intercept.ts";
import { leasedPool, serveWriting, TTL_MS, workloadsOf } from "./leased.ts";
import { serverAway } from "./observed-kube.ts";

let harness: Harness;
afterEach(() => harness.close());

test("when most leases run late at once and nobody else sees anything, the brake holds suspicion and fences; it goes when they renew", async () => {
  harness = await Harness.start();
  const serving = await serveWriting(harness, leasedPool(3));
  for (const { id } of serving) harness.writers.silent.add(id);
  await harness.until("the brake holds", async () => (await harness.reasons()).includes("lease_brake"));
  await harness.pass(10 * TTL_MS);

  expect(await harness.evidence()).toEqual([]);
  expect((await workloadsOf(harness)).map(({ writerEpoch, holder }) => [writerEpoch, holder !== null])).toEqual(
    serving.map(() => ["0.1", true]),
  );
  expect(harness.writers.writing(), "they have stopped themselves").toEqual([]);

  harness.writers.silent.clear();
  await harness.until("all write again", () => harness.writers.writing().length === 3);
  await harness.until("all are trusted", async () => (await harness.serving()).every(({ trust }) => trust === "ok"));
  await harness.pass(1_000);
  expect(harness.gateways[0]?.routed().toSorted()).toEqual(serving.map(({ id }) => id).toSorted());
  expect(await harness.reasons()).not.toContain("lease_brake");
});

test("a second witness releases the brake: whom a gateway does not reach either is fenced", async () => {
  harness = await Harness.start({ nodes: 6 });
  const serving = await serveWriting(harness, leasedPool(3, { disruption: { unreachableAfter: "1h" } }));
  for (const { incarnation } of serving) harness.instances.unreachable.add(incarnation.host ?? "");
  await harness.until(
    "all are fenced for it",
    async () => (await harness.evidence()).filter(({ reason }) => reason === "lease_expired").length === 3,
  );
  await harness.until("others write", () => harness.writers.writing().length === 3);
  expect(harness.writers.writing().map(({ epoch }) => epoch)).toEqual(["0.2", "0.2", "0.2"]);
});

test("a controller that was away for longer than the TTL gives everybody a full TTL; who had stopped itself goes on under its epoch", async () => {
  harness = await Harness.start();
  const serving = await serveWriting(harness);
  await harness.restartController(10 * TTL_MS);
  expect(harness.clock.monotonic()).toBeGreaterThan(10 * TTL_MS);

  await harness.until("all write again", () => harness.writers.writing().length === 2);
  await harness.pass(4 * TTL_MS);
  expect(await harness.evidence()).toEqual([]);
  expect((await harness.serving()).map(({ id, trust }) => [id, trust])).toEqual(serving.map(({ id }) => [id, "ok"]));
  expect(harness.writers.writing().map(({ epoch }) => epoch)).toEqual(["0.1", "0.1"]);
});

test("who stays silent after the controller's return is suspected a full TTL later, and fenced after one more", async () => {
  harness = await Harness.start();
  const [victim] = await serveWriting(harness, leasedPool(3));
  harness.writers.silent.add(victim?.id ?? "");
  await harness.restartController(10 * TTL_MS);
  const backAt = harness.clock.now();

  await harness.until("it is suspect", async () => (await harness.instance(victim?.id ?? "")).trust === "suspect");
  expect(harness.clock.now() - backAt).toBeGreaterThan(TTL_MS - 300);
  await harness.until("it is fenced", async () => (await harness.instance(victim?.id ?? "")).trust === "fenced");
  expect(harness.clock.now() - backAt).toBeGreaterThan(2 * TTL_MS - 300);
  expect(harness.clock.now() - backAt).toBeLessThan(3 * TTL_MS);
});

test("while the store cannot be written nobody renews and nobody is judged; afterwards all go on", async () => {
  let isAway = false;
  harness = await Harness.start({
    store: (store) =>
      intercept(store, ({ name }, go) =>
        isAway && (name === "commit" || name === "renewLease") ? Promise.reject(storeUnavailable("the disk is full", undefined)) : go(),
      ),
  });
  await serveWriting(harness, leasedPool(1));
  isAway = true;
  await harness.until("it stops itself", () => harness.writers.writing().length === 0);
  await harness.pass(10 * TTL_MS);
  isAway = false;
  await harness.until("it writes again", () => harness.writers.writing().length === 1);
  await harness.pass(3 * TTL_MS);
  expect(await harness.evidence()).toEqual([]);
  expect(harness.writers.writing().map(({ epoch }) => epoch)).toEqual(["0.1"]);
  expect((await harness.serving()).map(({ trust }) => trust)).toEqual(["ok"]);
});

test("after an outage of the store that outlasts every check, nobody is taken for lost: they only lacked their leases", async () => {
  let isAway = false;
  harness = await Harness.start({
    store: (store) => intercept(store, (_, go) => (isAway ? Promise.reject(storeUnavailable("the disk is gone", undefined)) : go())),
  });
  const serving = await serveWriting(harness, leasedPool(3));
  isAway = true;
  await harness.pass(120_000);
  expect(harness.writers.writing()).toEqual([]);
  isAway = false;
  await harness.until("all write again", () => harness.writers.writing().length === 3);
  await harness.pass(60_000);
  expect(await harness.evidence()).toEqual([]);
  expect((await harness.serving()).map(({ id, trust }) => [id, trust]).toSorted()).toEqual(serving.map(({ id }) => [id, "ok"]).toSorted());
});

test("a pool whose passes fail for another reason than the store keeps no lease of another pool from running out (I15)", async () => {
  harness = await Harness.start();
  const [victim] = await serveWriting(harness, leasedPool(3));
  harness.kube.failing = ({ verb, kind, name }) => (verb === "patch" && kind === "Pool" && name === "other" ? serverAway() : undefined);
  await harness.apply(ordersPool({ name: "other" }));
  await harness.pass(1_000);

  harness.writers.silent.add(victim?.id ?? "");
  await harness.until("it is fenced", async () => (await harness.instance(victim?.id ?? "")).trust === "fenced", 4 * TTL_MS);
});
