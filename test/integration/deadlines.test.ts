/** Interruptions with a deadline, with and without room for a replacement (S3, S4, D6, D18). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import type { InstanceRecord } from "../../src/model/instance.ts";
import { spotInterruptionWarning } from "../../src/notices/eventbridge/compose.ts";
import { Harness, ordersPool } from "./harness.ts";

const MINUTE = 60_000;
const LEAD_MS = 120_000;

let harness: Harness;
afterEach(() => harness.close());

/** The cloud takes the machine in two minutes and says so. */
async function interrupt(victim: InstanceRecord | undefined): Promise<number> {
  const node = victim?.incarnation.nodeName ?? "";
  const machine = harness.machineOf(node);
  const { deadline } = harness.cluster.provisioner.interrupt(node, { deadlineMs: LEAD_MS });
  expect((await harness.warn(machine)).status).toBe(202);
  return deadline;
}

test("a noticed instance is replaced first and drained then, well before its deadline, and nothing is lost (S3, S4)", async () => {
  harness = await Harness.start();
  const [victim] = await harness.serve();
  const deadline = await interrupt(victim);
  harness.gateways[0]?.hold(victim?.id ?? "", { sessions: 1 });
  await harness.until("its replacement serves", async () => (await harness.serving()).some(({ replaces }) => replaces === victim?.id));
  await harness.until("it drains", async () => (await harness.phase(victim?.id ?? "")) === "draining");
  expect((await harness.instance(victim?.id ?? "")).drainDeadline).toBeLessThanOrEqual(deadline);
  expect((await harness.serving()).length).toBe(2);

  harness.gateways[0]?.release(victim?.id ?? "");
  await harness.until("it is gone", async () => (await harness.phase(victim?.id ?? "")) === "deleted");
  expect(harness.clock.now()).toBeLessThan(deadline - MINUTE);
  expect(await harness.instance(victim?.id ?? "")).toMatchObject({ seal: "confirmed", drainLoss: "deadline" });
  await harness.pass(5 * MINUTE);
  expect((await harness.pool()).losses).toEqual([{ loss: "deadline", instances: 1, obligations: 0, assumedSeals: 0 }]);
  expect((await harness.store.listInstances("default/orders", 10)).length).toBe(3);
});

test("without room for a replacement a noticed instance serves until the last moment that leaves its drain its time (S4, D11)", async () => {
  harness = await Harness.start({ nodes: 2 });
  const [victim, other] = await harness.serve(ordersPool({ disruption: { drainLead: "15s" } }));
  await harness.cordon(other?.incarnation.nodeName ?? "");
  const deadline = await interrupt(victim);
  harness.gateways[0]?.hold(victim?.id ?? "", { requests: 1 });

  while (harness.clock.now() < deadline - 16_000) {
    expect(await harness.phase(victim?.id ?? "")).toBe("serving");
    await harness.pass(1_000);
  }
  expect(await harness.reasons()).toContain(`${victim?.id} waiting_for_replacement`);
  await harness.pass(2_000);
  expect(await harness.phase(victim?.id ?? "")).toBe("draining");
  harness.gateways[0]?.release(victim?.id ?? "");
  await harness.until("it is sealed", async () => (await harness.instance(victim?.id ?? "")).seal !== null, deadline - harness.clock.now());
  expect(await harness.instance(victim?.id ?? "")).toMatchObject({ seal: "confirmed", drainLoss: "deadline" });
});

test("what a noticed instance has not finished when its node is taken is lost to the deadline, and counted there (D18)", async () => {
  harness = await Harness.start({ provisioner: { vanishAfterMs: 5_000 } });
  const [victim] = await harness.serve();
  const deadline = await interrupt(victim);
  harness.gateways[0]?.hold(victim?.id ?? "", { requests: 2, sessions: 3 });
  await harness.pass(deadline - harness.clock.now() - 1_000);
  expect(await harness.instance(victim?.id ?? "")).toMatchObject({ phase: "draining", seal: null });

  await harness.until("it is gone", async () => (await harness.phase(victim?.id ?? "")) === "deleted");
  expect(await harness.instance(victim?.id ?? "")).toMatchObject({ seal: "forced", drainLoss: "deadline" });
  expect((await harness.pool()).losses).toEqual([{ loss: "deadline", instances: 1, obligations: 5, assumedSeals: 0 }]);
  expect((await harness.serving()).length).toBe(2);
});

