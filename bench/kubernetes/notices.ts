/** 300 instances on as many nodes of a real control plane: 50 notices at once, then one for each node; then an inventory of 1,000 nodes and 5,000 pods. */
import { type Site, startSite } from "../../src/cli/demo/kubernetes/site.ts";
import { systemClock, systemIds, systemRandom } from "../../src/kernel/system.ts";
import { createInformer } from "../../src/kube/informer.ts";
import { NODES, PODS } from "../../src/kube/resources.ts";
import { type KubeNode, parseNode } from "../../src/kube/types.ts";
import { spotInterruptionWarning } from "../../src/notices/eventbridge/compose.ts";
import { SIGNATURE_HEADER, signBody } from "../../src/server/access.ts";
import { say } from "../fleet/machine.ts";
import { measureSteady, type Steady } from "./steady.ts";

const POOL = "default/orders";
const INSTANCES = 300;
/** For the replacements of the first notices. */
const SPARE = 60;
const MORE_NODES = 1_000 - INSTANCES - SPARE;
const MORE_PODS = 5_000 - INSTANCES;
const WITHIN_MS = 120_000;
const AT_ONCE = 8;
const SECRET = "bench-webhook-secret-of-32-bytes";

export interface AtOnce {
  readonly of: number;
  readonly evidence: number;
  readonly cordons: number;
  /** From the first notice sent; in s. */
  readonly evidenceP99S: number | null;
  readonly cordonP50S: number | null;
  readonly cordonP99S: number | null;
  readonly cordonLastS: number | null;
}

export interface OnRealServer {
  readonly notices50: AtOnce;
  readonly notices300: AtOnce;
  readonly inventory: Steady & { readonly nodes: number; readonly pods: number };
}

export async function measureNotices(): Promise<OnRealServer> {
  process.env["RELEVO_WEBHOOK_SECRET"] = SECRET;
  const site = await startSite({
    clock: systemClock,
    ids: systemIds,
    signal: new AbortController().signal,
    logLevel: "warn",
    nodePools: [],
    parts: ["controllers", "scheduler", "kwok"],
    tell: (sentence) => say("kubernetes", sentence),
  });
  try {
    await inTurns(INSTANCES + SPARE, (number) => site.kube.create(NODES, nodeOf(number)));
    say("kubernetes", `${INSTANCES + SPARE} nodes; the pool of ${INSTANCES} starts`);
    await site.addPool({ name: "orders", mode: "Act", nodePool: "bench", desired: INSTANCES, provisioners: ["none"] });
    const nodes = await watchNodes(site);
    const notices50 = await atOnce(site, nodes, 50);
    say("kubernetes", `50 at once: ${JSON.stringify(notices50)}`);
    await site.world.until("all to serve again", 4 * WITHIN_MS, async () => (await site.world.serving(POOL)) >= INSTANCES);
    const inventory = await measureInventory(site);
    say("kubernetes", `inventory: ${JSON.stringify(inventory)}`);
    const notices300 = await atOnce(site, nodes, INSTANCES);
    say("kubernetes", `300 at once: ${JSON.stringify(notices300)}`);
    nodes.stop();
    return { notices50, notices300, inventory };
  } finally {
    await site.stop();
  }
}

interface NodeWatch {
  readonly cordonedAt: ReadonlyMap<string, number>;
  stop(): void;
}

async function watchNodes({ kube }: Site): Promise<NodeWatch> {
  const cordonedAt = new Map<string, number>();
  const informer = createInformer({
    api: kube,
    type: NODES,
    clock: systemClock,
    random: systemRandom,
    log: () => undefined,
    parse: parseNode,
  });
  informer.onChange(({ name, after }: { readonly name: string; readonly after: KubeNode | undefined }) => {
    if (after?.spec.unschedulable && !cordonedAt.has(name)) cordonedAt.set(name, systemClock.now());
  });
  informer.start();
  await informer.whenSynced();
  return { cordonedAt, stop: () => informer.stop() };
}

