/** A whole Relevo on this machine with the built-in queue beside it, and the workers of the example: from its document, with what the demo changes of it. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { RelevoError } from "../../../kernel/errors.ts";
import type { KubeApi, KubeObjectDraft } from "../../../kube/api.ts";
import { loadKubeApi } from "../../../kube/config.ts";
import { QueueClient } from "../../../sdk/queue-client.ts";
import { ControllerClient } from "../../client.ts";
import { type Stack, startStack } from "../../processes/stack.ts";
import { Supervisor } from "../../processes/supervisor.ts";
import type { DemoOptions } from "../main-job.ts";
import { DemoWorld } from "../world.ts";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const NODES = 6;
const NODES_WITHIN_MS = 60_000;

export interface WorkersSite {
  readonly stack: Stack;
  readonly kube: KubeApi;
  readonly client: ControllerClient;
  readonly world: DemoWorld;
  readonly queue: QueueClient;
  readonly queueUrl: string;
  readonly token: string;
  /** Store, cluster and logs lie beneath it; it goes with the site. */
  readonly dir: string;
  /** The controller's file of connections. */
  readonly connections: string;
  /** Done in reverse order before the site itself stops. */
  readonly undo: (() => Promise<unknown> | unknown)[];
  stop(): Promise<void>;
}

export async function startSite(options: DemoOptions): Promise<WorkersSite> {
  if (process.platform !== "linux")
    throw new RelevoError("demo_needs_linux", "This demo counts and limits the memory of process trees, which it can do on Linux only.", {
      found: process.platform,
      allowed: "linux",
      todo: "run relevo demo main-job here",
    });
  const { clock, ids, signal, narrator } = options;
  const dir = mkdtempSync(join(tmpdir(), "relevo-demo-"));
  const undo: WorkersSite["undo"] = [() => rmSync(dir, { recursive: true, force: true })];
  const stop = async () => {
    for (const step of undo.splice(0).toReversed()) await step();
  };
  const onDeath = (name: string, how: string) => narrator.tell(`the process ${name} ended (${how}) and is started again`);
  try {
    const { queueUrl, token } = await startQueue({ dir, options, undo, onDeath });
    const connections = join(dir, "connections.yaml");
    writeFileSync(connections, JSON.stringify({ connections: [{ name: "main", kind: "queue", url: queueUrl, token }] }), { mode: 0o600 });
    const stack = await startStack({
      cwd: options.cwd,
      dir,
      nodes: NODES,
      zones: ["zone-a", "zone-b"],
      onDemand: 0,
      bootDelayMs: 500,
      disruptionIntervalMs: 10_000,
      spotLeadMs: options.deadlineMs,
      connections,
      ports: { gateway: 0, controller: 0, cluster: 0, admin: 0 },
      logLevel: options.logLevel,
      token: null,
      clock,
      onDeath,
    });
    undo.push(() => stack.stop());
    const kube = await loadKubeApi({ kubeconfig: stack.kubeconfig });
    undo.push(() => kube.close());
    const client = new ControllerClient({ url: stack.controllerUrl, token: null, webhookSecret: stack.webhookSecret, fetch, clock });
    const world = new DemoWorld({ client, adminUrl: stack.adminUrl, webhookSecret: stack.webhookSecret, ids, clock, signal });
    await world.until(`${NODES} nodes`, NODES_WITHIN_MS, async () => (await world.nodes()).filter(({ ready }) => ready).length >= NODES);
    return {
      stack,
      kube,
      client,
      world,
      queue: new QueueClient({ url: queueUrl, token, clock }),
      queueUrl,
      token,
      dir,
      connections,
      undo,
      stop,
    };
  } catch (error) {
    if (!signal.aborted) undo.shift(); // the folder with its logs is left: the error says to look there
    await stop();
    throw error;
  }
}

