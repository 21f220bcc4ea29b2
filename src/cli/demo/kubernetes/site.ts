/** A real control plane with Karpenter, what `deploy/` installs on it, and Relevo's processes under the accounts of the manifests. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { KubeApi, ResourceType } from "../../../kube/api.ts";
import { loadKubeApi } from "../../../kube/config.ts";
import { NODE_POOLS, POOLS } from "../../../kube/resources.ts";
import { ControllerClient } from "../../client.ts";
import { HOLDS_MUCH, SERVES_MUCH } from "../../processes/node-flags.ts";
import { Supervisor } from "../../processes/supervisor.ts";
import { startLedgerProcess } from "../load/client-process.ts";
import { DemoWorld } from "../world.ts";
import { kubeconfigOf } from "./account.ts";
import { type AuditEntry, parseAudit } from "./audit.ts";
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
import { type RealKubernetes, startPeer } from "./peer.ts";
import { startStandInProcess } from "./stand-in-process.ts";

const SERVING_WITHIN_MS = 180_000;
/** What a process takes to start, with and without protection alike. */
const START_MS = 1_000;

const KWOK_NODE_CLASSES: ResourceType = {
  group: "karpenter.kwok.sh",
  version: "v1alpha1",
  kind: "KWOKNodeClass",
  plural: "kwoknodeclasses",
  namespaced: false,
};

export interface SiteOptions {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly signal: AbortSignal;
  readonly logLevel: string;
  /** Of the control plane; all when absent. Without Karpenter there are no NodePools. */
  readonly parts?: readonly string[];
  /** Names of the NodePools. */
  readonly nodePools: readonly string[];
  readonly tell: (sentence: string) => void;
  /** Of the controller's Node process, on top of ours. */
  readonly controllerNodeFlags?: readonly string[];
}

export interface KubernetesAddresses {
  readonly gatewayUrl: string;
  readonly controllerUrl: string;
  readonly kubeconfig: string;
}

export interface Site {
  readonly cluster: RealKubernetes;
  readonly dir: string;
  readonly supervisor: Supervisor;
  readonly world: DemoWorld;
  readonly client: ControllerClient;
  readonly kube: KubeApi;
  readonly kubectl: Kubectl;
  readonly addresses: KubernetesAddresses;
  load(host: string): { readonly url: string; readonly http2Url: string; readonly host: string; readonly ledgerUrl: string };
  audit(): readonly AuditEntry[];
  /** Applies the example's pool on machines of one NodePool, and waits until all of it serves. */
  addPool(variant: PoolVariant): Promise<void>;
  stop(): Promise<void>;
}

export interface PoolVariant {
  readonly name: string;
  readonly mode: "Act" | "Off";
  readonly nodePool: string;
  readonly desired: number;
  /** Karpenter alone when absent. */
  readonly provisioners?: readonly string[];
}

type Undo = (() => Promise<unknown> | unknown)[];

export async function startSite(options: SiteOptions): Promise<Site> {
  const dir = mkdtempSync(join(tmpdir(), "relevo-demo-kubernetes-"));
  const undo: Undo = [() => rmSync(dir, { recursive: true, force: true })];
  const stop = async () => {
    for (const step of undo.splice(0).toReversed()) await step();
  };
  try {
    return { ...(await startAll(options, dir, undo)), stop };
  } catch (error) {
    if (!options.signal.aborted) undo.shift(); // the folder with its logs is left: the error says to look there
    await stop();
    throw error;
  }
}

async function startAll(options: SiteOptions, dir: string, undo: Undo): Promise<Omit<Site, "stop">> {
  const { clock, ids, signal, tell } = options;
  const auditLog = join(dir, "audit.log");
  writeFileSync(join(dir, "audit-policy.json"), AUDIT_POLICY);
  const cluster = await startPeer({
    parts: options.parts,
    apiserverFlags: ["--audit-policy-file", join(dir, "audit-policy.json"), "--audit-log-path", auditLog],
    progress: tell,
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
  tell("kubectl apply -k deploy/: CRDs, RBAC, policies");
  await kubectl("apply", "-k", overlay);
  await kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/pools.relevo.dev");
  if (options.nodePools.length > 0) await kube.create(KWOK_NODE_CLASSES, NODE_CLASS);
  for (const name of options.nodePools) await kube.create(NODE_POOLS, nodePool(name));

  const ledger = await startLedgerProcess(join(dir, "ledger.log"));
  undo.push(() => ledger.stop());
  const standIn = await startStandInProcess({ kubeconfig: cluster.kubeconfig, ledgerUrl: ledger.url, startMs: START_MS });
  undo.push(() => standIn.stop());

  const { supervisor, addresses } = await startProcesses({ ...options, dir, undo, kubeconfig: cluster.kubeconfig, kubectl });
  const client = new ControllerClient({ url: addresses.controllerUrl, token: null, webhookSecret: "", fetch, clock });
  const world = new DemoWorld({ client, adminUrl: "", webhookSecret: "", ids, clock, signal });
  return {
    cluster,
    dir,
    supervisor,
    world,
    client,
    kube,
    kubectl,
    addresses,
    load: (host) => ({ url: addresses.gatewayUrl, http2Url: addresses.gatewayUrl, host, ledgerUrl: ledger.url }),
    audit: () => parseAudit(readFileSync(auditLog, "utf8")),
    async addPool({ desired, ...variant }) {
      await kube.create(POOLS, ordersPool({ ...variant, desired, port: standIn.port }), { namespace: "default" });
      const serves = async () => (await world.serving(`default/${variant.name}`)) >= desired;
      await world.until(`${desired} serving instances of ${variant.name}`, SERVING_WITHIN_MS, serves);
    },
  };
}

async function startProcesses(
  options: SiteOptions & { readonly dir: string; readonly undo: Undo; readonly kubeconfig: string; readonly kubectl: Kubectl },
): Promise<{ readonly supervisor: Supervisor; readonly addresses: KubernetesAddresses }> {
  const { dir, undo, clock, ids, kubeconfig, kubectl, tell, logLevel, controllerNodeFlags = [] } = options;
  const ownKubeconfig = await kubeconfigOf(CONTROLLER_ACCOUNT, { namespace: OWN_NAMESPACE, admin: kubeconfig, kubectl, dir });
  writeFileSync(join(dir, "gateway.key"), `${ids.next("key")}${ids.next("key")}`, { mode: 0o600 });
  const supervisor = new Supervisor({
    clock,
    logDir: join(dir, "logs"),
    onDeath: (name, how) => tell(`the process ${name} ended (${how}) and is started again`),
  });
  undo.push(() => supervisor.stop());
  tell(`controller under the ServiceAccount ${OWN_NAMESPACE}/${CONTROLLER_ACCOUNT}, and a gateway`);
  const env = { NODE_COMPILE_CACHE: join(dir, "compile-cache"), RELEVO_TOKEN: undefined, KUBECONFIG: undefined };
  const controller = await supervisor.start({
    name: "controller",
    nodeFlags: [...HOLDS_MUCH, ...controllerNodeFlags],
    env,
    args: (known) => [
      ...[
        "controller",
        "--log-level",
        logLevel,
        "--kubeconfig",
        ownKubeconfig,
        "--store",
        join(dir, "store.db"),
        "--port",
        portOf(known.controller),
      ],
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
  const addresses = { controllerUrl: controller.controller ?? "", gatewayUrl: gateway.gateway ?? "", kubeconfig };
  return { supervisor, addresses };
}

/** A process that starts again listens where others look for it. */
function portOf(url: string | undefined): string {
  return url === undefined ? "0" : new URL(url).port;
}
