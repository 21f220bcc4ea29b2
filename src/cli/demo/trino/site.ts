/** A whole Relevo on this machine, and a real Trino in the pods of its cluster: the example's document, with where the server and the exchange are here. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { RelevoError } from "../../../kernel/errors.ts";
import type { KubeApi, KubeObjectDraft } from "../../../kube/api.ts";
import { loadKubeApi } from "../../../kube/config.ts";
import { ControllerClient } from "../../client.ts";
import { type Stack, startStack } from "../../processes/stack.ts";
import type { DemoOptions } from "../main-job.ts";
import { DemoWorld } from "../world.ts";

export const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const SCRIPT = join(ROOT, "tools/peers/trino.sh");
const NODES = 6;
const NODES_WITHIN_MS = 60_000;

export interface TrinoSite {
  readonly stack: Stack;
  readonly kube: KubeApi;
  readonly client: ControllerClient;
  readonly world: DemoWorld;
  /** Store, cluster and logs lie beneath it; it goes with the site. */
  readonly dir: string;
  /** The folder that all nodes of all clusters share. */
  readonly exchange: string;
  readonly server: TrinoHome;
  /** Done in reverse order before the site itself stops. */
  readonly undo: (() => Promise<unknown> | unknown)[];
  stop(): Promise<void>;
}

export interface TrinoHome {
  readonly home: string;
  readonly java: string;
  /** Trino's own JDBC driver. */
  readonly jdbc: string;
}

export async function startSite(options: DemoOptions): Promise<TrinoSite> {
  if (process.platform !== "linux" || !existsSync(SCRIPT))
    throw new RelevoError("demo_needs_clone", "This demo assembles a real Trino by a tool of the repository, on Linux.", {
      found: existsSync(SCRIPT) ? process.platform : `no ${SCRIPT}`,
      allowed: "a clone of the repository, on Linux, with Maven and a JDK of 25 or newer",
      todo: "run npm run demo:trino in a clone",
    });
  const { clock, ids, signal, narrator } = options;
  const server = await fetchTrino(options);
  const dir = mkdtempSync(join(tmpdir(), "relevo-demo-"));
  const exchange = join(dir, "exchange");
  mkdirSync(exchange);
  const undo: TrinoSite["undo"] = [() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 })];
  const stop = async () => {
    for (const step of undo.splice(0).toReversed()) await step();
  };
  try {
    const stack = await startStack({
      cwd: options.cwd,
      dir,
      nodes: NODES,
      zones: ["zone-a", "zone-b"],
      onDemand: 0,
      bootDelayMs: 500,
      disruptionIntervalMs: 2_000,
      spotLeadMs: options.deadlineMs,
      ports: { gateway: 0, controller: 0, cluster: 0, admin: 0 },
      logLevel: options.logLevel,
      token: null,
      clock,
      onDeath: (name, how) => narrator.tell(`the process ${name} ended (${how}) and is started again`),
    });
    undo.push(() => stack.stop());
    const kube = await loadKubeApi({ kubeconfig: stack.kubeconfig });
    undo.push(() => kube.close());
    const client = new ControllerClient({ url: stack.controllerUrl, token: null, webhookSecret: stack.webhookSecret, fetch, clock });
    const world = new DemoWorld({ client, adminUrl: stack.adminUrl, webhookSecret: stack.webhookSecret, ids, clock, signal });
    await world.until(`${NODES} nodes`, NODES_WITHIN_MS, async () => (await world.nodes()).filter(({ ready }) => ready).length >= NODES);
    return { stack, kube, client, world, dir, exchange, server, undo, stop };
  } catch (error) {
    if (!signal.aborted) undo.shift(); // the folder with its logs is left: the error says to look there
    await stop();
    throw error;
  }
}

/** Gets the server the first time, which takes some minutes; told as it goes. */
async function fetchTrino({ narrator, signal }: DemoOptions): Promise<TrinoHome> {
  const java = await run("java", signal);
  await run("fetch", signal, (line) => narrator.tell(line.replace(/^trino\.sh: /, "")));
  const jdbc = await run("jdbc", signal, (line) => narrator.tell(line.replace(/^trino\.sh: /, "")));
  return { home: await run("path", signal), java, jdbc };
}