async function startQueue({
  dir,
  options,
  undo,
  onDeath,
}: {
  readonly dir: string;
  readonly options: DemoOptions;
  readonly undo: WorkersSite["undo"];
  readonly onDeath: (name: string, how: string) => void;
}): Promise<{ readonly queueUrl: string; readonly token: string }> {
  mkdirSync(dir, { recursive: true });
  // Only programs of this machine reach the queue, and only for as long as the demo lasts.
  const token = options.ids.next("queue-token");
  const tokenFile = join(dir, "queue.token");
  writeFileSync(tokenFile, `${token}\n`, { mode: 0o600 });
  const supervisor = new Supervisor({ clock: options.clock, logDir: join(dir, "logs"), onDeath });
  undo.push(() => supervisor.stop());
  const { queue = "" } = await supervisor.start({
    name: "queue",
    args: (known) => [
      "queue",
      ...["--port", known["queue"] === undefined ? "0" : new URL(known["queue"]).port],
      ...["--store", join(dir, "queue.db"), "--token-file", tokenFile, "--log-level", options.logLevel],
    ],
  });
  return { queueUrl: queue, token };
}

interface EnvEntry {
  readonly name: string;
  readonly value?: string;
}

interface WorkerDeployment extends KubeObjectDraft {
  readonly spec: {
    readonly template: {
      readonly spec: { readonly containers: readonly [{ readonly env?: readonly EnvEntry[] } & Readonly<Record<string, unknown>>] };
    } & Readonly<Record<string, unknown>>;
  } & Readonly<Record<string, unknown>>;
}

interface CaptureDocument extends KubeObjectDraft {
  readonly spec: {
    readonly scale: Readonly<Record<string, unknown>>;
    readonly blueprint: { readonly objects: readonly [WorkerDeployment] };
  } & Readonly<Record<string, unknown>>;
}

export interface WorkersVariant {
  readonly name: string;
  readonly queue: string;
  /** On top of the example's own; null takes one away. */
  readonly env: Readonly<Record<string, string | null>>;
  readonly resources: object;
}

/** The example's own document with the demo's name, bounds and pace. */
export function poolDocument(variant: WorkersVariant, spec: Readonly<Record<string, unknown>>): KubeObjectDraft {
  const document = capture();
  const [lead] = document.spec.blueprint.objects;
  return {
    ...document,
    metadata: { name: variant.name, namespace: "default" },
    spec: { ...document.spec, ...spec, blueprint: { objects: [changed(lead, variant)] } },
  };
}

/** The same workers without Relevo: a plain Deployment, as an autoscaler would find it. */
export function plainDeployment(variant: WorkersVariant, replicas: number): KubeObjectDraft {
  const [lead] = capture().spec.blueprint.objects;
  const alone = changed(lead, { ...variant, env: { RELEVO_INSTANCE: null, ...variant.env } });
  const named = JSON.parse(JSON.stringify(alone).replaceAll("$(relevo.instance)", variant.name)) as WorkerDeployment;
  return { ...named, metadata: { ...named.metadata, namespace: "default" }, spec: { ...named.spec, replicas } };
}

function capture(): CaptureDocument {
  return parse(readFileSync(join(ROOT, "examples/capture/pool.yaml"), "utf8")) as CaptureDocument;
}

function changed(deployment: WorkerDeployment, { name: app, env, resources }: WorkersVariant): WorkerDeployment {
  const { template } = deployment.spec;
  const [container] = template.spec.containers;
  const kept = (container.env ?? []).filter(({ name }) => !(name in env));
  const added = Object.entries(env).flatMap(([name, value]) => (value === null ? [] : [{ name, value }]));
  const spec = { ...template.spec, containers: [{ ...container, resources, env: [...kept, ...added] }] as const };
  // By this label the demo finds what is the pool's, with and without Relevo.
  const labels = { app, instance: "$(relevo.instance)" };
  return {
    ...deployment,
    metadata: { ...deployment.metadata, labels: { app } },
    spec: { ...deployment.spec, selector: { matchLabels: labels }, template: { ...template, metadata: { labels }, spec } },
  };
}
