/**
 * The embedded cluster's API: object writes per second in process and over HTTP, each with 50 selective watchers, and the memory that 10,000 pods take.
 * Prints one JSON document. Targets: at least 20,000 writes/s in process, 2,000/s over HTTP, RSS at most 300 MB.
 *
 * A write is a status patch of a pod that looks like a real one (a rotation of phase and conditions, so that none is a no-op); each watcher selects by
 * node or by label and must have heard of exactly its own pods. The server over HTTP is a process of its own; client and server share the machine.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { HOLDS_MUCH } from "../src/cli/processes/node-flags.ts";
import { startEmbeddedApi } from "../src/embedded/http/server.ts";
import { bootstrapCluster } from "../src/embedded/store/bootstrap.ts";
import { directKubeApi } from "../src/embedded/store/direct-api.ts";
import { ObjectStore } from "../src/embedded/store/object-store.ts";
import { systemClock, systemIds } from "../src/kernel/system.ts";
import type { KubeApi, KubeObjectDraft } from "../src/kube/api.ts";
import { httpKubeApi } from "../src/kube/http-api.ts";
import { PODS } from "../src/kube/resources.ts";

const WATCHERS = 50;
const NODES = 50;
const SMALL_POPULATION = 1_000;
const LARGE_POPULATION = 10_000;
const IN_PROCESS_WRITES = 60_000;
const HTTP_WRITES = 20_000;
const CONNECTIONS = 32;
const WARM_UP_WRITES = 2_000;
const TARGET = { inProcessPerS: 20_000, httpPerS: 2_000, rssMb: 300 };

if (process.argv[2] === "serve") await serve();
else await main();

async function main(): Promise<void> {
  const inProcess = await measureInProcess();
  const http = await measureHttp();
  const rssMb = await measureMemory();
  const misheard = inProcess.misheard + http.misheard;
  const result = {
    bench: "embedded-api",
    inProcess: { ...inProcess, target: TARGET.inProcessPerS, ratio: rounded(inProcess.writesPerS / TARGET.inProcessPerS) },
    http: { ...http, target: TARGET.httpPerS, ratio: rounded(http.writesPerS / TARGET.httpPerS) },
    memory: { pods: LARGE_POPULATION, rssMb, target: TARGET.rssMb, ratio: rounded(rssMb / TARGET.rssMb) },
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
  if (misheard > 0) process.exitCode = 1;
}

interface Measured {
  readonly writesPerS: number;
  readonly writes: number;
  readonly watchers: number;
  readonly eventsHeard: number;
  /** Watchers that did not hear exactly what they selected. */
  readonly misheard: number;
}

async function measureInProcess(): Promise<Measured & { readonly cpuMicrosPerWrite: number }> {
  const api = directKubeApi(freshStore());
  await populate(api, SMALL_POPULATION);
  const before = usageOfThisProcess().cpuMicros;
  const measured = await measure(api, IN_PROCESS_WRITES, 1);
  const cpuMicros = usageOfThisProcess().cpuMicros - before;
  return { ...measured, cpuMicrosPerWrite: Math.round(cpuMicros / (IN_PROCESS_WRITES + WARM_UP_WRITES)) };
}

/** The CPU time of a write tells more than the rate where other work shares the machine. */
async function measureHttp(): Promise<Measured & { readonly serverCpuMicrosPerWrite: number; readonly clientCpuMicrosPerWrite: number }> {
  const server = await startServer();
  const api = httpKubeApi({ baseUrl: server.url });
  try {
    await populate(api, SMALL_POPULATION);
    const before = { server: (await server.usage()).cpuMicros, client: usageOfThisProcess().cpuMicros };
    const measured = await measure(api, HTTP_WRITES, CONNECTIONS);
    const clientCpuMicros = usageOfThisProcess().cpuMicros - before.client;
    const writes = HTTP_WRITES + WARM_UP_WRITES;
    return {
      ...measured,
      serverCpuMicrosPerWrite: Math.round(((await server.usage()).cpuMicros - before.server) / writes),
      clientCpuMicrosPerWrite: Math.round(clientCpuMicros / writes),
    };
  } finally {
    await api.close();
    await server.stop();
  }
}

/** RSS of a server process that holds the pods after three changes of each, and answers lists of all of them. */
async function measureMemory(): Promise<number> {
  const server = await startServer();
  const api = httpKubeApi({ baseUrl: server.url });
  try {
    await populate(api, LARGE_POPULATION);
    for (let round = 0; round < 3; round += 1) {
      await inLanes(CONNECTIONS, LARGE_POPULATION, (index) => patchPod(api, index, round));
      await api.list(PODS);
    }
    return rounded((await server.usage()).rssBytes / 1e6);
  } finally {
    await api.close();
    await server.stop();
  }
}

