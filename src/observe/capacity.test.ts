import { describe, expect, test } from "vitest";
import { evidenceOf, finding, instance, node as nodeSnapshot, poolOf } from "../../test/builders/pool.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import type { Change, Informer } from "../kube/informer.ts";
import type { KubeNode, NodeClaim, NodePool } from "../kube/types.ts";
import type { NodeFinding } from "../plan/snapshot.ts";
import { CapacityMonitor } from "./capacity.ts";

const T0 = Date.UTC(2030, 0, 1);

/** A read model that the test fills. */
class FakeInformer<T extends { readonly metadata: { readonly name: string; readonly uid: string } }> {
  readonly #objects = new Map<string, T>();
  readonly #listeners: ((change: Change<T>) => void)[] = [];

  list = (): readonly T[] => [...this.#objects.values()];
  onChange = (listener: (change: Change<T>) => void): (() => void) => {
    this.#listeners.push(listener);
    return () => undefined;
  };

  put(after: T): void {
    const before = this.#objects.get(after.metadata.name);
    this.#objects.set(after.metadata.name, after);
    this.#tell(before, after);
  }

  remove(name: string): void {
    const before = this.#objects.get(name);
    this.#objects.delete(name);
    if (before) this.#tell(before, undefined);
  }

  #tell(before: T | undefined, after: T | undefined): void {
    const { name = "", uid = "" } = (after ?? before)?.metadata ?? {};
    const change: Change<T> = { namespace: undefined, name, uid, before, after, gone: after === undefined, problem: undefined };
    for (const listener of this.#listeners) listener(change);
  }
}

const meta = (name: string, labels: Readonly<Record<string, string>>, deletionTimestamp: number | null = null) => ({
  name,
  namespace: "",
  uid: `uid-${name}`,
  resourceVersion: "1",
  generation: 1,
  creationTimestamp: T0,
  deletionTimestamp,
  labels,
  annotations: {},
  ownerReferences: [],
});
const labelsOf = (zone: string) => ({
  "topology.kubernetes.io/zone": zone,
  "node.kubernetes.io/instance-type": "x",
  "karpenter.sh/capacity-type": "spot",
});
const aNode = (name: string, zone = "a", deletionTimestamp: number | null = null): KubeNode => ({
  metadata: meta(name, labelsOf(zone), deletionTimestamp),
  spec: { providerID: "", unschedulable: false, taints: [] },
  status: { conditions: [] },
});
const aClaim = (name: string, registered: boolean): NodeClaim => ({
  metadata: meta(name, { "karpenter.sh/nodepool": "spot", "karpenter.sh/capacity-type": "spot" }),
  spec: {
    requirements: [
      { key: "topology.kubernetes.io/zone", operator: "In", values: ["a"] },
      { key: "node.kubernetes.io/instance-type", operator: "In", values: ["x"] },
    ],
  },
  status: {
    nodeName: "",
    providerID: "",
    conditions: [{ type: "Registered", status: registered ? "True" : "Unknown", reason: "", lastTransitionTime: null }],
  },
});

function aMonitor() {
  const clock = new VirtualClock(T0 + 3_600_000);
  const nodes = new FakeInformer<KubeNode>();
  const nodeClaims = new FakeInformer<NodeClaim>();
  const nodePools = new FakeInformer<NodePool>();
  let noticed: ReadonlyMap<string, readonly NodeFinding[]> = new Map();
  const world = {
    nodes: nodes as unknown as Informer<KubeNode>,
    nodeClaims: nodeClaims as unknown as Informer<NodeClaim>,
    nodePools: nodePools as unknown as Informer<NodePool>,
  };
  const monitor = new CapacityMonitor({ world, noticed: () => noticed, clock });
  const counts = () =>
    monitor
      .view()
      .spots.map(({ spot, machines, losses, failedLaunches, launches }) => [spot.zone, machines, losses, failedLaunches, launches]);
  return {
    clock,
    nodes,
    nodeClaims,
    nodePools,
    monitor,
    counts,
    notice: (...names: readonly string[]) => {
      noticed = new Map(names.map((name) => [`uid-${name}`, [finding("spot_interruption", T0)]]));
    },
  };
}

describe("what is seen of capacity (S2)", () => {
  test("a node that was asked to go is tidied up, one that is just gone was lost", () => {
    const { nodes, counts } = aMonitor();
    for (const name of ["n1", "n2", "n3"]) nodes.put(aNode(name));
    nodes.put(aNode("n1", "a", T0));
    nodes.remove("n1");
    expect(counts()).toEqual([["a", 2, 0, 0, 0]]);
    nodes.remove("n2");
    expect(counts()).toEqual([["a", 1, 1, 0, 0]]);
  });

  test("a notice counts when it comes, and its node's end, its evidence and its duplicates count no more", () => {
    const { nodes, monitor, counts, notice } = aMonitor();
    for (const name of ["n1", "n2"]) nodes.put(aNode(name));
    notice("n1");
    expect(counts()).toEqual([["a", 1, 1, 0, 0]]);
    notice("n1", "unknown");
    const lost = instance("serving");
    const evidence = evidenceOf(lost.record, "spot_interruption", nodeSnapshot("n1"));
    monitor.note(poolOf({}, [{ ...lost, evidence: [evidence] }]));
    nodes.remove("n1");
    expect(counts()).toEqual([["a", 1, 1, 0, 0]]);
  });

  test("evidence that capacity was taken counts, and drift does not", () => {
    const { clock, nodes, monitor, counts } = aMonitor();
    for (const name of ["n1", "n2"]) nodes.put(aNode(name));
    const { record } = instance("serving");
    const evidence = [evidenceOf(record, "node_drifted", nodeSnapshot("n1")), evidenceOf(record, "node_lost", nodeSnapshot("n2"))];
    const seenNow = evidence.map((each) => ({ ...each, firstSeen: clock.now() }));
    monitor.note(poolOf({}, [{ ...instance("serving"), evidence: seenNow }]));
    expect(counts()).toEqual([["a", 1, 1, 0, 0]]);
  });

  test("a NodeClaim that goes before it registered was refused; one that registers was launched, once", () => {
    const { nodeClaims, counts } = aMonitor();
    nodeClaims.put(aClaim("c1", false));
    nodeClaims.remove("c1");
    nodeClaims.put(aClaim("c2", false));
    nodeClaims.put(aClaim("c2", true));
    nodeClaims.put(aClaim("c2", true));
    nodeClaims.remove("c2");
    expect(counts()).toEqual([["a", 0, 0, 1, 1]]);
  });

  test("nodes that are announced to go are avoided by name while they are there, and what is well goes anywhere", () => {
    const { nodes, monitor, notice } = aMonitor();
    for (const name of ["n1", "n2", "n3"]) nodes.put(aNode(name));
    nodes.put(aNode("n4", "b"));
    expect(monitor.placement()).toEqual({ avoid: { zones: [], instanceTypes: [], nodes: [] }, capacityType: null });
    notice("n1", "n2");
    expect(monitor.placement().avoid.nodes).toEqual(["n1", "n2"]);
    nodes.remove("n1");
    notice("n2");
    expect(monitor.view().placement.avoid.nodes).toEqual(["n1", "n2"]);
  });

  test("what was long ago is forgotten, spots of which nothing is left too", async () => {
    const { clock, nodes, counts, monitor } = aMonitor();
    nodes.put(aNode("n1"));
    nodes.put(aNode("n2", "b"));
    nodes.remove("n1");
    expect(counts().length).toBe(2);
    await clock.advance(61 * 60_000);
    expect(counts()).toEqual([["b", 1, 0, 0, 0]]);
    expect(monitor.placement()).toEqual({ avoid: { zones: [], instanceTypes: [], nodes: [] }, capacityType: null });
  });

  test("what NodePools let be made is known, zone by zone, and how long it takes is measured", () => {
    const { nodePools, nodeClaims, monitor } = aMonitor();
    nodePools.put({
      metadata: meta("spot", {}),
      spec: {
        limits: { nodes: "20" },
        template: { spec: { requirements: [{ key: "topology.kubernetes.io/zone", operator: "In", values: ["a", "b"] }] } },
      },
    });
    nodeClaims.put(aClaim("c1", true));
    const admitted = instance("admitted", { record: { createdAt: T0, phaseSince: T0 + 8_000 } });
    monitor.note(poolOf({}, [admitted]));
    monitor.note(poolOf({}, [admitted]));
    const { quotas, readyInMs } = monitor.view();
    expect([quotas.map(({ nodePool, limit, machines }) => [nodePool, limit, machines]), readyInMs]).toEqual([[["spot", 20, 1]], 8_000]);
  });

  test("how long it takes is not told by one that waited as a standby for hours, nor by a clock that was set back (D14)", () => {
    const readyAfter = (...phaseSince: readonly number[]): number => {
      const { monitor } = aMonitor();
      const replaced = { createdAt: T0, replaces: "a", purpose: "replace" as const };
      const all = phaseSince.map((since, index) => instance("admitted", { id: `i-${index}`, record: { ...replaced, phaseSince: since } }));
      monitor.note(poolOf({}, all));
      return monitor.view().readyInMs;
    };
    expect(readyAfter(T0 + 5 * 3_600_000, T0 - 3_600_000)).toBe(readyAfter());
    expect(readyAfter(T0 + 5 * 3_600_000, T0 + 9_000, T0 - 3_600_000)).toBe(9_000);
  });
});
