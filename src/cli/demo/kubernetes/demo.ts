/**
 * `relevo demo kubernetes`: a fleet on a control plane that we did not write, with Karpenter replacing its nodes; then the same without protection, which must
 * fall below what is desired.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Random } from "../../../kernel/random.ts";
import { apiVersionOf, NODE_POOLS, POOLS } from "../../../kube/resources.ts";
import type { KubeApi, KubeObjectDraft, ResourceType } from "../../../kube/api.ts";
import { loadKubeApi } from "../../../kube/config.ts";
import { ControllerClient } from "../../client.ts";
import { HOLDS_MUCH, SERVES_MUCH } from "../../processes/node-flags.ts";
import { Supervisor } from "../../processes/supervisor.ts";
import { watchDuplicates } from "../duplicates.ts";
import { LoadProcess, startLedgerProcess } from "../load/client-process.ts";
import type { Mix } from "../load/mix.ts";
import type { ActResult } from "../load/tally.ts";
import type { Narrator } from "../narrator.ts";
import { DemoWorld } from "../world.ts";
import { kubeconfigOf } from "./account.ts";
import { deadline, drift, type KubernetesStage, unprotectedDrift, watchServing } from "./acts.ts";
import { type AuditEntry, foreignChanges, inventoriesPerPassMax, parseAudit, requestCounts } from "./audit.ts";
import {
  AUDIT_POLICY,
  CONTROLLER_ACCOUNT,
  INSTANCES_ACCOUNT,
  NODE_CLASS,
  nodePool,
  ordersPool,
  overlayOf,
  OWN_NAMESPACE,
} from "./documents.ts";
import { type Kubectl, kubectlWith } from "./kubectl.ts";
import { startPeer } from "./peer.ts";
import { type KubernetesReport, reportOf } from "./report.ts";
import { startStandInProcess } from "./stand-in-process.ts";

const DESIRED = 4;
const SERVING_WITHIN_MS = 180_000;
/** What a process takes to start, here and in the control alike. */
const START_MS = 1_000;
const CALM_MS = 3_000;

/** Every kind of request, at a pace that leaves the machine to the control plane. */
const MIX: Mix = {
  perSecond: { order: 8, charge: 4, export: 0.5, live: 0.3, tx: 0.4 },
  exportSeconds: [2, 5],
  liveSeconds: [3, 8],
  txSeconds: [2, 6],
  stepMs: 400,
  http2Share: 0.3,
};

export interface KubernetesDemoOptions {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: Random;
  readonly narrator: Narrator;
  readonly signal: AbortSignal;
  readonly logLevel: string;
}

export interface KubernetesAddresses {
  readonly gatewayUrl: string;
  readonly controllerUrl: string;
  readonly kubeconfig: string;
}

export interface PlayedKubernetes {
  readonly report: KubernetesReport;
  readonly addresses: KubernetesAddresses;
  stop(): Promise<void>;
}

const KWOK_NODE_CLASSES: ResourceType = {
  group: "karpenter.kwok.sh",
  version: "v1alpha1",
  kind: "KWOKNodeClass",
  plural: "kwoknodeclasses",
  namespaced: false,
};

/** Plays everything and leaves it running; `stop` ends it. */
export async function playKubernetes(options: KubernetesDemoOptions): Promise<PlayedKubernetes> {
  const undo: (() => Promise<unknown> | unknown)[] = [];
  const stop = async () => {
    for (const step of undo.splice(0).toReversed()) await step();
  };
  try {
    return { ...(await play(options, undo)), stop };
  } catch (error) {
    if (!options.signal.aborted) undo.shift(); // the folder with its logs is left: the error says to look there
    await stop();
    throw error;
  }
}

