import { expect, test } from "vitest";
import { NODES } from "../../kube/resources.ts";
import { faulty } from "../testing/fuse.ts";
import { aNode, aWorld } from "../testing/world.ts";
import { uncordonNode } from "./uncordon-node.ts";

const MARK = "cordon/uid/evidence-1";

async function aCordonedNode(
  annotations: Readonly<Record<string, string>> = { "relevo.dev/cordoned-by": MARK, "relevo.dev/cordoned-for": "evidence-1" },
) {
  const world = await aWorld();
  const node = await aNode(world.kube, "a", { unschedulable: true });
  await world.kube.patch({ type: NODES, name: "a" }, { metadata: { annotations: { ...annotations, "example.com/own": "stays" } } });
  world.effects.length = 0;
  const payload = { node: { name: "a", uid: node.metadata.uid }, cordonedBy: MARK };
  const ports = { kube: world.kube, driver: world.instances, step: { id: "uncordon/uid/x" } };
  return { world, payload, ports, read: () => world.kube.get({ type: NODES, name: "a" }) };
}

test("only the own cordon and its marks go (D4)", async () => {
  const { payload, ports, read } = await aCordonedNode();

  expect(await uncordonNode.act(payload, ports)).toEqual({ state: "done", code: "uncordoned" });

  const node = await read();
  expect(node["spec"]).not.toHaveProperty("unschedulable");
  expect(node.metadata.annotations).toEqual({ "example.com/own": "stays" });
});

test("a foreign cordon stays (I7)", async () => {
  const { world, payload, ports, read } = await aCordonedNode({});
  const before = await read();

  expect(await uncordonNode.act(payload, ports)).toEqual({ state: "superseded", code: "not_our_cordon" });
  expect(await uncordonNode.probe(payload, ports)).toEqual({ answer: "not" });

  expect(await read()).toEqual(before);
  expect(world.effects).toEqual([]);
});

test("a later cordon of ours is another one and stays", async () => {
  const { world, payload, ports } = await aCordonedNode({ "relevo.dev/cordoned-by": "cordon/uid/evidence-2" });

  expect(await uncordonNode.act(payload, ports)).toEqual({ state: "superseded", code: "not_our_cordon" });
  expect(world.effects).toEqual([]);
});

test("a node of the same name with another UID is left alone", async () => {
  const { world, payload, ports } = await aCordonedNode();

  expect(await uncordonNode.act({ ...payload, node: { name: "a", uid: "another" } }, ports)).toEqual({
    state: "superseded",
    code: "node_replaced",
  });
  expect(world.effects).toEqual([]);
});

test("after a lost reply the probe sees that the cordon and the mark are gone", async () => {
  const { payload, ports } = await aCordonedNode();
  const kube = faulty(ports.kube, ({ method }) => (method === "patch" ? { error: new Error("reply lost"), side: "after" } : undefined));

  await expect(uncordonNode.act(payload, { ...ports, kube })).rejects.toThrow("reply lost");
  expect(await uncordonNode.probe(payload, ports)).toEqual({ answer: "happened", code: "uncordoned" });
});
