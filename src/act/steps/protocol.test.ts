/** The steps that call a process, against the SDK's own side of the protocol over HTTP. */
import { afterEach, expect, test } from "vitest";
import { ServiceDriver } from "../../drivers/service/service-driver.ts";
import { PODS } from "../../kube/resources.ts";
import { systemClock } from "../../kernel/system.ts";
import { createInstance, type RelevoInstance } from "../../sdk/instance.ts";
import { aNode, aRunningInstance, aWorld, INSTANCE } from "../testing/world.ts";
import { admitInstance } from "./admit-instance.ts";
import { closeInstance } from "./close-instance.ts";
import { drainInstance } from "./drain-instance.ts";

const driver = new ServiceDriver({ clock: systemClock });
const started: RelevoInstance[] = [];
afterEach(async () => {
  for (const instance of started.splice(0)) await instance.stop();
});

async function aProcess() {
  const calls: string[] = [];
  const note = (name: string) => () => void calls.push(name);
  const instance = createInstance({
    handler: (_, response) => response.end(),
    name: INSTANCE,
    host: "127.0.0.1",
    port: 0,
    onPrepare: note("prepare"),
    onDrain: note("drain"),
    onClose: note("close"),
    env: {},
  });
  started.push(instance);
  const address = await instance.listen();
  const world = await aWorld();
  const node = await aNode(world.kube, "a");
  const running = await aRunningInstance(world, "a");
  const process = { ...running.process, target: { ...running.process.target, ...address, bootId: instance.bootId } };
  const ports = (id: string) => ({ kube: world.kube, driver, step: { id } });
  return { instance, calls, world, process, ports, node: { name: "a", uid: node.metadata.uid } };
}

test("admit, drain and close happen once each, however often they are repeated (D13, I27)", async () => {
  const { instance, calls, process, ports, node } = await aProcess();
  const common = { instance: INSTANCE, incarnation: 1, process };
  const admission = { ...common, from: "validating" as const, node };

  const ends = [];
  for (let time = 0; time < 2; time++) ends.push(await admitInstance.act(admission, ports(`admit/${INSTANCE}/1`)));
  expect(await admitInstance.probe(admission, ports(`admit/${INSTANCE}/1`))).toMatchObject({ answer: "happened" });
  const drain = { ...common, from: "serving" as const, loss: "deadline" as const, deadline: Date.UTC(2100, 0, 1) };
  for (let time = 0; time < 2; time++) ends.push(await drainInstance.act(drain, ports(`drain/${INSTANCE}/1/deadline`)));
  for (let time = 0; time < 2; time++) ends.push(await closeInstance.act({ ...common, loss: "deadline" }, ports(`close/${INSTANCE}/1`)));

  expect(ends.map(({ code }) => code)).toEqual(["admitted", "admitted", "told", "told", "closed", "closed"]);
  expect(calls).toEqual(["prepare", "drain", "close"]);
  expect(instance.identity()).toMatchObject({ state: "closed", admittedBy: `admit/${INSTANCE}/1` });
});

test("a process that is gone is found gone by its pod, not by silence alone", async () => {
  const { instance, world, process, ports } = await aProcess();
  await instance.stop();
  const drain = { instance: INSTANCE, incarnation: 1, process, from: "serving" as const, loss: "voluntary" as const, deadline: null };

  await expect(drainInstance.act(drain, ports("drain/x"))).rejects.toMatchObject({ code: "instance_unreachable", class: "retryable" });
  await world.kube.delete({ type: PODS, namespace: "default", name: process.pod.name }, { gracePeriodSeconds: 0 });
  expect(await drainInstance.act(drain, ports("drain/x"))).toEqual({ state: "superseded", code: "pod_gone" });
});
