/** What is proven against an instance, and which node is cordoned for it (D2–D4, D9, D16, I6, I7, I26). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import type { KubeObject } from "../../src/kube/api.ts";
import { NAMESPACES, NODE_CLAIMS, NODES, PODS } from "../../src/kube/resources.ts";
import { ANNOTATIONS, LABELS } from "../../src/model/marks.ts";
import { Harness, inZone, ordersPool, workload } from "./harness.ts";
import { lineOf } from "./observed-kube.ts";

const MINUTE = 60_000;

let harness: Harness;
afterEach(() => harness.close());

async function cordonOf(name: string): Promise<unknown> {
  const { spec, metadata } = await harness.node(name);
  return {
    unschedulable: (spec as { readonly unschedulable?: boolean }).unschedulable ?? false,
    by: metadata.annotations?.[ANNOTATIONS.cordonedBy],
  };
}

function nodeWrites(): readonly string[] {
  return harness.kube
    .writes()
    .filter(({ kind }) => kind === "Node")
    .map(lineOf);
}

async function podsOf(instance: string): Promise<readonly KubeObject[]> {
  const { items } = await harness.cluster.api.list(PODS, { namespace: "default", labelSelector: `${LABELS.instance}=${instance}` });
  return items;
}

function nodeOf(pod: KubeObject | undefined): string {
  return (pod?.spec as { readonly nodeName?: string } | undefined)?.nodeName ?? "";
}

test("a foreign cordon on the node that sorts first does not hide drift on the one that sorts last (D4, D9, I7, I17)", async () => {
  harness = await Harness.start();
  await harness.cordon("node-b1");
  const [victim] = await harness.serve(
    ordersPool({ desired: 1, pod: inZone("zone-a"), objects: [workload("$(relevo.instance)-worker", inZone("zone-b"))] }),
  );
  expect((await podsOf(victim?.id ?? "")).map(nodeOf).toSorted()).toEqual(["node-a1", "node-b2"]);
  await harness.cordon("node-b1", false);
  await harness.cluster.api.patch(
    { type: NODES, name: "node-a1" },
    { metadata: { annotations: { "team.example/why": "disk" } }, spec: { unschedulable: true } },
  );

  await harness.drift("node-b2");
  await harness.until("it is replaced", async () => (await harness.phase(victim?.id ?? "")) === "deleted");

  const [evidence, ...more] = await harness.evidence();
  expect(more).toEqual([]);
  expect(evidence).toMatchObject({ instance: victim?.id, loss: "voluntary", reason: "node_drifted", nodeName: "node-b2" });
  expect(await cordonOf("node-b2")).toEqual({ unschedulable: true, by: expect.stringMatching(/^cordon/) });
  expect(await cordonOf("node-a1")).toEqual({ unschedulable: true, by: undefined });
  expect((await harness.node("node-a1")).metadata.annotations?.["team.example/why"]).toBe("disk");
  expect(nodeWrites()).toEqual(["patch Node/node-b2"]);
  const [heir] = await harness.serving();
  expect((await podsOf(heir?.id ?? "")).map(nodeOf).toSorted()).toEqual(["node-a2", "node-b1"]);
});

test("while one worker has no place the evidence is recorded and no node is cordoned; both follow when it has one (D8, D9, I6)", async () => {
  harness = await Harness.start();
  const [victim] = await harness.serve(
    ordersPool({ desired: 1, pod: inZone("zone-a"), objects: [workload("$(relevo.instance)-worker", inZone("zone-b"), 2)] }),
  );
  const [lead] = (await podsOf(victim?.id ?? "")).filter((pod) => nodeOf(pod).startsWith("node-a"));
  const [worker] = (await podsOf(victim?.id ?? "")).filter((pod) => nodeOf(pod).startsWith("node-b"));
  await harness.cordon("node-b1");
  await harness.cordon("node-b2");
  await harness.cluster.api.delete({ type: PODS, namespace: "default", name: worker?.metadata.name ?? "" });
  await harness.until("its successor waits for a place", async () => (await podsOf(victim?.id ?? "")).some((pod) => nodeOf(pod) === ""));

  await harness.drift(nodeOf(lead));
  await harness.pass(5 * MINUTE);
  expect((await harness.evidence()).map(({ instance, reason, nodeName }) => [instance, reason, nodeName])).toEqual([
    [victim?.id, "node_drifted", nodeOf(lead)],
  ]);
  expect(await cordonOf(nodeOf(lead))).toEqual({ unschedulable: false, by: undefined });
  expect(nodeWrites()).toEqual([]);
  expect(await harness.reasons()).toContain(`${nodeOf(lead)} inventory_incomplete`);
  expect(await harness.phase(victim?.id ?? "")).toBe("serving");

  await harness.cordon("node-b1", false);
  await harness.cordon("node-b2", false);
  await harness.until("it is replaced", async () => (await harness.phase(victim?.id ?? "")) === "deleted");
  expect(nodeWrites()).toEqual([`patch Node/${nodeOf(lead)}`]);
  expect((await harness.evidence()).length).toBe(1);
});

test("two pods of one name in two namespaces are two: the foreign one is no evidence and is not touched (D2, I8)", async () => {
  harness = await Harness.start();
  const [ours] = await harness.serve(ordersPool({ desired: 1, pod: inZone("zone-a") }));
  const { podName, podUid, nodeName } = ours?.incarnation ?? { podName: null, podUid: null, nodeName: null };
  const [pod] = await podsOf(ours?.id ?? "");
  await harness.cluster.api.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: "other" } });
  await harness.cluster.api.create(
    PODS,
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: podName ?? "", labels: pod?.metadata.labels ?? {} },
      spec: { nodeName: "node-b2", containers: [{ name: "main", image: "example", command: ["run"] }] },
    },
    { namespace: "other" },
  );
  const foreign = { type: PODS, namespace: "other", name: podName ?? "" };
  await harness.pass(10_000);
  const before = await harness.cluster.api.get(foreign);

  await harness.drift("node-b2");
  await harness.pass(MINUTE);
  expect(await harness.evidence()).toEqual([]);
  expect(await cordonOf("node-b2")).toEqual({ unschedulable: false, by: undefined });

  await harness.drift(nodeName ?? "");
  await harness.until("ours is replaced", async () => (await harness.phase(ours?.id ?? "")) === "deleted");
  expect((await harness.evidence()).map((each) => [each.podName, each.podUid, each.nodeName])).toEqual([[podName, podUid, nodeName]]);
  expect((await harness.cluster.api.get(foreign)).metadata).toEqual(before.metadata);
  expect(harness.kube.writes().filter(({ namespace }) => namespace === "other")).toEqual([]);
});

test("a node with an empty providerID is meant by no notice, whatever it names; what serves there serves on (S1, D9)", async () => {
  harness = await Harness.start({ nodes: 1 });
  await harness.cordon("node-a1");
  await harness.startUnownedNode("node-x1");
  const [ours] = await harness.serve(ordersPool({ desired: 1, disruption: { provisioners: ["none"] } }));
  expect(ours?.incarnation.nodeName).toBe("node-x1");
  expect((await harness.controlPlane.listNodes()).find(({ name }) => name === "node-x1")).toMatchObject({ machineId: null, owner: null });

  for (const machine of ["i-0fffffffffffffff0", "i-node-x1"]) expect((await harness.warn(machine)).status).toBe(202);
  expect((await harness.warn("")).status).toBe(400);
  await harness.pass(6 * MINUTE);

  expect(await harness.evidence()).toEqual([]);
  expect(nodeWrites()).toEqual([]);
  expect((await harness.store.listNotices(10)).map(({ outcome }) => outcome)).toEqual(["other_cluster", "other_cluster"]);
  expect((await harness.serving()).map(({ id }) => id)).toEqual([ours?.id]);
});

test("with mode Off a drifting, interrupted and cordoned cluster causes not one write, nor evidence (D1, I26)", async () => {
  harness = await Harness.start();
  const serving = await harness.serve(ordersPool({ mode: "Off" }));
  await harness.pass(MINUTE);
  const before = harness.kube.writes().length;

  for (const node of ["node-a1", "node-a2", "node-b1", "node-b2"]) await harness.drift(node);
  await harness.cordon("node-a1");
  await harness.warn(harness.machineOf("node-b1"));
  await harness.pass(10 * MINUTE);

  expect(harness.kube.writes().slice(before).map(lineOf)).toEqual([]);
  expect(await harness.evidence()).toEqual([]);
  expect((await harness.serving()).map(({ id }) => id)).toEqual(serving.map(({ id }) => id));
});

test("with mode Observe the same cluster is written down and told, and nothing of the cluster is changed (D1, D11)", async () => {
  harness = await Harness.start();
  const serving = await harness.serve(ordersPool({ mode: "Observe" }));
  await harness.pass(MINUTE);
  const before = harness.kube.writes().length;

  for (const node of ["node-a1", "node-a2", "node-b1", "node-b2"]) await harness.drift(node);
  await harness.pass(10 * MINUTE);

  const written = new Set(
    harness.kube
      .writes()
      .slice(before)
      .map(({ verb, kind }) => `${verb} ${kind}`),
  );
  expect([...written].toSorted()).toEqual(["create Event", "patchStatus Pool"]);
  expect((await harness.evidence()).map(({ instance }) => instance).toSorted()).toEqual(serving.map(({ id }) => id).toSorted());
  expect(await harness.reasons()).toEqual(expect.arrayContaining(serving.map(({ id }) => `${id} mode_observe`)));
});

test("evidence over HTTP is typed, and of what others wrote only names and UIDs are in it (D16)", async () => {
  harness = await Harness.start();
  const [victim] = await harness.serve();
  const node = victim?.incarnation.nodeName ?? "";
  const read = async (): Promise<unknown> => {
    const answer = await harness.http.inject({ url: "/v1/evidence" });
    expect(answer.statusCode).toBe(200);
    expect(answer.body).not.toMatch(/hunter2|<script>/);
    return answer.json();
  };

  expect(await read()).toEqual({ items: [] });
  const claim = harness.cluster.provisioner.nodes().find(({ name }) => name === node)?.claim ?? "";
  await harness.cluster.api.patch({ type: NODES, name: node }, { metadata: { annotations: { note: "<script>hunter2</script>" } } });
  await harness.cluster.api.patch({ type: NODE_CLAIMS, name: claim }, { metadata: { annotations: { note: "<script>hunter2</script>" } } });
  await harness.drift(node);
  const { status } = await harness.cluster.api.get({ type: NODE_CLAIMS, name: claim });
  const { conditions } = status as { readonly conditions: readonly { readonly type: string }[] };
  const spoken = conditions.map((each) => (each.type === "Drifted" ? { ...each, reason: "<script>", message: "password hunter2" } : each));
  await harness.cluster.api.patchStatus({ type: NODE_CLAIMS, name: claim }, { status: { conditions: spoken } });
  await harness.until("it is recorded", async () => (await harness.evidence()).length === 1);

  const [recorded] = await harness.evidence();
  expect(await read()).toEqual({
    items: [
      {
        id: recorded?.id,
        pool: "default/orders",
        instance: victim?.id,
        incarnation: 1,
        loss: "voluntary",
        reason: "node_drifted",
        firstSeen: new Date(recorded?.firstSeen ?? 0).toISOString(),
        deadline: null,
        node: { name: node, uid: (await harness.node(node)).metadata.uid },
        nodeClaim: { name: claim, uid: (await harness.cluster.api.get({ type: NODE_CLAIMS, name: claim })).metadata.uid },
        pod: { name: victim?.incarnation.podName, uid: victim?.incarnation.podUid },
        notice: null,
        witnesses: [],
        authorityEpoch: recorded?.authorityEpoch,
      },
    ],
  });
  expect(harness.log.filter(({ event }) => event === "evidence_first_read").length).toBe(1);
});

/** The cluster has no such kinds: by the clock, and not by passes, it is asked whether it has them by now. */
const ABSENT_KINDS: readonly string[] = ["HorizontalPodAutoscaler", "ScaledObject"];