async function play(
  options: KubernetesDemoOptions,
  undo: (() => Promise<unknown> | unknown)[],
): Promise<{ readonly report: KubernetesReport; readonly addresses: KubernetesAddresses }> {
  const { clock, narrator, random, signal } = options;
  const startedAt = clock.monotonic();
  const dir = mkdtempSync(join(tmpdir(), "relevo-demo-kubernetes-"));
  undo.push(() => rmSync(dir, { recursive: true, force: true }));
  const tell = (sentence: string) => narrator.tell(sentence);

  narrator.title("starting: etcd, API server, controllers, scheduler, kwok, Karpenter");
  const site = await startSite({ ...options, dir, undo });
  const { world, client, kube, kubectl } = site;
  const duplicates = await watchDuplicates({ kube, clock, random });
  undo.push(() => duplicates.stop());
  const over = new AbortController();
  undo.push(() => over.abort());
  void narrate(client, narrator, clock, AbortSignal.any([signal, over.signal]));

  narrator.title(`the pool orders: ${DESIRED} instances, each on a machine that Karpenter makes for it`);
  await addPool(site, { name: "orders", mode: "Act", nodePool: "fleet" });
  const load = await LoadProcess.start({ ...site.load("orders"), mix: MIX });
  undo.push(() => load.kill());
  const stage: KubernetesStage = { world, kube, kubectl, clock, pool: "default/orders", nodePool: "fleet", desired: DESIRED, tell };
  await clock.sleep(CALM_MS, signal);
  const from = clock.now();

  narrator.title("act 1, drift: Karpenter wants to replace every node, and waits for us");
  const driftAct = await underLoad(load, "drift", async () => {
    const serving = watchServing(stage);
    const result = await drift(stage).finally(() => serving.stop());
    return { result, servingNeverBelow: await serving.stop() };
  });
  const driftEnd = clock.now();
  narrator.title("act 2, deadline: a NodeClaim is deleted, and Karpenter ends its pods at a time");
  const deadlineAct = await underLoad(load, "deadline", () => deadline(stage));
  await load.stop();
  const to = clock.now();

  narrator.title("control: the same drift with disruption.mode Off, on a pool and machines of its own");
  await addPool(site, { name: "orders-control", mode: "Off", nodePool: "control" });
  const controlStage: KubernetesStage = { ...stage, pool: "default/orders-control", nodePool: "control" };
  const controlLoad = await LoadProcess.start({ ...site.load("orders-control"), mix: MIX });
  undo.push(() => controlLoad.kill());
  const control = await underLoad(controlLoad, "control", async () => {
    const serving = watchServing(controlStage);
    await unprotectedDrift(controlStage).finally(() => serving.stop());
    return serving.stop();
  });
  await controlLoad.stop();
  await kube.delete({ type: POOLS, namespace: "default", name: "orders-control" });

  const entries = site.audit();
  const evidence = await world.evidence("default/orders");
  const own = {
    instances: new Set(
      [...(await world.instances("default/orders")), ...(await world.instances("default/orders-control"))].map(({ id }) => id),
    ),
    nodes: new Set(evidence.flatMap(({ node }) => (node === null ? [] : [node.name]))),
    accounts: new Set([`system:serviceaccount:default:${INSTANCES_ACCOUNT}`]),
  };
  const report = reportOf({
    drift: driftAct.value.result,
    deadline: deadlineAct.value,
    servingNeverBelow: driftAct.value.servingNeverBelow,
    desired: DESIRED,
    foreign: foreignChanges(entries, own),
    duplicatesCreated: duplicates.count(),
    inventoriesPerPassMax: inventoriesPerPassMax(entries, [from, to]),
    controlServingNeverBelow: control.value,
    client: { acts: [driftAct.counts, deadlineAct.counts], control: control.counts },
    requests: requestCounts(entries, [from, driftEnd]),
    durationMs: clock.monotonic() - startedAt,
  });
  return { report, addresses: site.addresses };
}

interface Site {
  readonly world: DemoWorld;
  readonly client: ControllerClient;
  readonly kube: KubeApi;
  readonly kubectl: Kubectl;
  readonly addresses: KubernetesAddresses;
  /** At which the stand-in speaks for every pod. */
  readonly podPort: number;
  load(host: string): { readonly url: string; readonly http2Url: string; readonly host: string; readonly ledgerUrl: string };
  audit(): readonly AuditEntry[];
}

