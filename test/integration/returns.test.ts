/** What was given up comes back: the node, the process on it, a gateway replica (S10's ground, D5, D18, I8). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import type { Machine } from "../../src/embedded/nodes/pod-runtime.ts";
import { NODES } from "../../src/kube/resources.ts";
import { Harness, ordersPool } from "./harness.ts";

const MINUTE = 60_000;

let harness: Harness;
afterEach(() => harness.close());

function watchRoutes(instance: string): () => boolean {
  let wasRouted = false;
  const look = (): void => {
    wasRouted ||= harness.gateways.some((gateway) => gateway.routed().includes(instance));
    harness.clock.after(50, look);
  };
  look();
  return () => wasRouted;
}

test.for([
  ["as the same Node", true],
  ["as another Node of its name", false],
] as const)(
  "a node that returns %s after its instance was replaced brings nothing back, and is used like any other (D5, D18)",
  async ([, sameUid]) => {
    harness = await Harness.start({ provisioner: { vanishAfterMs: 10 * MINUTE } });
    const [victim] = await harness.serve();
    const node = victim?.incarnation.nodeName ?? "";
    await harness.cluster.provisioner.kill(node);
    await harness.until("it was replaced", async () => (await harness.serving()).some(({ replaces }) => replaces === victim?.id));
    const wasRouted = watchRoutes(victim?.id ?? "");

    await harness.cluster.provisioner.returnNode(node, { sameUid });
    await harness.until("the node is back", () => harness.cluster.provisioner.nodes().some((each) => each.name === node && each.isReady));
    await harness.until("the old one is gone", async () => (await harness.phase(victim?.id ?? "")) === "deleted");
    await harness.pass(2 * MINUTE);

    expect(wasRouted()).toBe(false);
    expect(await harness.instance(victim?.id ?? "")).toMatchObject({ phase: "deleted", seal: "forced", drainLoss: "forced" });
    expect((await harness.serving()).length).toBe(2);
    expect((await harness.store.listInstances("default/orders", 10)).length).toBe(3);
    expect(harness.runtime.containers().length).toBe(2);
    expect((await harness.cluster.api.get({ type: NODES, name: node })).spec).not.toMatchObject({ unschedulable: true });
    expect(harness.kube.writes().filter(({ kind }) => kind === "Node")).toEqual([]);
  },
);

test("a node that was cut off returns with the process still running after its instance was replaced: it gets no traffic and is ended (D13, D18)", async () => {
  harness = await Harness.start({ provisioner: { vanishAfterMs: 10 * MINUTE } });
  const [victim] = await harness.serve();
  const { nodeName, host } = victim?.incarnation ?? { nodeName: null, host: null };
  const machine = harness.cluster.fleet.machine(nodeName ?? "") as Machine;
  harness.runtime.setFrozen(machine, true);
  harness.instances.unreachable.add(host ?? "");
  await harness.until("it was replaced", async () => (await harness.serving()).some(({ replaces }) => replaces === victim?.id));
  await harness.pass(MINUTE);
  expect(harness.runtime.containers().length).toBe(3);
  const wasRouted = watchRoutes(victim?.id ?? "");

  harness.runtime.setFrozen(machine, false);
  harness.instances.unreachable.delete(host ?? "");
  await harness.until("the old one is gone", async () => (await harness.phase(victim?.id ?? "")) === "deleted", 3 * MINUTE);
  await harness.pass(MINUTE);

  expect(wasRouted()).toBe(false);
  expect(harness.runtime.containers().length).toBe(2);
  expect(await harness.instance(victim?.id ?? "")).toMatchObject({ seal: "forced" });
  expect((await harness.store.listInstances("default/orders", 10)).length).toBe(3);
});

test("a gateway cut off for longer than its TTL serves on; the seal waits for the door, is assumed, and is counted apart (D18)", async () => {
  harness = await Harness.start({ gateways: 2 });
  const [victim] = await harness.serve();
  const [, cut] = harness.gateways;
  cut?.cutOff();
  const routed = cut?.routed();
  expect(routed).toContain(victim?.id);

  await harness.drift(victim?.incarnation.nodeName ?? "");
  const process = harness.instances.processes.get(victim?.incarnation.host ?? "");
  await harness.until("it is sealed", async () => (await harness.instance(victim?.id ?? "")).seal !== null);
  expect(process?.state).toBe("closed");
  expect(process?.performed.map((line) => line.split(" ")[0])).toEqual(
    ["prepare", "admit", "drain", "close"].filter((name) => process?.performed.some((line) => line.startsWith(name))),
  );
  await harness.until("it is gone", async () => (await harness.phase(victim?.id ?? "")) === "deleted");

  expect(await harness.instance(victim?.id ?? "")).toMatchObject({ seal: "assumed", drainLoss: "voluntary" });
  expect((await harness.pool()).losses).toEqual([{ loss: "voluntary", instances: 1, obligations: 0, assumedSeals: 1 }]);
  expect(cut?.routed()).toEqual(routed);
  expect((await harness.steps()).filter(({ kind }) => kind === "close_instance/1").map(({ state, instance }) => [state, instance])).toEqual(
    [["done", victim?.id]],
  );
});

test("before its TTL is over a silent gateway holds the seal, and when it comes back its word counts (D5)", async () => {
  harness = await Harness.start({ gateways: 2 });
  const [victim] = await harness.serve();
  const [, cut] = harness.gateways;
  cut?.cutOff();
  await harness.drift(victim?.incarnation.nodeName ?? "");
  await harness.pass(2_500);
  expect((await harness.instance(victim?.id ?? "")).seal).toBeNull();

  cut?.hold(victim?.id ?? "", { requests: 1 });
  await cut?.connect(harness.controlPlane);
  await harness.pass(MINUTE);
  expect(await harness.phase(victim?.id ?? "")).toBe("draining");
  cut?.release(victim?.id ?? "");
  await harness.until("it is gone", async () => (await harness.phase(victim?.id ?? "")) === "deleted");
  expect(await harness.instance(victim?.id ?? "")).toMatchObject({ seal: "confirmed" });
});

test("a gateway that is back after its TTL is told of all that changed, and new instances wait for it again (I11)", async () => {
  harness = await Harness.start({ gateways: 2 });
  const [victim] = await harness.serve(ordersPool({ desired: 2 }));
  const [other, cut] = harness.gateways;
  cut?.cutOff();
  await harness.drift(victim?.incarnation.nodeName ?? "");
  await harness.until("it is gone", async () => (await harness.phase(victim?.id ?? "")) === "deleted");
  expect(cut?.routed()).toContain(victim?.id);

  await cut?.connect(harness.controlPlane);
  await harness.pass(1_000);
  expect(cut?.routed().toSorted()).toEqual(other?.routed().toSorted());
  expect(cut?.routed().toSorted()).toEqual((await harness.serving()).map(({ id }) => id).toSorted());
});
