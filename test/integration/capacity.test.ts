/** Capacity health seen on a whole controller, where replacements go, and who makes room for whom (S2, S12, I13). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import { NODES } from "../../src/kube/resources.ts";
import { spotId } from "../../src/model/placement.ts";
import { Harness, ordersPool } from "./harness.ts";
import { podOf } from "./pods.ts";

let harness: Harness;
afterEach(() => harness.close());

const heats = async (): Promise<Readonly<Record<string, number>>> =>
  Object.fromEntries(
    (await harness.controlPlane.capacity()).view.spots.map(({ spot, heat }) => [spotId(spot), Math.round(heat * 100) / 100]),
  );

async function labelsOf(node: string | null): Promise<Readonly<Record<string, string>>> {
  return (await harness.cluster.api.get({ type: NODES, name: node ?? "" })).metadata.labels ?? {};
}

async function interrupt(node: string): Promise<void> {
  const machine = harness.machineOf(node);
  harness.cluster.provisioner.interrupt(node, { deadlineMs: 120_000 });
  expect((await harness.warn(machine)).status).toBe(202);
}

/** Two fit on a machine. */
const HALF = podOf("1900m");

test("a spot warms with each notice, with a launch that the cloud refuses, and with a machine that is just gone, each once (S2)", async () => {
  harness = await Harness.start({ nodes: 6, provisioner: { maxNodes: 12, vanishAfterMs: 5_000 } });
  expect(await heats()).toEqual({ "local/zone-a/local.xlarge/spot": 0, "local/zone-b/local.xlarge/spot": 0 });

  await interrupt("node-a1");
  await harness.pass(1_000);
  const noticed = await heats();
  expect(noticed["local/zone-a/local.xlarge/spot"]).toBeGreaterThan(0.4);
  expect(noticed["local/zone-b/local.xlarge/spot"]).toBe(0);
  await harness.cluster.provisioner.kill("node-b1");
  await harness.pass(10_000);
  expect((await heats())["local/zone-b/local.xlarge/spot"]).toBeGreaterThan(0.4);

  const { view } = await harness.controlPlane.capacity();
  expect(view.spots.map(({ spot, losses, machines }) => [spot.zone, losses, machines])).toEqual([
    ["zone-a", 1, 2],
    ["zone-b", 1, expect.any(Number)],
  ]);
  harness.cluster.provisioner.limit({}, 0);
  await harness.pass(180_000);
  expect((await harness.controlPlane.capacity()).view.spots.reduce((sum, { losses }) => sum + losses, 0)).toBe(2);
  expect((await harness.controlPlane.capacity()).view.spots.some(({ failedLaunches }) => failedLaunches > 0)).toBe(true);
});

test("while capacity of one zone is dying its replacements go to another one (S2)", async () => {
  harness = await Harness.start({ nodes: 8, provisioner: { maxNodes: 16 } });
  const served = await harness.serve(ordersPool({ desired: 4 }));
  for (const node of ["node-a1", "node-a2", "node-a3"]) await interrupt(node);
  await harness.pass(500);
  expect((await harness.controlPlane.capacity()).view.placement).toEqual({
    avoid: { zones: ["zone-a"], instanceTypes: [], nodes: ["node-a1", "node-a2", "node-a3"] },
    capacityType: null,
  });
  const hit = served.filter(({ incarnation }) => ["node-a1", "node-a2", "node-a3"].includes(incarnation.nodeName ?? ""));
  expect(hit.length).toBeGreaterThan(0);
  for (const { id } of hit)
    await harness.until("it is replaced", async () => (await harness.serving()).some(({ replaces }) => replaces === id), 120_000);

  for (const { replaces, incarnation } of await harness.serving())
    if (replaces !== null) expect((await labelsOf(incarnation.nodeName))["topology.kubernetes.io/zone"]).toBe("zone-b");
});

test("while spot is dying everywhere replacements go on demand, where that is offered (S2)", async () => {
  harness = await Harness.start({ nodes: 4, provisioner: { maxNodes: 8, maxOnDemand: 4 } });
  await harness.serve(ordersPool({ desired: 2 }));
  for (const node of ["node-a1", "node-a2", "node-b1", "node-b2"]) await interrupt(node);
  await harness.until("both have moved", async () => {
    const serving = await harness.serving();
    return serving.length === 2 && serving.every(({ incarnation }) => !/^node-[ab][12]$/.test(incarnation.nodeName ?? ""));
  });
  for (const { incarnation } of await harness.serving())
    expect((await labelsOf(incarnation.nodeName))["karpenter.sh/capacity-type"]).toBe("on-demand");
});

test("one that finds no place away from dying capacity is given up, and the next goes to any node that stays", async () => {
  harness = await Harness.start({ nodes: 6, provisioner: { maxNodes: 6, maxOnDemand: 4 } });
  const [victim] = await harness.serve(ordersPool({ desired: 1 }));
  harness.cluster.provisioner.limit({ capacityType: "on-demand" }, 0);
  for (const node of ["node-a2", "node-b1", "node-b2", "node-a1"]) await interrupt(node);
  expect(victim?.incarnation.nodeName).toBe("node-a1");
  await harness.until("it is replaced", async () => (await harness.serving()).some(({ replaces }) => replaces === victim?.id), 119_000);

  const all = await harness.store.listInstances("default/orders", 100);
  expect(all.flatMap(({ failure }) => failure ?? [])).toEqual(["no_place"]);
  const [successor] = (await harness.serving()).filter(({ replaces }) => replaces !== null);
  expect(["node-a3", "node-b3"]).toContain(successor?.incarnation.nodeName);
});

test("the replacement of a critical one takes the room that the standby of a batch pool holds, and the batch pool says why (S12, I13)", async () => {
  harness = await Harness.start({ nodes: 3, provisioner: { maxNodes: 3 } });
  await harness.serve(ordersPool({ name: "reports", desired: 2, standby: 3, priority: "batch", pod: HALF }));
  await harness.until("its standby is warm", async () => (await harness.pool("default/reports")).standby === 3);
  const [critical] = await harness.serve(ordersPool({ desired: 1, priority: "critical", pod: HALF }));
  harness.cluster.provisioner.limit({}, 0);

  await interrupt(critical?.incarnation.nodeName ?? "");
  await harness.until("the critical one is replaced", async () =>
    (await harness.serving()).some(({ replaces }) => replaces === critical?.id),
  );

  const reports = await harness.store.listInstances("default/reports", 100);
  expect(reports.flatMap(({ failure, purpose }) => (failure === null ? [] : [`${purpose} ${failure}`]))).toContain("standby makes_room");
  expect((await harness.serving("default/reports")).length).toBe(2);
  harness.cluster.provisioner.limit({}, null);
  await harness.until("the standby is refilled", async () => (await harness.pool("default/reports")).standby === 3, 900_000);
});