test("interruptions of all its nodes at once leave as many serving as desired, with no more than the pool may occupy (S4, I21)", async () => {
  harness = await Harness.start({ nodes: 8 });
  const victims = await harness.serve(ordersPool({ desired: 4 }));
  for (const victim of victims) await interrupt(victim);
  let fewest = 4;
  let most = 0;
  for (const end = harness.clock.now() + LEAD_MS; harness.clock.now() < end; await harness.pass(200)) {
    fewest = Math.min(fewest, (await harness.serving()).length);
    most = Math.max(most, (await harness.records()).length);
  }
  expect(fewest).toBe(4);
  expect(most).toBeLessThanOrEqual(8 + 1 + 2);
  for (const { id } of victims) expect(await harness.phase(id)).toBe("deleted");
  expect((await harness.pool()).losses).toEqual([{ loss: "deadline", instances: 4, obligations: 0, assumedSeals: 0 }]);
});

test("a pool that is frozen still moves who was promised a deadline, with its replacement, and nobody else (S4)", async () => {
  harness = await Harness.start({ nodes: 6 });
  const [drifted, noticed] = await harness.serve();
  await harness.controlPlane.freeze("default/orders", { until: harness.clock.now() + 60 * MINUTE, why: "holiday", by: "ops" });
  await harness.drift(drifted?.incarnation.nodeName ?? "");
  await interrupt(noticed);
  await harness.until("the noticed one is replaced", async () => (await harness.phase(noticed?.id ?? "")) === "deleted", 3 * MINUTE);
  await harness.pass(5 * MINUTE);

  expect(await harness.phase(drifted?.id ?? "")).toBe("serving");
  expect(await harness.reasons()).toContain("frozen");
  expect((await harness.serving()).length).toBe(2);
  await harness.controlPlane.unfreeze("default/orders", "ops");
  await harness.until("the drifted one is replaced", async () => (await harness.phase(drifted?.id ?? "")) === "deleted");
});

test("a freeze whose end has come is told of no more: the pool, and with it who drains and the doctor, says nothing of it", async () => {
  harness = await Harness.start();
  await harness.serve();
  await harness.controlPlane.freeze("default/orders", { until: harness.clock.now() + MINUTE, why: "holiday", by: "ops" });
  await harness.pass(30_000);
  expect((await harness.pool()).freeze).toMatchObject({ why: "holiday" });
  await harness.pass(MINUTE);
  expect((await harness.pool()).freeze).toBe(null);
});

test("a notice that comes 119 s late and 50 duplicates of it are one evacuation: it drains at once, one successor is made, and what it could not finish is counted as lost to its deadline (S3, S4, D18)", async () => {
  harness = await Harness.start({ provisioner: { vanishAfterMs: 1_000 } });
  const [victim] = await harness.serve();
  const node = victim?.incarnation.nodeName ?? "";
  const machineId = harness.machineOf(node);
  const late = spotInterruptionWarning({ id: "event-1", at: harness.clock.now() - 119_000, machineId });
  harness.gateways[0]?.hold(victim?.id ?? "", { requests: 2 });
  const before = harness.clock.now();
  harness.cluster.provisioner.interrupt(node, { deadlineMs: 1_000 });
  const answers = [];
  for (let copy = 0; copy <= 50; copy += 1) answers.push((await harness.notify(late)).status);
  expect([new Set(answers), harness.clock.now() - before]).toEqual([new Set([202]), 0]);
  await harness.until("it drains at once", async () => (await harness.phase(victim?.id ?? "")) === "draining", 100);
  expect((await harness.instance(victim?.id ?? "")).drainLoss).toBe("deadline");

  await harness.until("it is gone", async () => (await harness.phase(victim?.id ?? "")) === "deleted");
  await harness.untilServing(2);
  await harness.pass(5 * MINUTE);
  expect((await harness.pool()).losses).toEqual([{ loss: "deadline", instances: 1, obligations: 2, assumedSeals: 0 }]);
  const made = (await harness.store.listInstances("default/orders", 10)).filter(({ replaces }) => replaces === victim?.id);
  expect(made.length).toBe(1);
  expect((await harness.evidence()).filter(({ reason }) => reason === "spot_interruption").length).toBe(1);
});
