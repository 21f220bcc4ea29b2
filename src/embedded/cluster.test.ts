/** Real processes: what only they can show. Everything else about the cluster is tested under virtual time. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock, systemIds, systemRandom } from "../kernel/system.ts";
import { CONFIG_MAPS, DEPLOYMENTS, LEASES, NODES, PODS } from "../kube/resources.ts";
import { type EmbeddedCluster, type EmbeddedClusterOptions, startEmbeddedCluster } from "./cluster.ts";
import { isReady, type PodSpec, type PodView } from "./controllers/views.ts";
import { deployment } from "./testing/cluster.ts";

const LIMIT_MS = 15_000;

/** Answers with who it is; says so on its output; ends in order on SIGTERM. */
const SERVER = `
const { createServer } = require("node:http");
const { appendFileSync } = require("node:fs");
const note = (text) => process.env.NOTES && appendFileSync(process.env.NOTES, text + "\\n");
createServer((request, response) => {
  if (request.url === "/crash") return process.exit(3);
  if (request.url === "/child") {
    const child = require("node:child_process").spawn("sleep", ["600"], { stdio: "ignore" });
    return response.end(String(child.pid));
  }
  response.end(JSON.stringify({ pid: process.pid, ip: process.env.POD_IP, name: process.env.HOSTNAME, dir: process.env.POD_DIR, port: process.env.PORT }));
}).listen(Number(process.env.PORT), process.env.HOST, () => console.log("listening on " + process.env.HOST));
process.on("SIGTERM", () => { note("term"); setTimeout(() => { note("exit"); process.exit(0); }, 200); });
`;

let dir: string;
let cluster: EmbeddedCluster | undefined;

beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), "relevo-cluster-")));
});

afterEach(async () => {
  await cluster?.close();
  cluster = undefined;
  rmSync(dir, { recursive: true, force: true });
});

async function start(options: Partial<EmbeddedClusterOptions> = {}): Promise<EmbeddedCluster> {
  cluster = await startEmbeddedCluster({ dir, clock: systemClock, ids: systemIds, random: systemRandom, nodes: 1, ...options });
  await cluster.provisioner.whenUp();
  return cluster;
}

async function until<T>(sentence: string, look: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
  const end = systemClock.monotonic() + LIMIT_MS;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (systemClock.monotonic() > end) throw new Error(`not within ${LIMIT_MS} ms: ${sentence}`);
    await systemClock.sleep(15);
  }
}

const container = (change: Partial<PodSpec["containers"][number]> = {}): PodSpec["containers"][number] => ({
  name: "main",
  image: "example",
  command: ["node", "-e", SERVER],
  ports: [{ containerPort: 8080 }],
  readinessProbe: { httpGet: { path: "/", port: 8080 }, periodSeconds: 1 },
  ...change,
});
const deploy = (replicas: number, change: Partial<PodSpec["containers"][number]> = {}, pod: Partial<PodSpec> = {}) =>
  cluster?.api.create(
    DEPLOYMENTS,
    deployment("web", replicas, { pod: { terminationGracePeriodSeconds: 5, containers: [container(change)], ...pod } }),
    { namespace: "default" },
  );
const pods = (): readonly PodView[] => (cluster?.store.list(PODS).items ?? []) as readonly PodView[];
const readyPods = (count: number) =>
  until(`${count} pods are ready`, () => {
    const ready = pods().filter((pod) => isReady(pod) && pod.metadata.deletionTimestamp === undefined);
    return ready.length === count && ready;
  });
const portOf = (pod: PodView): string => pod.metadata.annotations?.["embedded.relevo.dev/port-8080"] ?? "8080";
const ask = async (pod: PodView, path = "/"): Promise<string> =>
  await (await fetch(`http://${pod.status?.podIP}:${portOf(pod)}${path}`, { signal: AbortSignal.timeout(2_000) })).text();
const identity = async (pod: PodView) =>
  JSON.parse(await ask(pod)) as {
    readonly pid: number;
    readonly ip: string;
    readonly name: string;
    readonly dir: string;
    readonly port: string;
  };

/** A process that ended but is not reaped yet is gone too. */
function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return true;
  }
  if (process.platform !== "linux" || !existsSync(`/proc/${pid}/stat`)) return process.platform === "linux";
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
}

test("a Deployment becomes processes that answer on addresses of their own, and nothing is left after close", async () => {
  await start({ nodes: 2 });
  await deploy(2);
  const ready = await readyPods(2);
  const seen = await Promise.all(ready.map(identity));
  const helpers = ["node-a1", "node-b1"].map(
    (name) => cluster?.runtime.groupOf(cluster.fleet.machine(name) ?? { name, machineId: "" }) ?? 0,
  );

  expect(seen.map(({ name, ip }) => [name, ip])).toEqual(ready.map((pod) => [pod.metadata.name, pod.status?.podIP]));
  expect(new Set(seen.map(({ pid }) => pid)).size).toBe(2);
  if (process.platform === "linux") expect(new Set(seen.map(({ ip }) => ip)).size).toBe(2);
  await cluster?.close();
  await until("nothing is left", () => [...helpers, ...seen.map(({ pid }) => pid)].every(isGone));
});