async function measure(api: KubeApi, writes: number, lanes: number): Promise<Measured> {
  await inLanes(lanes, WARM_UP_WRITES, (index) => patchPod(api, index % SMALL_POPULATION, 7)); // warm-up
  const ending = new AbortController();
  const { resourceVersion } = await api.list(PODS, { limit: 1 });
  const watchers = Array.from({ length: WATCHERS }, (_, index) => watchPods(api, index, resourceVersion, ending.signal));
  const start = systemClock.monotonic();
  await inLanes(lanes, writes, (index) => patchPod(api, index % SMALL_POPULATION, Math.floor(index / SMALL_POPULATION)));
  const seconds = (systemClock.monotonic() - start) / 1_000;
  const expected = watchers.map((watcher) => watcher.selects * Math.floor(writes / SMALL_POPULATION));
  await settle(() => watchers.every((watcher, index) => watcher.heard >= (expected[index] ?? 0)));
  ending.abort();
  await Promise.all(watchers.map((watcher) => watcher.done));
  return {
    writesPerS: Math.round(writes / seconds),
    writes,
    watchers: WATCHERS,
    eventsHeard: watchers.reduce((sum, watcher) => sum + watcher.heard, 0),
    misheard: watchers.filter((watcher, index) => watcher.heard !== expected[index]).length,
  };
}

interface WatcherTally {
  readonly selects: number;
  heard: number;
  done: Promise<void>;
}

/** Half of them watch one node as its kubelet does, half a shard of the labels as a controller does. */
function watchPods(api: KubeApi, index: number, resourceVersion: string, signal: AbortSignal): WatcherTally {
  const tally: WatcherTally = { selects: SMALL_POPULATION / NODES, heard: 0, done: Promise.resolve() };
  const selector = index % 2 === 0 ? { fieldSelector: `spec.nodeName=node-${index}` } : { labelSelector: `shard=s${index}` };
  tally.done = (async () => {
    for await (const event of api.watch(PODS, { resourceVersion, ...selector }, signal)) if (event.type !== "BOOKMARK") tally.heard += 1;
  })();
  return tally;
}

async function patchPod(api: KubeApi, index: number, round: number): Promise<void> {
  const at = "2030-01-01T00:00:00Z";
  const conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map((type) => ({
    type,
    status: "True",
    lastTransitionTime: at,
    reason: `round${round}`,
  }));
  const status = { phase: "Running", podIP: `127.0.${index >> 8}.${index & 255}`, startTime: at, conditions };
  await api.patchStatus({ type: PODS, namespace: "default", name: `pod-${index}` }, { status });
}

async function populate(api: KubeApi, pods: number): Promise<void> {
  await inLanes(CONNECTIONS, pods, async (index) => {
    await api.create(PODS, podOf(index));
  });
}

function podOf(index: number): KubeObjectDraft {
  const node = index % NODES;
  const probe = { httpGet: { path: "/healthz", port: 8080 }, periodSeconds: 1, failureThreshold: 3 };
  const container = {
    name: "main",
    image: "orders",
    command: ["node", "server.mjs"],
    env: [
      { name: "PORT", value: "8080" },
      { name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
    ],
    ports: [{ name: "http", containerPort: 8080 }],
    resources: { requests: { cpu: "100m", memory: "64Mi" } },
    readinessProbe: probe,
    livenessProbe: probe,
  };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: `pod-${index}`,
      namespace: "default",
      labels: { app: "orders", shard: `s${node}` },
      annotations: { "relevo.dev/instance": `orders-${index}` },
    },
    spec: { nodeName: `node-${node}`, containers: [container], terminationGracePeriodSeconds: 10 },
  };
}

/** Runs the calls 0 … count-1, `lanes` of them at a time. */
async function inLanes(lanes: number, count: number, call: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) await call(next++);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

async function settle(isDone: () => boolean): Promise<void> {
  for (let attempt = 0; attempt < 200 && !isDone(); attempt += 1) await systemClock.sleep(10);
}

function freshStore(): ObjectStore {
  const store = new ObjectStore({ clock: systemClock, ids: systemIds });
  bootstrapCluster(store);
  return store;
}

interface Usage {
  readonly rssBytes: number;
  readonly cpuMicros: number;
}

function usageOfThisProcess(): Usage {
  const { user, system } = process.cpuUsage();
  return { rssBytes: process.memoryUsage().rss, cpuMicros: user + system };
}

async function startServer() {
  const child = fork(fileURLToPath(import.meta.url), ["serve"], { execArgv: [...HOLDS_MUCH] });
  const [url] = (await once(child, "message")) as [string];
  return {
    url,
    async usage(): Promise<Usage> {
      child.send("usage");
      const [usage] = (await once(child, "message")) as [Usage];
      return usage;
    },
    async stop(): Promise<void> {
      child.disconnect();
      await once(child, "exit");
    },
  };
}

/** The server process: ends with the channel to its parent. */
async function serve(): Promise<void> {
  const noLogs = { read: () => Promise.reject(new Error("no pods run here")) as never };
  const server = await startEmbeddedApi({ store: freshStore(), clock: systemClock, podLogs: noLogs });
  process.on("message", () => process.send?.(usageOfThisProcess()));
  process.on("disconnect", () => process.exit(0));
  process.send?.(server.url);
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
