import { expect, test } from "vitest";
import type { NodeState, PodProtection } from "../server/control-plane.ts";
import { aPool, anInstance, FakeControlPlane, type FakeState, NOON } from "../server/testing/fake-control-plane.ts";
import { runCli } from "./testing/run-cli.ts";

const POD: PodProtection = {
  instance: "orders-a",
  pod: "orders-a-pod",
  uid: "uid-a",
  node: "node-a",
  provisioner: "karpenter",
  owners: ["ReplicaSet orders-a-7d", "Deployment orders-a"],
  isOwned: true,
  isMarked: true,
  marks: { "karpenter.sh/do-not-disrupt": true, "cluster-autoscaler.kubernetes.io/safe-to-evict": true },
};
const NODE: NodeState = {
  name: "node-a",
  uid: "node-a-uid",
  zone: null,
  instanceType: null,
  capacityType: null,
  machineId: "kwok://node-a",
  ready: true,
  unschedulable: false,
  cordonedByUs: false,
  deleting: false,
  owner: null,
  findings: [],
  instances: [],
};
const REPLACE = ["verify", "disruption", "orders", "--replace", "node-a", "--gateway", "http://gateway.invalid/"];

function verify(
  state: Partial<FakeState>,
  args: readonly string[] = ["verify", "disruption", "orders"],
  answer: () => Promise<Response> = () => Promise.reject(new Error("away")),
) {
  const fake = new FakeControlPlane({ pools: [aPool()], nodes: [NODE], protection: [POD], instances: [anInstance("orders-a")], ...state });
  return runCli(args, { fake, admin: answer }).then((run) => ({ ...run, calls: fake.calls }));
}

test("without --replace it reads the protection of each live pod by its owners, tells its level, and changes nothing", async () => {
  expect(await verify({})).toEqual({
    code: 0,
    err: "",
    out: [
      "pool default/orders; level: real API server with simulated nodes",
      "  orders-a-pod: ReplicaSet orders-a-7d → Deployment orders-a; on node-a (karpenter)",
      "holds  each live pod belongs to an object that Relevo made, by its owners' UIDs: all 1",
      "holds  each live pod carries Relevo's own mark: all 1",
      "holds  each live pod carries the marks that others read: all 1",
      "verdict: held",
      "",
    ].join("\n"),
    calls: [],
  });
});

test("a pod without a mark or of somebody else fails: exit code 1", async () => {
  const stranger = { ...POD, pod: "orders-b-pod", isOwned: false, marks: { ...POD.marks, "karpenter.sh/do-not-disrupt": false } };
  const { code, out } = await verify({ protection: [POD, stranger] });
  expect(code).toBe(1);
  expect(out.split("\n").filter((line) => line.startsWith("FAILS"))).toEqual([
    "FAILS  each live pod belongs to an object that Relevo made, by its owners' UIDs: not so: orders-b-pod",
    "FAILS  each live pod carries the marks that others read: not so: orders-b-pod",
  ]);
});

test("where no pod is live nothing is claimed: exit code 3", async () => {
  const { code, out } = await verify({ protection: [] }, ["verify", "disruption", "orders", "-o", "json"]);
  expect([code, JSON.parse(out)]).toMatchObject([3, { verdict: "nothing shown", nothingShown: ["no pod of the pool is live"] }]);
});

test.each([
  ["the service does not answer", {}, 3, "verify_refused"],
  ["nothing serves on the node", { instances: [] }, 3, "verify_refused"],
  ["only one serves", { pools: [aPool({ serving: 1 })] }, 3, "verify_refused"],
  ["the pool is frozen", { pools: [aPool({ freeze: { until: NOON + 1_000, why: "audit", by: "bob" } })] }, 4, "pool_frozen"],
] as const)("--replace refuses before it changes anything when %s", async (_, state, code, error) => {
  const run = await verify(state as Partial<FakeState>, [...REPLACE, "-o", "json"]);
  expect([run.code, run.err.includes(error), run.calls]).toEqual([code, true, []]);
});

test("--replace needs to know where the requests go", async () => {
  const { code, err } = await verify({}, ["verify", "disruption", "orders", "--replace", "node-a"]);
  expect([code, err.includes("--gateway")]).toEqual([2, true]);
});
