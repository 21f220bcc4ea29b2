/** What needs a program of the distribution: a pod in another language, and kubectl acting on real processes. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
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

describe("a container is all its processes, wherever they went", () => {
  /** Holds more and more in a child that leads a session of its own, as a browser under a worker does. */
  const GROWS = `
const { spawn } = require("node:child_process");
const grow = "const held = []; setInterval(() => held.push(Buffer.alloc(20e6, 1)), 100)";
const child = spawn(process.execPath, ["-e", process.env.GROW === "no" ? "setInterval(() => {}, 1e6)" : grow], { detached: true, stdio: "ignore" });
console.log(child.pid);
setInterval(() => {}, 1e6);
`;
  const run = (env: readonly { readonly name: string; readonly value: string }[]) => {
    const containers = [{ name: "main", image: "node", command: ["node", "-e", GROWS], env, resources: { limits: { memory: "250Mi" } } }];
    return cluster.api.create(DEPLOYMENTS, deployment("grow", 1, { pod: { terminationGracePeriodSeconds: 1, containers } }), {
      namespace: "default",
    });
  };
  const childOf = async (...args: readonly string[]) => Number(await kubectl("logs", "deployment/grow", ...args));
  const status = () => (cluster.store.list(PODS).items as readonly PodView[])[0]?.status?.containerStatuses?.[0];
  const isAlive = (pid: number) => existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));

  test.skipIf(process.platform !== "linux")(
    "above its limit of memory it is ended with all of them and starts again, as a kubelet tells it",
    async () => {
      await run([]);
      await expect.poll(() => status()?.restartCount, { timeout: 30_000, interval: 50 }).toBe(1);
      expect(status()?.lastState.terminated).toMatchObject({ reason: "OOMKilled", exitCode: 137 });
      const before = await childOf("--previous");
      expect([before > 0, isAlive(before)]).toEqual([true, false]);
      expect(await kubectl("get", "pods")).toMatch(/ 1 \(/);
    },
  );

  test.skipIf(process.platform !== "linux")("what is below its limit is left alone, and goes with its machine", async () => {
    await run([{ name: "GROW", value: "no" }]);
    await expect.poll(() => readyPods().length, { timeout: 20_000 }).toBe(1);
    await expect.poll(() => childOf(), { timeout: 10_000 }).toBeGreaterThan(0);
    const child = await childOf();
    expect([isAlive(child), status()?.restartCount]).toEqual([true, 0]);
    await cluster.provisioner.kill(readyPods()[0]?.spec.nodeName ?? "");
    await expect.poll(() => isAlive(child), { timeout: 5_000 }).toBe(false);
  });
});
