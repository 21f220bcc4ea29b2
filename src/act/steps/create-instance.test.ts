import { expect, test } from "vitest";
import { CONFIG_MAPS, DEPLOYMENTS } from "../../kube/resources.ts";
import { renderBlueprint } from "../render-blueprint.ts";
import { faulty } from "../testing/fuse.ts";
import { aWorld, BLUEPRINT, create, INSTANCE } from "../testing/world.ts";
import { type CreateInstance, createInstance } from "./create-instance.ts";

const STEP = { id: `create/${INSTANCE}` };
const NAMES = { instance: INSTANCE, pool: "orders", site: "local", namespace: "default" };
const SETTINGS = { type: CONFIG_MAPS, namespace: "default", name: `${INSTANCE}-settings` };
const LEAD = { type: DEPLOYMENTS, namespace: "default", name: INSTANCE };

async function aCreate(blueprint: unknown = BLUEPRINT) {
  const world = await aWorld();
  const payload = createInstance.schema.parse({
    instance: INSTANCE,
    namespace: "default",
    createdBy: STEP.id,
    objects: renderBlueprint(blueprint, NAMES),
  });
  world.effects.length = 0;
  return { world, payload, ports: { kube: world.kube, driver: world.instances, step: STEP } };
}

async function madeObjects({ kube }: { kube: CreateKube }) {
  const [lead, settings] = [await kube.get(LEAD), await kube.get(SETTINGS)];
  return [
    { apiVersion: "apps/v1", kind: "Deployment", namespace: "default", name: INSTANCE, uid: lead.metadata.uid },
    { apiVersion: "v1", kind: "ConfigMap", namespace: "default", name: `${INSTANCE}-settings`, uid: settings.metadata.uid },
  ];
}
type CreateKube = Parameters<typeof createInstance.act>[1]["kube"];

test("all objects are made, what pods need first, marked and labelled; the record has the lead first (D5)", async () => {
  const { world, payload, ports } = await aCreate();

  expect(await createInstance.probe(payload, ports)).toEqual({ answer: "not" });
  const outcome = await createInstance.act(payload, ports);

  const objects = await madeObjects(world);
  expect(outcome).toEqual({ state: "done", code: "created", result: { objects } });
  expect(world.effects).toEqual([`create configmaps/${INSTANCE}-settings`, `create deployments/${INSTANCE}`]);
  const lead = await world.kube.get(LEAD);
  expect(lead.metadata.annotations).toEqual({ "relevo.dev/step": STEP.id });
  expect(lead.metadata.labels).toEqual({ app: "orders", "relevo.dev/pool": "orders", "relevo.dev/instance": INSTANCE });
  expect(await createInstance.probe(payload, ports)).toEqual({ answer: "happened", code: "created", result: { objects } });
  expect(createInstance.settle(payload, outcome)).toEqual([
    { kind: "move_instance", instance: INSTANCE, from: "creating", to: "preparing", set: { objects } },
  ]);
});

test("acting again makes nothing more and answers the same (I27)", async () => {
  const { world, payload, ports } = await aCreate();
  const first = await createInstance.act(payload, ports);

  expect(await createInstance.act(payload, ports)).toEqual(first);
  expect(world.effects).toHaveLength(2);
});

test("after a lost reply the rest is made and the first object is taken for ours", async () => {
  const { world, payload, ports } = await aCreate();
  const kube = faulty(ports.kube, ({ method, number }) =>
    method === "create" && number === 1 ? { error: new Error("reply lost"), side: "after" } : undefined,
  );

  await expect(createInstance.act(payload, { ...ports, kube })).rejects.toThrow("reply lost");
  expect(await createInstance.probe(payload, ports)).toEqual({ answer: "not" });
  expect(await createInstance.act(payload, ports)).toEqual({
    state: "done",
    code: "created",
    result: { objects: await madeObjects(world) },
  });
  expect(world.effects).toEqual([`create configmaps/${INSTANCE}-settings`, `create deployments/${INSTANCE}`]);
});

test("a name that somebody else took fails the candidate and leaves the foreign object alone (I8)", async () => {
  const { world, payload, ports } = await aCreate();
  await create(world.kube, CONFIG_MAPS, {
    metadata: { name: `${INSTANCE}-settings`, labels: { "relevo.dev/instance": INSTANCE } },
    data: { whose: "theirs" },
  });

  const outcome = await createInstance.act(payload, ports);

  expect(outcome).toEqual({ state: "failed", code: "name_taken", result: { objects: [] } });
  expect((await world.kube.get(SETTINGS))["data"]).toEqual({ whose: "theirs" });
  expect(createInstance.settle(payload, outcome)).toEqual([
    { kind: "move_instance", instance: INSTANCE, from: "creating", to: "failed", set: { failure: "name_taken", objects: [] } },
  ]);
});

test.each([
  [
    "a kind that is not on the list",
    { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: "x" } },
    "kind_not_allowed",
  ],
  [
    "a kind of that name in another group",
    { apiVersion: "example.com/v1", kind: "Deployment", metadata: { name: "x" } },
    "kind_not_allowed",
  ],
  [
    "another namespace",
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x", namespace: "kube-system" } },
    "namespace_not_allowed",
  ],
])("%s is refused before anything is made", async (_, object, code) => {
  const { world, payload, ports } = await aCreate({ objects: [...BLUEPRINT.objects, object] });

  expect(await createInstance.act(payload, ports)).toEqual({ state: "failed", code });
  expect(world.effects).toEqual([]);
});

test("begin takes the instance from pending, so that no second create can begin", () => {
  expect(createInstance.begin?.({ instance: INSTANCE } as CreateInstance)).toEqual([
    { kind: "move_instance", instance: INSTANCE, from: "pending", to: "creating" },
  ]);
});
