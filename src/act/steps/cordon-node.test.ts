import { expect, test } from "vitest";
import { KubeApiError } from "../../kube/api.ts";
import { NODES } from "../../kube/resources.ts";
import { parseNode } from "../../kube/types.ts";
import { faulty } from "../testing/fuse.ts";
import { aNode, aWorld } from "../testing/world.ts";
import { cordonNode } from "./cordon-node.ts";

const STEP = { id: "cordon/uid/evidence-1" };

async function aCordon(spec: Readonly<Record<string, unknown>> = {}) {
  const world = await aWorld();
  const node = await aNode(world.kube, "a", spec);
  world.effects.length = 0;
  const payload = { node: { name: "a", uid: node.metadata.uid }, evidence: "evidence-1" };
  const ports = { kube: world.kube, driver: world.instances, step: STEP };
  const read = () => world.kube.get({ type: NODES, name: "a" });
  return { world, payload, ports, read };
}

test("the node is made unschedulable and bears the step's mark in the same patch (D4)", async () => {
  const { world, payload, ports, read } = await aCordon();

  expect(await cordonNode.probe(payload, ports)).toEqual({ answer: "not" });
  expect(await cordonNode.act(payload, ports)).toEqual({ state: "done", code: "cordoned" });

  const node = await read();
  expect(node["spec"]).toMatchObject({ unschedulable: true });
  expect(node.metadata.annotations).toEqual({ "relevo.dev/cordoned-by": STEP.id, "relevo.dev/cordoned-for": "evidence-1" });
  expect(await cordonNode.probe(payload, ports)).toEqual({ answer: "happened", code: "cordoned" });
  expect(world.effects).toEqual(["patch nodes/a"]);
});

test("acting again changes nothing (I27)", async () => {
  const { world, payload, ports } = await aCordon();

  await cordonNode.act(payload, ports);

  expect(await cordonNode.act(payload, ports)).toEqual({ state: "done", code: "cordoned" });
  expect(world.effects).toEqual(["patch nodes/a"]);
});

test("a foreign cordon and its annotations are left alone (I7)", async () => {
  const { world, payload, ports, read } = await aCordon({ unschedulable: true });
  const before = await read();

  expect(await cordonNode.act(payload, ports)).toEqual({ state: "done", code: "already_unschedulable" });

  expect(await read()).toEqual(before);
  expect(world.effects).toEqual([]);
});

test("a node of the same name with another UID is left alone (I6)", async () => {
  const { world, payload, ports } = await aCordon();
  const other = { ...payload, node: { name: "a", uid: "another" } };

  expect(await cordonNode.act(other, ports)).toEqual({ state: "superseded", code: "node_replaced" });
  expect(await cordonNode.probe(other, ports)).toEqual({ answer: "not" });
  expect(world.effects).toEqual([]);
});

test("a node that is gone is nothing to cordon", async () => {
  const { payload, ports } = await aCordon();
  const gone = { ...payload, node: { name: "b", uid: "b" } };

  expect(await cordonNode.act(gone, ports)).toEqual({ state: "superseded", code: "node_gone" });
});

test("a node that changed between read and patch is a conflict and stays as it is (I6)", async () => {
  const { payload, ports, world, read } = await aCordon();
  const kube = faulty(ports.kube, ({ method, number }) => {
    if (method === "patch" && number === 1) void world.kube.patch({ type: NODES, name: "a" }, { metadata: { labels: { touched: "yes" } } });
    return undefined;
  });

  await expect(cordonNode.act(payload, { ...ports, kube })).rejects.toBeInstanceOf(KubeApiError);
  expect((await read())["spec"]).not.toHaveProperty("unschedulable");
});

test("after a lost reply the probe finds the mark", async () => {
  const { payload, ports } = await aCordon();
  const kube = faulty(ports.kube, ({ method }) => (method === "patch" ? { error: new Error("reply lost"), side: "after" } : undefined));

  await expect(cordonNode.act(payload, { ...ports, kube })).rejects.toThrow("reply lost");
  expect(await cordonNode.probe(payload, ports)).toEqual({ answer: "happened", code: "cordoned" });
});

