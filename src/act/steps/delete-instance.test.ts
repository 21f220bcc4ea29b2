import { expect, test } from "vitest";
import { CONFIG_MAPS, DEPLOYMENTS } from "../../kube/resources.ts";
import { faulty } from "../testing/fuse.ts";
import { aRunningInstance, aWorld, create, INSTANCE } from "../testing/world.ts";
import { deleteInstance } from "./delete-instance.ts";

const LEAD = { type: DEPLOYMENTS, namespace: "default", name: INSTANCE };

async function aDeletion() {
  const world = await aWorld();
  const { objects } = await aRunningInstance(world, "a");
  world.effects.length = 0;
  const payload = { instance: INSTANCE, namespace: "default", from: "sealed" as const, objects, createdBy: `create/${INSTANCE}` };
  return { world, payload, ports: { kube: world.kube, driver: world.instances, step: { id: `delete/${INSTANCE}` } } };
}

test("the recorded objects go by UID, and done means that none can be read any more (D5, I8)", async () => {
  const { world, payload, ports } = await aDeletion();

  expect(await deleteInstance.probe(payload, ports)).toEqual({ answer: "not" });
  const outcome = await deleteInstance.act(payload, ports);

  expect(outcome).toEqual({ state: "done", code: "absent" });
  expect(world.effects).toEqual([`delete deployments/${INSTANCE}`]);
  expect(await deleteInstance.probe(payload, ports)).toEqual({ answer: "happened", code: "absent" });
  expect(deleteInstance.settle(payload, outcome)).toEqual([{ kind: "move_instance", instance: INSTANCE, from: "retiring", to: "retired" }]);
});

test("acting again deletes nothing more (I27)", async () => {
  const { world, payload, ports } = await aDeletion();
  await deleteInstance.act(payload, ports);

  expect(await deleteInstance.act(payload, ports)).toEqual({ state: "done", code: "absent" });
  expect(world.effects).toHaveLength(1);
});

test("an object of the same name with another UID is somebody else's and stays (I8)", async () => {
  const { world, payload, ports } = await aDeletion();
  await world.kube.delete(LEAD);
  await create(world.kube, DEPLOYMENTS, { metadata: { name: INSTANCE }, spec: await templateSpec() });
  world.effects.length = 0;

  expect(await deleteInstance.act(payload, ports)).toEqual({ state: "done", code: "absent" });
  expect(world.effects).toEqual([]);
});

async function templateSpec() {
  const labels = { app: "other" };
  return { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [{ name: "main", image: "x" }] } } };
}

test("what an overtaken create left behind goes too, by label and mark; a foreign object under our label stays", async () => {
  const { world, payload, ports } = await aDeletion();
  const labels = { "relevo.dev/instance": INSTANCE };
  const marked = (step: string) => ({ "relevo.dev/step": step });
  await create(world.kube, CONFIG_MAPS, {
    metadata: { name: "orders-0000000001-left", labels, annotations: marked(`create/${INSTANCE}#2`) },
  });
  await create(world.kube, CONFIG_MAPS, { metadata: { name: "unmarked", labels } });
  await create(world.kube, CONFIG_MAPS, { metadata: { name: "a-copy", labels, annotations: marked(`create/${INSTANCE}`) } });
  await create(world.kube, CONFIG_MAPS, { metadata: { name: "of-another", labels, annotations: marked(`create/${INSTANCE}9`) } });
  world.effects.length = 0;

  expect(await deleteInstance.act({ ...payload, objects: [] }, ports)).toEqual({ state: "done", code: "absent" });
  expect(world.effects.toSorted()).toEqual(["delete configmaps/orders-0000000001-left", `delete deployments/${INSTANCE}`]);
});

test("an object whose finalizers hold it is waited for, not deleted twice", async () => {
  const { world, payload, ports } = await aDeletion();
  await world.kube.patch(LEAD, { metadata: { finalizers: ["example.com/hold"] } });
  world.effects.length = 0;

  await expect(deleteInstance.act(payload, ports)).rejects.toMatchObject({ code: "objects_remain", class: "retryable" });
  await expect(deleteInstance.act(payload, ports)).rejects.toMatchObject({ code: "objects_remain" });
  expect(world.effects).toEqual([`delete deployments/${INSTANCE}`]);

  await world.kube.patch(LEAD, { metadata: { finalizers: null } });
  expect(await deleteInstance.probe(payload, ports)).toEqual({ answer: "happened", code: "absent" });
});

test("an object that is replaced between read and delete is not deleted: the UID is a precondition (I8)", async () => {
  const { world, payload, ports } = await aDeletion();
  const spec = await templateSpec();
  const kube = faulty(world.kube, async ({ method, number }) => {
    if (method !== "delete" || number > 1) return undefined;
    await world.kube.delete(LEAD);
    await create(world.kube, DEPLOYMENTS, { metadata: { name: INSTANCE }, spec });
    return undefined;
  });

  await expect(deleteInstance.act(payload, { ...ports, kube })).rejects.toMatchObject({ class: "conflict" });
  expect(await deleteInstance.act(payload, ports)).toEqual({ state: "done", code: "absent" });
  expect((await world.kube.get(LEAD)).metadata.labels).toBeUndefined();
});

test("after a lost reply the probe sees that it is gone", async () => {
  const { payload, ports } = await aDeletion();
  const kube = faulty(ports.kube, ({ method }) => (method === "delete" ? { error: new Error("reply lost"), side: "after" } : undefined));

  await expect(deleteInstance.act(payload, { ...ports, kube })).rejects.toThrow("reply lost");
  expect(await deleteInstance.probe(payload, ports)).toEqual({ answer: "happened", code: "absent" });
});
