/** What needs a program of the distribution: a pod in another language, and kubectl acting on real processes. */
import { execFile } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock, systemIds, systemRandom } from "../kernel/system.ts";
import { DEPLOYMENTS, PODS } from "../kube/resources.ts";
import { type EmbeddedCluster, startEmbeddedCluster } from "./cluster.ts";
import { isReady, type PodView } from "./controllers/views.ts";
import { deployment } from "./testing/cluster.ts";

let dir: string;
let cluster: EmbeddedCluster;

beforeEach(async () => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), "relevo-real-")));
  cluster = await startEmbeddedCluster({ dir, clock: systemClock, ids: systemIds, random: systemRandom, nodes: 3 });
  await cluster.provisioner.whenUp();
});

afterEach(async () => {
  await cluster.close();
  rmSync(dir, { recursive: true, force: true });
});

/** Never the synchronous kind: the API server lives in this process. */
const kubectl = async (...args: readonly string[]): Promise<string> => {
  const env = { ...process.env, KUBECONFIG: cluster.kubeconfigPath };
  return (await promisify(execFile)("kubectl", ["--cache-dir", join(dir, "cache"), ...args], { env, timeout: 60_000 })).stdout;
};
const readyPods = (): readonly PodView[] =>
  (cluster.store.list(PODS).items as readonly PodView[]).filter((pod) => isReady(pod) && pod.metadata.deletionTimestamp === undefined);

test("pods in Python answer on their own addresses, and kubectl drain moves them off a node without touching the others", async () => {
  const command = ["python3", "-S", "-u", "-m", "http.server", "8080", "--bind", "$(POD_IP)"];
  const containers = [
    {
      name: "main",
      image: "python",
      command,
      ports: [{ containerPort: 8080 }],
      readinessProbe: { httpGet: { port: 8080 }, periodSeconds: 1 },
    },
  ];
  await cluster.api.create(DEPLOYMENTS, deployment("web", 3, { pod: { terminationGracePeriodSeconds: 2, containers } }), {
    namespace: "default",
  });
  await kubectl("rollout", "status", "deployment/web", "--timeout=30s");
  const before = readyPods();
  const statuses = await Promise.all(before.map(async (pod) => (await fetch(`http://${pod.status?.podIP}:8080/`)).status));
  expect(statuses).toEqual([200, 200, 200]);

  const node = before[0]?.spec.nodeName ?? "";
  await kubectl("drain", node, "--timeout=30s");
  await kubectl("rollout", "status", "deployment/web", "--timeout=30s");
  const after = readyPods();
  expect(after).toHaveLength(3);
  expect(after.map((pod) => pod.spec.nodeName)).not.toContain(node);
  const kept = before.filter((pod) => pod.spec.nodeName !== node).map((pod) => pod.metadata.uid);
  expect(after.map((pod) => pod.metadata.uid)).toEqual(expect.arrayContaining(kept));
  expect(await kubectl("logs", "deployment/web", "--tail=1")).toContain("GET / HTTP/1.1");
});