/** What the tool prints, in one line. */
async function run(
  verb: "fetch" | "path" | "java" | "jdbc",
  signal: AbortSignal,
  told: (line: string) => void = () => undefined,
): Promise<string> {
  // A group of its own: Maven goes with it.
  const child = spawn("bash", [SCRIPT, verb], { stdio: ["ignore", "pipe", "pipe"], detached: true });
  const end = () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGTERM");
  };
  signal.addEventListener("abort", end, { once: true });
  let last = "";
  let out = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  createInterface({ input: child.stderr }).on("line", (line) => {
    last = line;
    if (line.startsWith("trino.sh: ")) told(line);
  });
  try {
    const [code] = (await once(child, "close")) as [number | null];
    if (code === 0) return out.trim();
  } finally {
    signal.removeEventListener("abort", end);
  }
  signal.throwIfAborted();
  throw new RelevoError("demo_trino_missing", "The server could not be assembled.", {
    found: last,
    allowed: "Maven with access to a registry, and a JDK of 25 or newer",
    todo: "run tools/peers/trino.sh fetch by hand to see why",
  });
}

interface EnvEntry {
  readonly name: string;
  readonly value?: string;
}

interface Workload extends KubeObjectDraft {
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: { readonly containers: readonly [{ readonly env: readonly EnvEntry[] } & Readonly<Record<string, unknown>>] };
    } & Readonly<Record<string, unknown>>;
  } & Readonly<Record<string, unknown>>;
}

interface TrinoDocument extends KubeObjectDraft {
  readonly spec: {
    readonly disruption: Readonly<Record<string, unknown>>;
    readonly blueprint: { readonly objects: readonly KubeObjectDraft[] };
  } & Readonly<Record<string, unknown>>;
}

/** The example's own document, told where the server and the exchange are. */
export function poolDocument(site: Pick<TrinoSite, "exchange" | "server">): KubeObjectDraft {
  const document = example();
  const objects = document.spec.blueprint.objects.map((object) =>
    object.kind === "Deployment" ? placed(object as Workload, { exchange: site.exchange, server: site.server }) : object,
  );
  return {
    ...document,
    metadata: { ...document.metadata, namespace: "default" },
    spec: { ...document.spec, blueprint: { objects } },
  };
}

/** One more worker of a running cluster, in a Deployment that is nobody's, whose launcher finds what was left behind. */
export function workerWithoutCleanup(site: Pick<TrinoSite, "exchange" | "server">, instance: string): KubeObjectDraft {
  const worker = example().spec.blueprint.objects.find(({ kind, metadata }) => kind === "Deployment" && metadata.name?.endsWith("-worker"));
  if (worker === undefined) throw new Error("the example has no workers");
  const own = JSON.parse(JSON.stringify(placed(worker as Workload, site)).replaceAll("$(relevo.instance)", instance)) as Workload;
  const { template } = own.spec;
  const [container] = template.spec.containers;
  const labels = { app: "trino-control", component: "worker", instance };
  return {
    ...own,
    metadata: { name: CONTROL_WORKER, namespace: "default" },
    spec: {
      ...own.spec,
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        ...template,
        metadata: { labels },
        spec: { ...template.spec, containers: [{ ...container, env: [...container.env, { name: "TRINO_PID_CLEANUP", value: "off" }] }] },
      },
    },
  };
}

export const CONTROL_WORKER = "trino-worker-without-cleanup";

function example(): TrinoDocument {
  return parse(readFileSync(join(ROOT, "examples/trino/pool.yaml"), "utf8")) as TrinoDocument;
}

function placed(workload: Workload, { exchange, server }: Pick<TrinoSite, "exchange" | "server">): Workload {
  const { template } = workload.spec;
  const [container] = template.spec.containers;
  const env = [
    ...container.env,
    { name: "TRINO_HOME", value: server.home },
    { name: "TRINO_JAVA", value: server.java },
    { name: "TRINO_EXCHANGE", value: exchange },
  ];
  return {
    ...workload,
    spec: { ...workload.spec, template: { ...template, spec: { ...template.spec, containers: [{ ...container, env }] } } },
  };
}
