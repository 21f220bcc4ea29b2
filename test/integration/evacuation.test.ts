/** Many announced at once, over several pools: who goes first, and that all of them end well (S3, S12, I12, I13, D12). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import type { InstanceRecord } from "../../src/model/instance.ts";
import { MOST_UNPLACED } from "../../src/control/evacuation-supply.ts";
import { ANNOTATIONS } from "../../src/model/marks.ts";
import { Harness, ordersPool } from "./harness.ts";
import { podOf } from "./pods.ts";

let harness: Harness;
afterEach(() => harness.close());

const CRITICAL = "default/orders";
const BATCH = "default/reports";

async function interruptAll(records: readonly InstanceRecord[]): Promise<void> {
  const nodes = new Set(records.map(({ incarnation }) => incarnation.nodeName ?? ""));
  for (const node of nodes) {
    const machine = harness.machineOf(node);
    harness.cluster.provisioner.interrupt(node, { deadlineMs: 120_000 });
    expect((await harness.warn(machine)).status).toBe(202);
  }
}

const successorsIn = async (pool: string): Promise<number> =>
  (await harness.records(pool)).filter(({ purpose, phase }) => purpose === "replace" && phase !== "failed").length;

async function untilReplaced(records: readonly InstanceRecord[], pool: string): Promise<void> {
  const former = new Set(records.map(({ id }) => id));
  const areGone = async (): Promise<boolean> => (await harness.records(pool)).every(({ id }) => !former.has(id));
  await harness.until("all have left", areGone, 300_000);
  await harness.untilServing(records.length, pool, 300_000);
}

/** Each fills a machine. */
const WHOLE = podOf("3");

test("where no more machines may be made no more successors look for room than may; the rest is told why, and all are replaced in the end", async () => {
  harness = await Harness.start({ nodes: 15, provisioner: { maxNodes: 15 } });
  const batch = await harness.serve(ordersPool({ name: "reports", desired: 12, priority: "batch", pod: WHOLE }));
  const critical = await harness.serve(ordersPool({ desired: 2, priority: "critical", pod: WHOLE }));
  await interruptAll([...batch, ...critical]);
  await harness.until("the critical ones have successors", async () => (await successorsIn(CRITICAL)) === 2, 10_000);
  await harness.pass(1_000);

  const placed = (await harness.records(BATCH)).filter(
    ({ purpose, incarnation }) => purpose === "replace" && incarnation.nodeName !== null,
  ).length;
  expect(await successorsIn(BATCH)).toBeLessThanOrEqual(MOST_UNPLACED + placed);
  expect((await harness.reasons(BATCH)).filter((line) => line.endsWith("evacuation_unsavable")).length).toBe(
    12 - (await successorsIn(BATCH)),
  );

  await untilReplaced(critical, CRITICAL);
  await untilReplaced(batch, BATCH);
  await harness.pass(10_000);
  expect((await harness.reasons(BATCH)).filter((line) => line.includes("evacuation"))).toEqual([]);
});

test("every node that goes is cordoned at once, also while candidates wait for a place (D4, D8, I6)", async () => {
  harness = await Harness.start({ nodes: 15, provisioner: { maxNodes: 15 } });
  const served = await harness.serve(ordersPool({ desired: 12, priority: "critical", pod: WHOLE }));
  const nodes = served.map(({ incarnation }) => incarnation.nodeName ?? "");
  await interruptAll(served);
  const from = harness.clock.now();
  const isCordoned = async (name: string): Promise<boolean> =>
    (await harness.node(name)).metadata.annotations?.[ANNOTATIONS.cordonedBy] !== undefined;
  await harness.until("all are cordoned", async () => (await Promise.all(nodes.map(isCordoned))).every(Boolean), 10_000);
  expect(harness.clock.now() - from).toBeLessThanOrEqual(2_000);
  const waiting = (await harness.records(CRITICAL)).filter(({ purpose, incarnation }) => purpose === "replace" && incarnation.number === 0);
  expect(waiting.length).toBeGreaterThan(0);
});

test("a controller that dies in the middle of it makes no second successor, and what it had promised is promised anew", async () => {
  harness = await Harness.start({ nodes: 8, provisioner: { maxNodes: 16 } });
  const served = await harness.serve(ordersPool({ desired: 6, priority: "critical" }));
  await interruptAll(served);
  await harness.until("some have successors", async () => (await successorsIn(CRITICAL)) > 0, 10_000);
  await harness.restartController(3_000);
  await untilReplaced(served, CRITICAL);
  const replaced = (await harness.store.listInstances(CRITICAL, 1_000)).flatMap(({ replaces, failure }) =>
    failure === null ? (replaces ?? []) : [],
  );
  expect(new Set(replaced).size).toBe(replaced.length);
});
