import { expect, test } from "vitest";
import { RelevoError } from "../../kernel/errors.ts";
import { PODS } from "../../kube/resources.ts";
import { faulty } from "../testing/fuse.ts";
import { aRunningInstance, aWorld, HOST, INSTANCE } from "../testing/world.ts";
import { closeInstance } from "./close-instance.ts";
import { type DrainInstance, drainInstance } from "./drain-instance.ts";

const STEP = { id: `drain/${INSTANCE}/1/voluntary` };
const POD = { type: PODS, namespace: "default", name: `${INSTANCE}-pod` };
const UNREACHABLE = new RelevoError("instance_unreachable", "unreachable", { class: "retryable" });

async function aDrain() {
  const world = await aWorld();
  const { process } = await aRunningInstance(world, "a");
  const payload: DrainInstance = { instance: INSTANCE, incarnation: 1, from: "serving", loss: "voluntary", deadline: null, process };
  return { world, payload, process, ports: { kube: world.kube, driver: world.instances, step: STEP } };
}

test("the drain is committed with its loss and deadline before the process hears of it", async () => {
  const { world, payload, ports } = await aDrain();

  expect(drainInstance.begin?.({ ...payload, loss: "deadline", deadline: 5 })).toEqual([
    {
      kind: "move_instance",
      instance: INSTANCE,
      incarnation: 1,
      from: "serving",
      to: "draining",
      set: { drainLoss: "deadline", drainDeadline: 5 },
    },
  ]);
  expect(await drainInstance.act({ ...payload, deadline: 5 }, ports)).toEqual({ state: "done", code: "told" });
  expect(world.instances.processes.get(HOST)).toMatchObject({ state: "draining", deadline: 5 });
});

test("a deadline that became known while it drains is committed in place and told (S4)", async () => {
  const { payload } = await aDrain();

  expect(drainInstance.begin?.({ ...payload, from: "draining", loss: "deadline", deadline: 9 })).toEqual([
    { kind: "update_instance", instance: INSTANCE, phase: "draining", set: { drainLoss: "deadline", drainDeadline: 9 } },
  ]);
});

test("a replay after a lost reply tells the process once (I27)", async () => {
  const { world, payload, ports } = await aDrain();
  const driver = faulty(world.instances, ({ method, number }) =>
    method === "drain" && number === 1 ? { error: UNREACHABLE, side: "after" } : undefined,
  );

  await expect(drainInstance.act(payload, { ...ports, driver })).rejects.toThrow("unreachable");
  expect(await drainInstance.act(payload, { ...ports, driver })).toEqual({ state: "done", code: "told" });
  expect(world.instances.processes.get(HOST)?.performed).toEqual([`drain ${STEP.id}`]);
});

test("a process that cannot be reached is tried again only while it may still be there (D13)", async () => {
  const { world, payload, ports } = await aDrain();
  world.instances.processes.clear();

  await expect(drainInstance.act(payload, ports)).rejects.toMatchObject({ code: "instance_unreachable" });
  await world.kube.patchStatus(POD, {
    status: { containerStatuses: [{ name: "main", image: "x", imageID: "", ready: true, restartCount: 1, containerID: "test://2" }] },
  });
  expect(await drainInstance.act(payload, ports)).toEqual({ state: "superseded", code: "process_replaced" });
  await world.kube.delete(POD, { gracePeriodSeconds: 0 });
  expect(await drainInstance.act(payload, ports)).toEqual({ state: "superseded", code: "pod_gone" });
});

test("another process behind the address is not told", async () => {
  const { world, payload, ports } = await aDrain();
  const other = world.instances.boot(HOST, "boot-2");

  expect(await drainInstance.act(payload, ports)).toEqual({ state: "superseded", code: "process_replaced" });
  expect(other.state).toBe("ready");
});

test("a lost process is not called: its drain is committed alone", async () => {
  const { world, payload, ports } = await aDrain();

  expect(await drainInstance.act({ ...payload, loss: "forced" }, ports)).toEqual({ state: "done", code: "nobody_to_tell" });
  expect(await drainInstance.act({ ...payload, process: null }, ports)).toEqual({ state: "done", code: "nobody_to_tell" });
  expect(world.instances.processes.get(HOST)?.performed).toEqual([]);
});

test("a door that is shut seals the instance as assumed and counts it apart (D18)", async () => {
  const { world, process, ports } = await aDrain();
  const payload = { instance: INSTANCE, incarnation: 1, loss: "voluntary" as const, process };

  const outcome = await closeInstance.act(payload, ports);

  expect(outcome).toEqual({ state: "done", code: "closed" });
  expect(world.instances.processes.get(HOST)?.state).toBe("closed");
  expect(closeInstance.settle(payload, outcome)).toEqual([
    { kind: "move_instance", instance: INSTANCE, incarnation: 1, from: "draining", to: "sealed", set: { seal: "assumed" } },
    { kind: "count_loss", instance: INSTANCE, loss: "voluntary", obligations: 0, seal: "assumed" },
  ]);
});

test("an instance without a door is not sealed by a claim", async () => {
  const { process, ports } = await aDrain();
  const plain = { ...process, target: { ...process.target, protocol: "none" as const } };
  const payload = { instance: INSTANCE, incarnation: 1, loss: "voluntary" as const, process: plain };

  const outcome = await closeInstance.act(payload, ports);

  expect(outcome).toEqual({ state: "failed", code: "no_door" });
  expect(closeInstance.settle(payload, outcome)).toEqual([]);
});

test("a closed process that is gone before its answer is left to the forced way out", async () => {
  const { world, process, ports } = await aDrain();
  world.instances.processes.clear();
  await world.kube.delete(POD, { gracePeriodSeconds: 0 });

  expect(await closeInstance.act({ instance: INSTANCE, incarnation: 1, loss: "voluntary", process }, ports)).toEqual({
    state: "superseded",
    code: "pod_gone",
  });
});