test("the patch carries the UID and the resourceVersion that were read, and nothing but cordon and marks (I6, I8)", async () => {
  const { payload, ports, read } = await aCordon();
  const { uid, resourceVersion } = (await read()).metadata;
  const bodies: unknown[] = [];
  const kube = faulty(ports.kube, ({ method, input }) => {
    if (method === "patch") bodies.push(input[1]);
    return undefined;
  });

  await cordonNode.act(payload, { ...ports, kube });

  const annotations = { "relevo.dev/cordoned-by": STEP.id, "relevo.dev/cordoned-for": "evidence-1" };
  expect(bodies).toEqual([{ metadata: { uid, resourceVersion, annotations }, spec: { unschedulable: true } }]);
});

/** As `aCordon`, with the read model as of then; `requests` are those of the step. */
async function aSeenNode(spec: Readonly<Record<string, unknown>> = {}) {
  const { world, payload, ports, read } = await aCordon(spec);
  const parsed = parseNode(await read());
  const seen = parsed.ok ? parsed.value : undefined;
  const requests: string[] = [];
  const kube = faulty(world.kube, ({ method }) => void requests.push(method));
  const touch = (body: Readonly<Record<string, unknown>>) => world.kube.patch({ type: NODES, name: "a" }, body);
  return { world, payload, ports: { ...ports, kube, nodeSeen: () => seen }, read, requests, touch };
}

test("where the read model is in step, a cordon costs one request, under the UID and the resourceVersion that were seen (I6)", async () => {
  const { payload, ports, read, requests } = await aSeenNode();

  expect(await cordonNode.act(payload, ports)).toEqual({ state: "done", code: "cordoned" });
  expect(requests).toEqual(["patch"]);
  expect((await read())["spec"]).toMatchObject({ unschedulable: true });
  expect(await cordonNode.act(payload, ports)).toEqual({ state: "done", code: "cordoned" }); // again, with a read model from before
  expect(requests).toEqual(["patch", "patch", "get"]);
});

test("a node that changed since it was seen is read by name and cordoned as it is now (I6)", async () => {
  const { payload, ports, read, requests, touch } = await aSeenNode();
  await touch({ metadata: { labels: { touched: "yes" } } });

  expect(await cordonNode.act(payload, ports)).toEqual({ state: "done", code: "cordoned" });
  expect(requests).toEqual(["patch", "get", "patch"]);
  expect(await read()).toMatchObject({ metadata: { labels: { touched: "yes" } }, spec: { unschedulable: true } });
});

test("a foreign cordon that the read model does not show yet is left alone (I7)", async () => {
  const { payload, ports, read, requests, touch } = await aSeenNode();
  await touch({ spec: { unschedulable: true } });
  const before = await read();

  expect(await cordonNode.act(payload, ports)).toEqual({ state: "done", code: "already_unschedulable" });
  expect(requests).toEqual(["patch", "get"]);
  expect(await read()).toEqual(before);
});

test("what the read model shows in the way is asked of the server, not believed", async () => {
  const { payload, ports, requests, touch } = await aSeenNode({ unschedulable: true });
  await touch({ spec: { unschedulable: null } });

  expect(await cordonNode.act(payload, ports)).toEqual({ state: "done", code: "cordoned" });
  expect(requests).toEqual(["get", "patch"]);
});

test("a node that is gone, or another of its name, since it was seen is left alone (I6)", async () => {
  const { world, payload, ports, requests } = await aSeenNode();
  await world.kube.delete({ type: NODES, name: "a" });
  expect(await cordonNode.act(payload, ports)).toEqual({ state: "superseded", code: "node_gone" });

  await world.kube.create(NODES, { apiVersion: "v1", kind: "Node", metadata: { name: "a" } });
  expect(await cordonNode.act(payload, ports)).toEqual({ state: "superseded", code: "node_replaced" });
  expect(requests).toEqual(["patch", "get", "patch", "get"]);
  expect((await world.kube.get({ type: NODES, name: "a" }))["spec"] ?? {}).not.toHaveProperty("unschedulable");
});

test("a cordon whose reply is lost is not sent a second time blindly", async () => {
  const { payload, ports, requests } = await aSeenNode();
  const kube = faulty(ports.kube, ({ method }) => (method === "patch" ? { error: new Error("reply lost"), side: "after" } : undefined));

  await expect(cordonNode.act(payload, { ...ports, kube })).rejects.toThrow("reply lost");
  expect(requests).toEqual(["patch"]);
  expect(await cordonNode.probe(payload, ports)).toEqual({ answer: "happened", code: "cordoned" });
});