test("a deleted pod runs its preStop, then gets SIGTERM and its grace; its folder goes with it", async () => {
  await start();
  const notes = join(dir, "notes");
  await deploy(1, {
    env: [{ name: "NOTES", value: notes }],
    lifecycle: { preStop: { exec: { command: ["sh", "-c", `echo prestop >> ${notes}`] } } },
  });
  const [pod] = await readyPods(1);
  if (pod === undefined) throw new Error("no pod");
  const { dir: podDir } = await identity(pod);
  expect(existsSync(podDir)).toBe(true);
  await cluster?.api.delete({ type: DEPLOYMENTS, namespace: "default", name: "web" });
  await until("the pod is gone", () => pods().length === 0);

  expect(readFileSync(notes, "utf8")).toBe("prestop\nterm\nexit\n");
  expect(existsSync(podDir)).toBe(false);
});

test("a process that crashes starts again under a new container id, and its logs are kept apart", async () => {
  await start();
  await deploy(1);
  const [before] = await readyPods(1);
  if (before === undefined) throw new Error("no pod");
  await ask(before, "/crash").catch(() => undefined);
  const after = await until("it was restarted", () =>
    pods().find((pod) => isReady(pod) && pod.status?.containerStatuses?.[0]?.restartCount === 1),
  );
  const [status] = after.status?.containerStatuses ?? [];

  expect(after.metadata.uid).toBe(before.metadata.uid);
  expect(status?.containerID).not.toBe(before.status?.containerStatuses?.[0]?.containerID);
  expect(status?.lastState.terminated).toMatchObject({ exitCode: 3, reason: "Error" });
  const log = async (query: string): Promise<string> =>
    await (await fetch(`${cluster?.url}/api/v1/namespaces/default/pods/${after.metadata.name}/log?container=main${query}`)).text();
  const line = `listening on ${after.status?.podIP}\n`;
  expect([await log(""), await log("&previous=true"), await log("&tailLines=1")]).toEqual([line, line, line]);
});

test("a log that grows is rotated once and stays bounded", async () => {
  await start({ maxLogBytes: 10_000 });
  const chatter = "setInterval(() => console.log('x'.repeat(99)), 2)";
  const spec = { terminationGracePeriodSeconds: 1, containers: [{ name: "main", command: ["node", "-e", chatter] }] };
  await cluster?.api.create(PODS, { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec }, { namespace: "default" });
  const uid = cluster?.store.get({ type: PODS, namespace: "default", name: "p" }).metadata.uid ?? "";
  const path = cluster?.runtime.logPath({ namespace: "default", name: "p", uid }, "main", 0) ?? "";
  await until("it was rotated", () => existsSync(`${path}.1`));

  const tail = async () => await (await fetch(`${cluster?.url}/api/v1/namespaces/default/pods/p/log?container=main&tailLines=2`)).text();
  await until("the container writes on", async () => /^(x{99}\n){2}/.test(await tail()));
});

test("what a container's process started ends with it", async () => {
  await start();
  await deploy(1);
  const [pod] = await readyPods(1);
  if (pod === undefined) throw new Error("no pod");
  const child = Number(await ask(pod, "/child"));
  expect(isGone(child)).toBe(false);
  await ask(pod, "/crash").catch(() => undefined);
  if (process.platform === "linux") await until("the child is gone", () => isGone(child));
});

test("killing a node takes all of its processes in one stroke, and only those", async () => {
  await start({ nodes: 2, kubelet: { heartbeatMs: 100 }, controlPlane: { leaseGraceMs: 1_000 }, provisioner: { vanishAfterMs: 60_000 } });
  await deploy(4);
  const ready = await readyPods(4);
  const seen = await Promise.all(ready.map(async (pod) => ({ node: pod.spec.nodeName, ...(await identity(pod)) })));
  const killed = await fetch(`${cluster?.adminUrl}/embedded/v1/nodes/node-a1/kill`, { method: "POST" });
  expect(await killed.json()).toEqual({ nodeName: "node-a1", killed: true });

  await until("they are gone", () => seen.filter(({ node }) => node === "node-a1").every(({ pid }) => isGone(pid)));
  expect(seen.filter(({ node }) => node === "node-b1").map(({ pid }) => isGone(pid))).toEqual([false, false]);
  expect(pods().filter(({ spec }) => spec.nodeName === "node-a1")).toHaveLength(2);
  await until("the node is not ready", () => cluster?.provisioner.nodes().find(({ name }) => name === "node-a1")?.isReady === false);
});

