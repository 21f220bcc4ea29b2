/** Whatever happens to the nodes: when it is over the cluster is what its objects say, and nothing is left over. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { isConflict, isNotFound } from "../kube/api.ts";
import { DEPLOYMENTS, LEASES, NODE_CLAIMS, NODES, PODS, REPLICA_SETS } from "../kube/resources.ts";
import { RelevoError } from "../kernel/errors.ts";
import { isReady, type NodeView } from "./controllers/views.ts";
import { testCluster, type TestCluster } from "./testing/cluster.ts";

const MIN_NODES = 3;
const WEB = { type: DEPLOYMENTS, namespace: "default", name: "web" };

type Happening = (cluster: TestCluster, pick: number) => Promise<unknown> | void;

const HAPPENINGS: Readonly<Record<string, Happening>> = {
  kill: (cluster, pick) => cluster.provisioner.kill(nodeName(cluster, pick)),
  interrupt: (cluster, pick) => void cluster.provisioner.interrupt(nodeName(cluster, pick), { deadlineMs: 1_000 + pick }),
  drift: (cluster, pick) => cluster.provisioner.drift(nodeName(cluster, pick)),
  returnSame: (cluster, pick) => cluster.provisioner.returnNode(nodeName(cluster, pick), { sameUid: true }),
  returnAnew: (cluster, pick) => cluster.provisioner.returnNode(nodeName(cluster, pick), { sameUid: false }),
  deleteNode: (cluster, pick) => cluster.api.delete({ type: NODES, name: nodeName(cluster, pick) }),
  deleteClaim: (cluster, pick) =>
    cluster.api.delete({ type: NODE_CLAIMS, name: one(cluster.store.list(NODE_CLAIMS).items, pick)?.metadata.name ?? "" }),
  removeNode: async (cluster, pick) => {
    const name = nodeName(cluster, pick);
    await cluster.api.patch({ type: NODES, name }, { metadata: { finalizers: null } });
    await cluster.api.delete({ type: NODES, name });
  },
  cordon: (cluster, pick) => cluster.api.patch({ type: NODES, name: nodeName(cluster, pick) }, { spec: { unschedulable: true } }),
  freeze: (cluster, pick) => freeze(cluster, nodeName(cluster, pick), true),
  thaw: (cluster, pick) => freeze(cluster, nodeName(cluster, pick), false),
  crash: (cluster, pick) => cluster.runtime.crash(one(cluster.runtime.containers(), pick)?.start.id ?? "", pick % 3),
  sicken: (cluster, pick) => cluster.runtime.setHealthy(one(cluster.runtime.containers(), pick)?.start.id ?? "", false),
  scale: (cluster, pick) => cluster.api.patch(WEB, { spec: { replicas: 1 + (pick % 6) } }),
  rollOut: (cluster, pick) => cluster.api.patch(WEB, { spec: { template: { metadata: { annotations: { version: String(pick) } } } } }),
  deletePod: (cluster, pick) =>
    cluster.api.delete({ type: PODS, namespace: "default", name: one(cluster.pods(), pick)?.metadata.name ?? "" }),
  forcePod: (cluster, pick) =>
    cluster.api.delete(
      { type: PODS, namespace: "default", name: one(cluster.pods(), pick)?.metadata.name ?? "" },
      { gracePeriodSeconds: 0 },
    ),
  recreate: async (cluster) => {
    await cluster.api.delete(WEB);
    await cluster.deploy("web", 3);
  },
};

const one = <T>(items: readonly T[], pick: number): T | undefined => items[pick % Math.max(1, items.length)];
const nodeName = (cluster: TestCluster, pick: number): string => one(cluster.provisioner.nodes(), pick)?.name ?? "none";

function freeze(cluster: TestCluster, name: string, isFrozen: boolean): void {
  const machine = cluster.fleet.machine(name);
  if (machine !== undefined) cluster.runtime.setFrozen(machine, isFrozen);
}

/** That there is nothing to act upon, or that the API says no, is no fault. */
async function happen(cluster: TestCluster, name: string, pick: number): Promise<void> {
  try {
    await HAPPENINGS[name]?.(cluster, pick);
  } catch (error) {
    const isExpected = isNotFound(error) || isConflict(error) || (error instanceof RelevoError && /^(node_|kube_)/.test(error.code));
    if (!isExpected) throw error;
  }
}