test("a hundred passes over a pool that is well cost no list at all, and every act follows a fresh read of its object by name, or is compared by the server with what was seen; a replacement costs at most fifty requests (D15, I6, I19)", async () => {
  harness = await Harness.start();
  const [victim] = await harness.serve();
  await harness.pass(10_000);
  const before = harness.kube.calls.length;
  let passes = 0;
  for (let last = harness.lastPassAt(); passes < 100; await harness.pass(20)) {
    const at = harness.lastPassAt();
    if (at === last) continue;
    last = at;
    passes++;
  }
  const lists = harness.kube.calls.slice(before).filter(({ verb, kind }) => verb === "list" && !ABSENT_KINDS.includes(kind));
  expect(lists).toEqual([]);

  const acting = harness.kube.calls.length;
  await harness.drift(victim?.incarnation.nodeName ?? "");
  await harness.until("it is replaced", async () => (await harness.phase(victim?.id ?? "")) === "deleted");
  const calls = harness.kube.calls.slice(acting);
  expect(calls.length, calls.map(lineOf).join("\n")).toBeLessThanOrEqual(50);
  const acts = calls.flatMap((call, index) => (isActOnExisting(call) ? [{ call, index }] : []));
  expect(acts.map(({ call }) => `${call.verb} ${call.kind}`).toSorted()).toEqual(["delete Deployment", "patch Node", "patch Pod"]);
  for (const { call, index } of acts) {
    const isRead = calls.slice(0, index).some(({ verb, kind, name }) => verb === "get" && kind === call.kind && name === call.name);
    expect([lineOf(call), isRead || isCompared(call.body)]).toEqual([lineOf(call), true]);
  }
  expect(
    calls.filter(({ verb, body }) => verb === "list" && (body as { readonly labelSelector?: string }).labelSelector === undefined),
  ).toEqual([]);
});

/** Under the UID and the resourceVersion that were seen: of anything else the server makes a conflict. */
function isCompared(body: unknown): boolean {
  const { uid, resourceVersion } = (body as { readonly metadata?: Readonly<Record<string, unknown>> } | undefined)?.metadata ?? {};
  return typeof uid === "string" && typeof resourceVersion === "string";
}

function isActOnExisting({ verb, kind }: { readonly verb: string; readonly kind: string }): boolean {
  return kind !== "Pool" && kind !== "Event" && (verb === "patch" || verb === "delete");
}
