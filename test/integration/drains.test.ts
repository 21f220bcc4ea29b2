/** Drains that end, that never end, and that are overtaken by the death of their process (D5, D6, D13, I5, I15). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import type { InstanceRecord } from "../../src/model/instance.ts";
import { PODS } from "../../src/kube/resources.ts";
import { Harness, ordersPool } from "./harness.ts";

const MINUTE = 60_000;

let harness: Harness;
afterEach(() => harness.close());

async function drain(victim: InstanceRecord | undefined, held: { readonly requests?: number; readonly sessions?: number }): Promise<void> {
  for (const gateway of harness.gateways) gateway.hold(victim?.id ?? "", held);
  await harness.drift(victim?.incarnation.nodeName ?? "");
  await harness.until("it drains", async () => (await harness.phase(victim?.id ?? "")) === "draining");
}

test("a drain that never ends holds up nobody else: others drain beside it, it is called overdue, and nothing is killed (D5, I5, I15)", async () => {
  harness = await Harness.start({ nodes: 6 });
  const [stuck, second, third] = await harness.serve(ordersPool({ desired: 3, disruption: { surge: 1, draining: 2, drainFor: "5m" } }));
  await drain(stuck, { sessions: 1 });

  for (const next of [second, third]) {
    await harness.drift(next?.incarnation.nodeName ?? "");
    await harness.until(`${next?.id} is replaced`, async () => (await harness.phase(next?.id ?? "")) === "deleted");
    expect((await harness.serving()).length).toBe(3);
  }
  await harness.pass(12 * MINUTE);
  expect(await harness.instance(stuck?.id ?? "")).toMatchObject({
    phase: "draining",
    drainLoss: "voluntary",
    drainDeadline: null,
    seal: null,
  });
  expect(await harness.reasons()).toContain(`${stuck?.id} drain_overdue`);
  expect(harness.runtime.containers().length).toBe(4);

  harness.gateways[0]?.release(stuck?.id ?? "");
  await harness.until("it is gone", async () => (await harness.phase(stuck?.id ?? "")) === "deleted");
  expect(await harness.instance(stuck?.id ?? "")).toMatchObject({ seal: "confirmed", drainLoss: "voluntary" });
  expect((await harness.pool()).losses).toEqual([{ loss: "voluntary", instances: 3, obligations: 0, assumedSeals: 0 }]);
});

test("two drains that never end use up the places for drains, and the next one waits with its reason and serves on (D6, D11)", async () => {
  harness = await Harness.start({ nodes: 6 });
  const victims = await harness.serve(ordersPool({ desired: 3, disruption: { draining: 2 } }));
  await drain(victims[0], { requests: 1 });
  await drain(victims[1], { requests: 1 });
  await harness.drift(victims[2]?.incarnation.nodeName ?? "");
  await harness.pass(5 * MINUTE);

  expect(await harness.phase(victims[2]?.id ?? "")).toBe("serving");
  expect(await harness.reasons()).toContain(`${victims[2]?.id} draining_used`);
  harness.gateways[0]?.release(victims[0]?.id ?? "");
  await harness.until("the third drains", async () => (await harness.phase(victims[2]?.id ?? "")) !== "serving");
});

test("what the instance itself still has to do holds its seal, though every gateway reports none (D5)", async () => {
  harness = await Harness.start();
  const [victim] = await harness.serve();
  harness.instances.unfinished.set(victim?.incarnation.host ?? "", 1);
  await drain(victim, {});
  await harness.pass(5 * MINUTE);
  expect(await harness.phase(victim?.id ?? "")).toBe("draining");

  harness.instances.unfinished.clear();
  await harness.until("it is gone", async () => (await harness.phase(victim?.id ?? "")) === "deleted");
  expect(await harness.instance(victim?.id ?? "")).toMatchObject({ seal: "confirmed" });
});

test("a draining instance whose process dies leaves the drain as a forced loss, its obligations counted (D13, D18)", async () => {
  harness = await Harness.start({ gateways: 2 });
  const [victim] = await harness.serve();
  await drain(victim, { requests: 2, sessions: 1 });
  await harness.pass(2_000);

  harness.crash(victim?.incarnation.host ?? "");
  await harness.until("it is gone", async () => (await harness.phase(victim?.id ?? "")) === "deleted");

  expect(await harness.instance(victim?.id ?? "")).toMatchObject({ seal: "forced", drainLoss: "forced" });
  expect((await harness.pool()).losses).toEqual([{ loss: "forced", instances: 1, obligations: 6, assumedSeals: 0 }]);
  expect((await harness.serving()).length).toBe(2);
  expect((await harness.store.listInstances("default/orders", 10)).length).toBe(3);
});

test("a draining instance whose node dies does the same (D13, D18)", async () => {
  harness = await Harness.start({ provisioner: { vanishAfterMs: 5_000 } });
  const [victim] = await harness.serve();
  await drain(victim, { requests: 1, sessions: 2 });
  await harness.pass(2_000);

  await harness.cluster.provisioner.kill(victim?.incarnation.nodeName ?? "");
  await harness.until("it is gone", async () => (await harness.phase(victim?.id ?? "")) === "deleted");

  expect(await harness.instance(victim?.id ?? "")).toMatchObject({ seal: "forced", drainLoss: "forced" });
  expect((await harness.pool()).losses).toEqual([{ loss: "forced", instances: 1, obligations: 3, assumedSeals: 0 }]);
  expect((await harness.serving()).length).toBe(2);
});

test("a pod that somebody else deletes keeps its process until it ends by itself: only then the next one is the instance (D13)", async () => {
  harness = await Harness.start({ nodes: 4, model: () => ({ termMs: 20_000 }) });
  const [victim] = await harness.serve(ordersPool({ desired: 1 }));
  const { podName, number } = victim?.incarnation ?? { podName: null, number: 0 };
  harness.gateways[0]?.hold(victim?.id ?? "", { requests: 1 });

  await harness.cluster.api.delete({ type: PODS, namespace: "default", name: podName ?? "" }, { gracePeriodSeconds: 30 });
  await harness.pass(15_000);
  expect((await harness.instance(victim?.id ?? ""))?.incarnation, "its own process still runs").toMatchObject({ number, podName });

  harness.gateways[0]?.release(victim?.id ?? "");
  await harness.until(
    "the next process is the instance",
    async () => ((await harness.instance(victim?.id ?? ""))?.incarnation.number ?? 0) > number,
  );
  await harness.untilServing(1);
  expect((await harness.instance(victim?.id ?? ""))?.incarnation.podName).not.toBe(podName);
});
