import { describe, expect, test } from "vitest";
import type { NodeView, PodSpec, PodView, Taint } from "../controllers/views.ts";
import { chooseNode, type Placement } from "./choose-node.ts";

interface NodeCase {
  readonly zone?: string;
  readonly cpu?: string;
  readonly memory?: string;
  readonly pods?: string;
  readonly taints?: readonly Taint[];
  readonly isCordoned?: boolean;
  readonly isReady?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
}

function node(
  name: string,
  { zone = "zone-a", cpu = "4", memory = "8Gi", pods = "10", taints, isCordoned = false, isReady = true, labels }: NodeCase = {},
): NodeView {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      uid: name,
      resourceVersion: "1",
      creationTimestamp: "",
      labels: { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, ...labels },
    },
    spec: { ...(taints === undefined ? {} : { taints }), unschedulable: isCordoned },
    status: { conditions: [{ type: "Ready", status: isReady ? "True" : "False" }], allocatable: { cpu, memory, pods } },
  };
}

function pod(
  name: string,
  spec: Partial<PodSpec> & { readonly cpu?: string; readonly memory?: string } = {},
  labels: Readonly<Record<string, string>> = { app: "web" },
): PodView {
  const { cpu = "100m", memory = "64Mi", ...rest } = spec;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default", uid: name, resourceVersion: "1", creationTimestamp: "", labels },
    spec: { containers: [{ name: "main", resources: { requests: { cpu, memory } } }], ...rest },
  };
}

const on = (nodeName: string, placed: PodView): PodView => ({ ...placed, spec: { ...placed.spec, nodeName } });
const answer = (placement: Placement): string => (placement.kind === "node" ? placement.node.metadata.name : placement.message);

describe("a node is left out", () => {
  const cases: readonly (readonly [string, PodView, NodeView, string])[] = [
    ["when it is cordoned", pod("p"), node("n", { isCordoned: true }), "0/1 nodes are available: 1 node(s) were unschedulable."],
    ["when it is not ready", pod("p"), node("n", { isReady: false }), "0/1 nodes are available: 1 node(s) were not ready."],
    [
      "when the pod does not tolerate its taint",
      pod("p", { tolerations: [{ key: "other", operator: "Exists" }] }),
      node("n", { taints: [{ key: "karpenter.sh/disrupted", effect: "NoSchedule" }] }),
      "0/1 nodes are available: 1 node(s) had untolerated taint {karpenter.sh/disrupted: }.",
    ],
    ["when its cores do not suffice", pod("p", { cpu: "5" }), node("n"), "0/1 nodes are available: 1 Insufficient cpu."],
    ["when its memory does not suffice", pod("p", { memory: "9Gi" }), node("n"), "0/1 nodes are available: 1 Insufficient memory."],
    ["when it has pods enough", pod("p"), node("n", { pods: "0" }), "0/1 nodes are available: 1 Too many pods."],
    [
      "when it lacks a label of the node selector",
      pod("p", { nodeSelector: { disk: "fast" } }),
      node("n"),
      "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
    ],
  ];
  test.each(cases)("%s", (_name, wanted, only, message) => {
    expect(answer(chooseNode(wanted, [only], []))).toBe(message);
  });
});

test("what runs on a node already counts against its resources, and what has ended does not", () => {
  const big = on("a", pod("big", { cpu: "3800m" }, {}));
  const ended: PodView = { ...big, status: { phase: "Succeeded" } };

  expect(answer(chooseNode(pod("p", { cpu: "500m" }), [node("a")], [big]))).toBe("0/1 nodes are available: 1 Insufficient cpu.");
  expect(answer(chooseNode(pod("p", { cpu: "500m" }), [node("a")], [ended]))).toBe("a");
});

test("a toleration lets a pod onto a tainted node", () => {
  const tainted = node("n", { taints: [{ key: "team", value: "d", effect: "NoSchedule" }] });

  expect(answer(chooseNode(pod("p", { tolerations: [{ key: "team", value: "d", effect: "NoSchedule" }] }), [tainted], []))).toBe("n");
  expect(answer(chooseNode(pod("p", { tolerations: [{ operator: "Exists" }] }), [tainted], []))).toBe("n");
});

test("required node affinity is an or of ands", () => {
  const nodeSelectorTerms = [
    {
      matchExpressions: [
        { key: "disk", operator: "In" as const, values: ["fast"] },
        { key: "gpu", operator: "Exists" as const },
      ],
    },
    { matchFields: [{ key: "metadata.name", operator: "In" as const, values: ["c"] }] },
  ];
  const wanted = pod("p", { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } });

  expect(answer(chooseNode(wanted, [node("a", { labels: { disk: "fast" } }), node("c")], []))).toBe("c");
  expect(answer(chooseNode(wanted, [node("a", { labels: { disk: "fast", gpu: "1" } }), node("b")], []))).toBe("a");
});

test("pods of one kind spread over nodes first, then over zones", () => {
  const nodes = [node("a1"), node("a2"), node("b1", { zone: "zone-b" }), node("b2", { zone: "zone-b" })];
  const placed: PodView[] = [];
  for (const name of ["1", "2", "3", "4", "5"]) placed.push(on(answer(chooseNode(pod(name), nodes, placed)), pod(name)));

  expect(placed.map(({ spec }) => spec.nodeName)).toEqual(["a1", "b1", "a2", "b2", "a1"]);
});

test("a pod that is on its way out no longer counts as kin", () => {
  const leaving: PodView = { ...on("a", pod("old")), metadata: { ...pod("old").metadata, deletionTimestamp: "2030-01-01T00:00:00Z" } };

  expect(answer(chooseNode(pod("new"), [node("a"), node("b")], [leaving, on("b", pod("other"))]))).toBe("a");
});

test("required anti-affinity by hostname allows one per node", () => {
  const term = { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app: "web" } } };
  const wanted = pod("p", { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } });

  expect(answer(chooseNode(wanted, [node("a"), node("b")], [on("a", pod("1"))]))).toBe("b");
  expect(answer(chooseNode(wanted, [node("a")], [on("a", pod("1"))]))).toBe(
    "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.",
  );
});

test("a hard spread over zones bounds the difference between them", () => {
  const wanted = pod("p", {
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: "topology.kubernetes.io/zone",
        whenUnsatisfiable: "DoNotSchedule",
        labelSelector: { matchLabels: { app: "web" } },
      },
    ],
  });
  const nodes = [node("a"), node("b", { zone: "zone-b", isCordoned: true })];

  expect(answer(chooseNode(wanted, nodes, []))).toBe("a");
  expect(answer(chooseNode(wanted, nodes, [on("a", pod("1"))]))).toBe(
    "0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, 1 node(s) were unschedulable.",
  );
});

test("without nodes it says so", () => {
  expect(answer(chooseNode(pod("p"), [], []))).toBe("no nodes available to schedule pods");
});

test("the choice does not depend on the order of nodes or pods (I17)", () => {
  const nodes = [node("a1"), node("a2"), node("b1", { zone: "zone-b" })];
  const placed = [on("a1", pod("1")), on("b1", pod("2"))];

  expect(answer(chooseNode(pod("p"), nodes.toReversed(), placed.toReversed()))).toBe(answer(chooseNode(pod("p"), nodes, placed)));
});
