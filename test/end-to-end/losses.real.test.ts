/** Processes and nodes that die in the middle, and come back. Level: real processes. */
import { afterEach, expect, test } from "vitest";
import type { Mix } from "../../src/cli/demo/load/mix.ts";
import { type Fleet, startFleet, Transaction } from "./fleet.ts";

const SHORT: Mix = {
  perSecond: { order: 40, charge: 0, export: 0, live: 0, tx: 0 },
  exportSeconds: [1, 1],
  liveSeconds: [1, 1],
  txSeconds: [1, 1],
  stepMs: 100,
  http2Share: 0.3,
};

let fleet: Fleet;
afterEach(() => fleet.close());

test("a draining instance whose process dies leaves the drain as a forced loss, its transaction is told gone, and everybody else is served (D13, D18)", async () => {
  fleet = await startFleet();
  const gateway = await fleet.gateway();
  await fleet.until("three serve", async () => (await fleet.serving()).length === 3);
  const load = fleet.load(gateway.url, SHORT);
  load.startAct("forced");
  const transaction = await Transaction.begin(gateway.url);
  const victim = await fleet.instance(transaction.instance);
  await fleet.cluster.provisioner.drift(victim.incarnation.nodeName ?? "");
  await fleet.until("it drains", async () => (await fleet.instance(victim.id)).phase === "draining");
  await fleet.until("its replacement serves", async () => (await fleet.serving()).length === 3);
  expect((await transaction.addItem()).status).toBe(200);
  // What is counted as lost is what the gateway last reported.
  await fleet.until("the transaction alone is left of it", async () => {
    const seen = (await fleet.controlPlane.listInstances({ limit: 10 })).find(({ record }) => record.id === victim.id);
    return seen?.obligations?.requests === 0 && seen.obligations.sessions === 1;
  });
  expect((await fleet.instance(victim.id)).seal).toBeNull();

  fleet.killProcess(victim);
  await fleet.until("it is gone", async () => (await fleet.instance(victim.id)).phase === "deleted");
  const answer = await transaction.commit();
  const { result } = await load.endAct("forced");

  expect(await fleet.instance(victim.id)).toMatchObject({ seal: "forced", drainLoss: "forced" });
  expect((await fleet.controlPlane.listPools())[0]?.losses).toEqual([{ loss: "forced", instances: 1, obligations: 1, assumedSeals: 0 }]);
  expect([answer.status, answer.headers.get("relevo-rejected")]).toEqual([410, "session_lost"]);
  expect(result).toMatchObject({ rejected: 0, cut: 0, lost: 0 });
  expect((await fleet.controlPlane.listInstances({ limit: 10 })).length).toBe(4);
});

test.for([
  ["as the same Node", true],
  ["as another Node of its name", false],
] as const)("a node that returns %s after its instance was replaced brings nothing back (D18)", async ([, sameUid]) => {
  fleet = await startFleet({ vanishAfterMs: 600_000 });
  const gateway = await fleet.gateway();
  await fleet.until("three serve", async () => (await fleet.serving()).length === 3);
  const [victim] = await fleet.serving();
  const node = victim?.incarnation.nodeName ?? "";
  const load = fleet.load(gateway.url, SHORT);
  load.startAct("forced");

  await fleet.cluster.provisioner.kill(node);
  await fleet.until("it was replaced", async () => (await fleet.serving()).some(({ replaces }) => replaces === victim?.id));
  await fleet.cluster.provisioner.returnNode(node, { sameUid });
  await fleet.until("the node is back", () => fleet.cluster.provisioner.nodes().some((each) => each.name === node && each.isReady));
  await fleet.until("the old one is gone", async () => (await fleet.instance(victim?.id ?? "")).phase === "deleted");
  const { result } = await load.endAct("forced");

  expect(result).toMatchObject({ rejected: 0, cut: 0, lost: 0 });
  expect(await fleet.instance(victim?.id ?? "")).toMatchObject({ seal: "forced", drainLoss: "forced" });
  expect((await fleet.serving()).length).toBe(3);
  expect((await fleet.controlPlane.listInstances({ limit: 10 })).length).toBe(4);
  expect(gateway.report().routes[0]?.members.some(({ instance }) => instance === victim?.id)).toBe(false);
});

test("a gateway that is killed while an instance drains: what the instance still holds keeps it, and its transaction ends well through the next gateway (D5, D19)", async () => {
  fleet = await startFleet();
  const first = await fleet.gatewayProcess();
  await fleet.until("three serve", async () => (await fleet.serving()).length === 3);
  const transaction = await Transaction.begin(first.url);
  const victim = await fleet.instance(transaction.instance);
  await fleet.cluster.provisioner.drift(victim.incarnation.nodeName ?? "");
  await fleet.until("it drains", async () => (await fleet.instance(victim.id)).phase === "draining");

  await first.kill();
  await fleet.gatewayProcess(first.port);
  await fleet.until("its silence counts", async () => (await fleet.controlPlane.listGateways()).some(({ silent }) => silent));
  expect((await transaction.addItem()).status).toBe(200);
  expect((await fleet.instance(victim.id)).seal).toBeNull();
  expect(await (await transaction.commit()).json()).toMatchObject({ items: 1, by: victim.id });
  await fleet.until("it is gone", async () => (await fleet.instance(victim.id)).phase === "deleted");

  // Nobody can say what the dead replica still held: the claim does not cover it, and says so.
  expect(await fleet.instance(victim.id)).toMatchObject({ seal: "assumed", drainLoss: "voluntary" });
  expect((await fleet.controlPlane.listPools())[0]?.losses).toEqual([{ loss: "voluntary", instances: 1, obligations: 0, assumedSeals: 1 }]);
});
