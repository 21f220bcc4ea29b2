import { expect, test } from "vitest";
import type { Change } from "../kube/informer.ts";
import { type KubeNode, type KubePod, parseNode, parsePod } from "../kube/types.ts";
import type { EvidenceReason } from "../model/evidence.ts";
import { PodLosses, causeOf } from "./pod-losses.ts";
import type { World } from "./world.ts";

const CREATED = "2026-11-30T22:40:00Z";
const meta = (name: string, more: object = {}) => ({ name, uid: `uid-${name}`, resourceVersion: "1", creationTimestamp: CREATED, ...more });

function pod(status: object, more: object = {}): KubePod {
  const metadata = { ...meta("orders-a-1"), namespace: "default", labels: { "relevo.dev/instance": "orders-a" }, ...more };
  const parsed = parsePod({
    apiVersion: "v1",
    kind: "Pod",
    metadata,
    spec: { nodeName: "node-a", containers: [{ name: "main" }] },
    status: { phase: "Running", ...status },
  });
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.value;
}

function node(conditions: readonly object[]): KubeNode {
  const parsed = parseNode({ apiVersion: "v1", kind: "Node", metadata: meta("node-a"), status: { conditions } });
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.value;
}

const target = (reason: string) => ({ conditions: [{ type: "DisruptionTarget", status: "True", reason }] });
const SHORT = node([{ type: "MemoryPressure", status: "True", reason: "KubeletHasInsufficientMemory" }]);
const container = (state: object, restartCount = 0, lastState: object = {}) => ({
  containerStatuses: [{ name: "main", ready: true, restartCount, containerID: "c", state, lastState }],
});
const KILLED = { terminated: { exitCode: 137, reason: "OOMKilled" } };

test.each<[string, KubePod, KubeNode | undefined, readonly EvidenceReason[], string]>([
  [
    "the kubelet evicts it on a node short of memory",
    pod({ phase: "Failed", reason: "Evicted", ...target("TerminationByKubelet") }),
    SHORT,
    [],
    "memory_pressure",
  ],
  [
    "the kubelet says so and the node is well again",
    pod({ phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory. Threshold quantity: 100Mi" }),
    node([]),
    [],
    "memory_pressure",
  ],
  [
    "the kubelet evicts it for want of disk",
    pod({ phase: "Failed", reason: "Evicted", message: "The node was low on resource: ephemeral-storage." }),
    node([]),
    [],
    "other",
  ],
  ["its container outgrew its limit", pod({ phase: "Failed", ...container(KILLED) }), SHORT, [], "out_of_memory"],
  ["it is evicted, and nothing is known of the node", pod(target("EvictionByEvictionAPI")), node([]), [], "voluntary"],
  [
    "it is evicted ahead of a spot interruption",
    pod(target("EvictionByEvictionAPI")),
    node([]),
    ["node_deleting", "spot_interruption"],
    "spot",
  ],
  ["its node vanished after a spot interruption", pod(target("DeletionByPodGC")), undefined, ["spot_interruption"], "spot"],
  [
    "its machine shut down in order, announced",
    pod({ phase: "Failed", reason: "Terminated", ...target("TerminationByKubelet") }),
    node([]),
    ["machine_taken"],
    "spot",
  ],
  ["its node vanished and nobody said why", pod(target("DeletionByPodGC")), undefined, ["node_lost"], "other"],
  ["its drifted node was replaced past its budgets", pod({}), node([]), ["node_terminating_at"], "voluntary"],
  ["a more important pod took its place", pod(target("PreemptionByScheduler")), node([]), [], "other"],
  ["somebody deleted it", pod({}), node([]), [], "other"],
])("a pod is lost when %s (T9)", (_why, lost, at, findings, cause) => {
  expect(causeOf(lost, at, findings)).toBe(cause);
});

function counting(leaving: ReadonlySet<string> = new Set()) {
  const listeners: ((change: Change<KubePod>) => void)[] = [];
  const told: string[] = [];
  const losses = new PodLosses({
    world: {
      pods: { onChange: (listener: (change: Change<KubePod>) => void) => listeners.push(listener) },
      nodes: { get: () => node([]) },
    } as unknown as Pick<World, "pods" | "nodes">,
    findingsOf: () => [],
    poolOf: (instance) => (instance === "orders-a" ? "default/orders" : undefined),
    isLeaving: (instance) => leaving.has(instance),
    onLoss: (pool, cause) => told.push(`${pool} ${cause}`),
  });
  const change = (before: KubePod | undefined, after: KubePod | undefined, gone = after === undefined): void => {
    const { metadata } = (after ?? before) as KubePod;
    for (const listener of listeners) listener({ ...metadata, before, after, gone, problem: undefined });
  };
  return { losses, told, change };
}

test("a pod counts once, when its end is certain, and not again when its object goes", () => {
  const { losses, told, change } = counting();
  change(undefined, pod({}));
  change(pod({}), pod(target("EvictionByEvictionAPI")));
  change(pod(target("EvictionByEvictionAPI")), pod({ phase: "Failed", ...target("EvictionByEvictionAPI") }));
  change(pod({ phase: "Failed" }), undefined);
  expect(told).toEqual(["default/orders voluntary"]);
  expect(losses.of("default/orders")).toEqual({ memory_pressure: 0, out_of_memory: 0, spot: 0, voluntary: 1, other: 0 });
});

test("each end of a container for want of memory counts, though its pod stays", () => {
  const { losses, change } = counting();
  const running = { running: {} };
  change(pod(container(running)), pod(container(running, 1, KILLED)));
  change(pod(container(running, 1, KILLED)), pod(container(running, 1, KILLED)));
  change(pod(container(running, 1, KILLED)), pod(container(running, 2, KILLED)));
  change(pod(container(running, 2, KILLED)), pod(container(running, 3, { terminated: { exitCode: 1, reason: "Error" } })));
  expect(losses.of("default/orders").out_of_memory).toBe(2);
});

test("pods of an instance that leaves, of nobody's, and those that only left the selector are no losses", () => {
  const { told, change } = counting(new Set(["orders-a"]));
  change(pod({}), undefined);
  const ours = counting();
  ours.change(pod({}), undefined, false);
  ours.change(pod({}, { labels: { "relevo.dev/instance": "other" } }), undefined);
  expect([...told, ...ours.told]).toEqual([]);
});