async function atOnce(site: Site, { cordonedAt }: NodeWatch, count: number): Promise<AtOnce> {
  const serving = (await site.world.instances(POOL)).filter(
    ({ phase, node }) => phase === "serving" && node !== null && !cordonedAt.has(node),
  );
  const chosen = serving.slice(0, count);
  const ids = new Set(chosen.map(({ id }) => id));
  const names = chosen.map(({ node }) => node ?? "");
  const from = systemClock.now();
  await Promise.all(names.map((name) => notify(site, name)));
  const evidenceOf = async () => (await site.world.evidence(POOL)).filter(({ instance, loss }) => ids.has(instance) && loss === "deadline");
  await site.world
    .until("every cordon", WITHIN_MS, async () => names.every((name) => cordonedAt.has(name)) && (await evidenceOf()).length >= count)
    .catch(() => undefined); // what is missing is in the figures
  const evidence = (await evidenceOf()).map(({ firstSeen }) => Date.parse(firstSeen) - from);
  const cordons = names.flatMap((name) => cordonedAt.get(name) ?? []).map((at) => at - from);
  return {
    of: chosen.length,
    evidence: evidence.length,
    cordons: cordons.length,
    evidenceP99S: quantile(evidence, 0.99),
    cordonP50S: quantile(cordons, 0.5),
    cordonP99S: quantile(cordons, 0.99),
    cordonLastS: quantile(cordons, 1),
  };
}

async function notify({ addresses }: Site, node: string): Promise<void> {
  const body = spotInterruptionWarning({
    id: systemIds.next("event"),
    at: systemClock.now(),
    machineId: machineOf(node),
    region: "eu-west-1",
    account: "123456789012",
  });
  const response = await fetch(`${addresses.controllerUrl}/v1/notices/eventbridge`, {
    method: "POST",
    headers: { "content-type": "application/json", [SIGNATURE_HEADER]: signBody(body, SECRET) },
    body,
  });
  if (!response.ok) throw new Error(`the notice was not taken: ${response.status} ${await response.text()}`);
}

async function measureInventory(site: Site): Promise<OnRealServer["inventory"]> {
  const first = INSTANCES + SPARE;
  await inTurns(MORE_NODES, (number) => site.kube.create(NODES, nodeOf(first + number)));
  // Of another fleet that nobody runs here: they are read as all pods with our label are.
  const names = Array.from({ length: MORE_PODS }, (_, number) => `others-${number}`);
  await inTurns(MORE_PODS, (number) =>
    site.kube.create(PODS, podOf(names[number] ?? "", nodeName(first + (number % MORE_NODES))), { namespace: "default" }),
  );
  const steady = await measureSteady({
    api: site.kube,
    pods: names,
    controllerUrl: site.addresses.controllerUrl,
    pid: () => site.supervisor.pidOf("controller") ?? 0,
    restart: async () => {
      const restarted = site.supervisor.whenRestarted("controller");
      process.kill(site.supervisor.pidOf("controller") ?? 0, "SIGKILL");
      await restarted;
    },
  });
  return { nodes: first + MORE_NODES, pods: INSTANCES + MORE_PODS, ...steady };
}

function nodeName(number: number): string {
  return `bench-${String(number).padStart(5, "0")}`;
}

function machineOf(node: string): string {
  return `i-0${node.slice("bench-".length).padStart(16, "0")}`;
}

function nodeOf(number: number) {
  const name = nodeName(number);
  const resources = { cpu: "4", memory: "8Gi", pods: "64" };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: { "karpenter.sh/nodepool": "bench", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" },
      annotations: { "kwok.x-k8s.io/node": "fake" },
    },
    spec: { providerID: `aws:///eu-west-1a/${machineOf(name)}` },
    status: { capacity: resources, allocatable: resources },
  };
}

function podOf(name: string, node: string) {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: { "relevo.dev/pool": "others", "relevo.dev/instance": name } },
    spec: { nodeName: node, containers: [{ name: "main", image: "none" }] },
  };
}

async function inTurns(count: number, make: (number: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const turn = async () => {
    while (next < count) await make(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, turn));
}

function quantile(valuesMs: readonly number[], share: number): number | null {
  const value = valuesMs.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(share * valuesMs.length) - 1)];
  return value === undefined ? null : Math.round(value) / 1_000;
}