/** The control plane, what `deploy/` installs, and Relevo's processes under the accounts of the manifests. */
async function startSite(
  options: KubernetesDemoOptions & { readonly dir: string; readonly undo: (() => Promise<unknown> | unknown)[] },
): Promise<Site> {
  const { dir, undo, clock, ids, signal, narrator } = options;
  const auditLog = join(dir, "audit.log");
  writeFileSync(join(dir, "audit-policy.json"), AUDIT_POLICY);
  const cluster = await startPeer({
    apiserverFlags: ["--audit-policy-file", join(dir, "audit-policy.json"), "--audit-log-path", auditLog],
    progress: (line) => narrator.tell(line),
    clock,
    signal,
  });
  undo.push(() => cluster.stop());
  const kubectl = kubectlWith(cluster.kubeconfig, dir);
  const kube = await loadKubeApi({ kubeconfig: cluster.kubeconfig });
  undo.push(() => kube.close());

  const overlay = join(dir, "overlay");
  mkdirSync(overlay);
  writeFileSync(join(overlay, "kustomization.yaml"), overlayOf(overlay));
  narrator.tell("kubectl apply -k deploy/: CRDs, RBAC, policies");
  await kubectl("apply", "-k", overlay);
  await kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/pools.relevo.dev");
  await create(kube, KWOK_NODE_CLASSES, NODE_CLASS);
  for (const name of ["fleet", "control"]) await create(kube, NODE_POOLS, nodePool(name));

  const ledger = await startLedgerProcess(join(dir, "ledger.log"));
  undo.push(() => ledger.stop());
  const standIn = await startStandInProcess({ kubeconfig: cluster.kubeconfig, ledgerUrl: ledger.url, startMs: START_MS });
  undo.push(() => standIn.stop());

  const addresses = await startProcesses({ ...options, kubeconfig: cluster.kubeconfig, kubectl });
  const client = new ControllerClient({ url: addresses.controllerUrl, token: null, webhookSecret: "", fetch, clock });
  const world = new DemoWorld({ client, adminUrl: "", webhookSecret: "", ids, clock, signal });
  return {
    world,
    client,
    kube,
    kubectl,
    addresses,
    podPort: standIn.port,
    load: (host) => ({ url: addresses.gatewayUrl, http2Url: addresses.gatewayUrl, host, ledgerUrl: ledger.url }),
    audit: () => parseAudit(readFileSync(auditLog, "utf8")),
  };
}

async function startProcesses(
  options: KubernetesDemoOptions & {
    readonly dir: string;
    readonly undo: (() => Promise<unknown> | unknown)[];
    readonly kubeconfig: string;
    readonly kubectl: Kubectl;
  },
): Promise<KubernetesAddresses> {
  const { dir, undo, clock, kubeconfig, kubectl, narrator, logLevel } = options;
  const ownKubeconfig = await kubeconfigOf(CONTROLLER_ACCOUNT, { namespace: OWN_NAMESPACE, admin: kubeconfig, kubectl, dir });
  writeFileSync(join(dir, "gateway.key"), randomBytes(32).toString("base64url"), { mode: 0o600 });
  const supervisor = new Supervisor({
    clock,
    logDir: join(dir, "logs"),
    onDeath: (name, how) => narrator.tell(`the process ${name} ended (${how}) and is started again`),
  });
  undo.push(() => supervisor.stop());
  narrator.tell(`controller under the ServiceAccount ${OWN_NAMESPACE}/${CONTROLLER_ACCOUNT}, and a gateway`);
  const env = { NODE_COMPILE_CACHE: join(dir, "compile-cache"), RELEVO_TOKEN: undefined, KUBECONFIG: undefined };
  const controller = await supervisor.start({
    name: "controller",
    nodeFlags: HOLDS_MUCH,
    env,
    args: () => [
      ...["controller", "--log-level", logLevel, "--kubeconfig", ownKubeconfig, "--store", join(dir, "store.db"), "--port", "0"],
      ...["--instances-account", INSTANCES_ACCOUNT, "--priority-classes"],
    ],
  });
  const gateway = await supervisor.start({
    name: "gateway",
    nodeFlags: SERVES_MUCH,
    env,
    args: () => [
      ...["gateway", "--log-level", logLevel, "--controller", controller.controller ?? "", "--key-file", join(dir, "gateway.key")],
      ...["--port", "0", "--admin-port", "0"],
    ],
  });
  return { controllerUrl: controller.controller ?? "", gatewayUrl: gateway.gateway ?? "", kubeconfig };
}

async function create(kube: KubeApi, type: ResourceType, draft: KubeObjectDraft): Promise<void> {
  await kube.create(type, { ...draft, apiVersion: apiVersionOf(type), kind: type.kind });
}

async function addPool(
  { kube, world, podPort }: Site,
  variant: { readonly name: string; readonly mode: "Act" | "Off"; readonly nodePool: string },
): Promise<void> {
  await kube.create(POOLS, ordersPool({ ...variant, port: podPort }), { namespace: "default" });
  const serves = async () => (await world.serving(`default/${variant.name}`)) >= DESIRED;
  await world.until(`${DESIRED} serving instances of ${variant.name}`, SERVING_WITHIN_MS, serves);
}

async function underLoad<T>(
  load: LoadProcess,
  name: string,
  happen: () => Promise<T>,
): Promise<{ readonly value: T; readonly counts: ActResult }> {
  await load.startAct(name);
  const value = await happen();
  return { value, counts: (await load.endAct(name)).result };
}

/** Writes to the terminal what the controller tells. */
async function narrate(client: ControllerClient, narrator: Narrator, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const entry of client.watch("default/orders", signal)) if (entry) narrator.journal(entry);
    } catch {
      // The watch stands again when the controller is back.
    }
    await clock.sleep(200, signal).catch(() => undefined);
  }
}