test("a helper that dies is an unannounced node death: the lease is no longer renewed, and its pods are not touched", async () => {
  await start({ kubelet: { heartbeatMs: 100 }, controlPlane: { leaseGraceMs: 1_000 } });
  await deploy(1);
  const [pod] = await readyPods(1);
  if (pod === undefined) throw new Error("no pod");
  const { pid } = await identity(pod);
  const helper = cluster?.runtime.groupOf(cluster.fleet.machine("node-a1") ?? { name: "", machineId: "" });
  process.kill(helper ?? 0, "SIGKILL");
  await until("the node is not ready", () => cluster?.provisioner.nodes()[0]?.isReady === false);
  const renewed = () => JSON.stringify(cluster?.store.get({ type: LEASES, namespace: "kube-node-lease", name: "node-a1" }));
  const last = renewed();
  await systemClock.sleep(300);

  expect(renewed()).toBe(last);
  expect(pods()[0]?.status?.containerStatuses?.[0]?.state.running).toBeDefined();
  expect(isGone(pid)).toBe(false);
  await cluster?.close();
  await until("the orphan is gone too", () => isGone(pid));
});

test("a node that stands still falls silent, and is back when it goes on", async () => {
  await start({ kubelet: { heartbeatMs: 100 }, controlPlane: { leaseGraceMs: 1_000 } });
  await deploy(1);
  await readyPods(1);
  const group = cluster?.runtime.groupOf(cluster.fleet.machine("node-a1") ?? { name: "", machineId: "" }) ?? 0;
  process.kill(-group, "SIGSTOP");
  await until("the node is not ready", () => cluster?.provisioner.nodes()[0]?.isReady === false);
  process.kill(-group, "SIGCONT");
  await until("the node is ready", () => cluster?.provisioner.nodes()[0]?.isReady === true);
  const [pod] = await readyPods(1);

  expect(pod?.status?.containerStatuses?.[0]?.restartCount).toBe(0);
});

test("volumes are folders of the pod, and where pods share an address each has a port of its own", async () => {
  await start({ addressing: "own-port" });
  await cluster?.api.create(
    CONFIG_MAPS,
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings" }, data: { "app.conf": "a = 1\n" } },
    { namespace: "default" },
  );
  await deploy(
    2,
    {},
    {
      volumes: [
        { name: "scratch", emptyDir: {} },
        { name: "config", configMap: { name: "settings" } },
      ],
    },
  );
  const ready = await readyPods(2);
  const seen = await Promise.all(ready.map(identity));

  expect(ready.map((pod) => pod.status?.podIP)).toEqual(["127.0.0.1", "127.0.0.1"]);
  expect(seen.map(({ port }) => port)).toEqual(ready.map(portOf));
  expect(new Set(seen.map(({ port }) => port)).size).toBe(2);
  for (const { dir: podDir } of seen) {
    expect(existsSync(join(podDir, "scratch"))).toBe(true);
    expect(readFileSync(join(podDir, "config", "app.conf"), "utf8")).toBe("a = 1\n");
  }
});

test("a folder is used by one cluster at a time", async () => {
  const first = await start();
  await expect(startEmbeddedCluster({ dir, clock: systemClock, ids: systemIds, random: systemRandom, nodes: 1 })).rejects.toMatchObject({
    code: "embedded_dir_in_use",
  });
  await first.close();
  const second = await start();

  expect(second.uid).not.toBe(first.uid);
  await until("its node is up", () => second.store.list(NODES).items.length === 1);
});

test("when the process of the cluster dies, everything that it started dies with it", async () => {
  const script = `
    const { startEmbeddedCluster } = await import(${JSON.stringify(new URL("./cluster.ts", import.meta.url).href)});
    const { systemClock, systemIds, systemRandom } = await import(${JSON.stringify(new URL("../kernel/system.ts", import.meta.url).href)});
    const cluster = await startEmbeddedCluster({ dir: ${JSON.stringify(dir)}, clock: systemClock, ids: systemIds, random: systemRandom, nodes: 1 });
    await cluster.api.create(${JSON.stringify(PODS)}, { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec: { containers: [{ name: "main", command: ["sh", "-c", "echo $$; exec sleep 600"] }] } }, { namespace: "default" });
    for (;;) {
      const pod = cluster.store.find({ type: ${JSON.stringify(PODS)}, namespace: "default", name: "p" });
      if (pod.status.containerStatuses?.[0]?.state.running) break;
      await systemClock.sleep(20);
    }
    const log = await fetch(cluster.url + "/api/v1/namespaces/default/pods/p/log?container=main&follow=true");
    for await (const chunk of log.body) {
      console.log(JSON.stringify([cluster.runtime.groupOf(cluster.fleet.machine("node-a1")), Number(new TextDecoder().decode(chunk))]));
    }`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  const pids = await new Promise<readonly number[]>((resolve) => child.stdout.once("data", (line) => resolve(JSON.parse(String(line)))));
  expect(pids.map(isGone)).toEqual([false, false]);
  child.kill("SIGKILL");

  await until("all are gone", () => pids.every(isGone));
});