async function heal(cluster: TestCluster): Promise<void> {
  for (const { name } of cluster.provisioner.nodes()) freeze(cluster, name, false);
  for (const node of cluster.store.list(NODES).items as readonly NodeView[]) {
    if (node.spec.unschedulable === true)
      await cluster.api.patch({ type: NODES, name: node.metadata.name }, { spec: { unschedulable: null } });
  }
  for (const container of cluster.runtime.containers()) cluster.runtime.setHealthy(container.start.id, true);
}

const wanted = (cluster: TestCluster): number => (cluster.store.get(WEB)["spec"] as { readonly replicas: number }).replicas;

function isCalm(cluster: TestCluster): boolean {
  const nodes = cluster.store.list(NODES).items as readonly NodeView[];
  const areNodesWell =
    nodes.length >= MIN_NODES &&
    nodes.every((node) => isReady(node) && node.metadata.deletionTimestamp === undefined && node.spec.taints === undefined);
  return areNodesWell && cluster.pods().length === wanted(cluster) && cluster.readyPods().length === wanted(cluster);
}

function expectNothingLeftOver(cluster: TestCluster): void {
  const pods = cluster.pods();
  const nodes = cluster.store.list(NODES).items as readonly NodeView[];
  const running = cluster.runtime.containers().map(({ start }) => `process://${start.id}`);
  expect(running.toSorted()).toEqual(pods.map((pod) => pod.status?.containerStatuses?.[0]?.containerID ?? "").toSorted());
  expect(new Set(pods.map((pod) => pod.status?.podIP)).size).toBe(pods.length);
  expect(cluster.store.list(NODE_CLAIMS).items).toHaveLength(nodes.length);
  expect(cluster.store.list(LEASES).items.map(({ metadata }) => metadata.name)).toEqual(nodes.map(({ metadata }) => metadata.name));
  const sizes = cluster.store.list(REPLICA_SETS).items.map((set) => (set["spec"] as { readonly replicas: number }).replicas);
  expect(sizes.filter((size) => size > 0)).toEqual([wanted(cluster)]);
}

test("after any sequence of faults the cluster converges to what its objects say", async () => {
  const aStory = fc.array(fc.record({ what: fc.constantFrom(...Object.keys(HAPPENINGS)), pick: fc.nat(10_000), thenMs: fc.nat(6_000) }), {
    minLength: 1,
    maxLength: 14,
  });
  await fc.assert(
    fc.asyncProperty(aStory, fc.nat(1_000), async (story, seed) => {
      const problems: unknown[] = [];
      const cluster = await testCluster({
        seed,
        nodes: MIN_NODES,
        provisioner: { disruptionIntervalMs: 2_000, consolidateAfterMs: 5_000, vanishAfterMs: 6_000 },
        controlPlane: { recordEvents: false },
        log: (level, message, fields) => {
          if (level === "error") problems.push({ message, ...fields });
        },
      });
      await cluster.deploy("web", 3);
      for (const { what, pick, thenMs } of story) {
        await happen(cluster, what, pick);
        await cluster.clock.advance(thenMs);
      }
      await heal(cluster);
      await cluster.until("it is calm", () => isCalm(cluster), 900_000);
      await cluster.clock.advance(60_000);
      await cluster.until("it is calm", () => isCalm(cluster), 900_000);
      expectNothingLeftOver(cluster);
      expect(problems).toEqual([]);
      await cluster.close();
    }),
    { numRuns: Number(process.env["RELEVO_RUNS"] ?? 12) },
  );
});
