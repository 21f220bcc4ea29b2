/**
 * The embedded cluster, put together: one object store, its controllers and scheduler, a provisioner, and nodes. With processes and HTTP for users, without
 * both for the simulator.
 */
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Clock } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Random } from "../kernel/random.ts";
import type { KubeApi } from "../kube/api.ts";
import { NAMESPACES } from "../kube/resources.ts";
import { startAdmin } from "./admin.ts";
import { type ControlPlaneOptions, DEFAULT_CONTROL_PLANE_OPTIONS, startControlPlane } from "./control-plane.ts";
import { ClusterAccess } from "./controllers/access.ts";
import { type ClusterLog, silentLog } from "./controllers/log.ts";
import { startEmbeddedApi } from "./http/server.ts";
import { NodeFleet } from "./nodes/fleet.ts";
import type { KubeletOptions } from "./nodes/kubelet-context.ts";
import { endLeftovers } from "./nodes/leftovers.ts";
import { podLogs } from "./nodes/pod-logs.ts";
import type { PodRuntime } from "./nodes/pod-runtime.ts";
import { ProcessRuntime } from "./nodes/process-runtime.ts";
import { DEFAULT_PROVISIONER_OPTIONS, type ProvisionerOptions } from "./provisioner/options.ts";
import { Provisioner } from "./provisioner/provisioner.ts";
import { bootstrapCluster } from "./store/bootstrap.ts";
import { directKubeApi } from "./store/direct-api.ts";
import { ObjectStore, type Validator } from "./store/object-store.ts";
import { loadCustomResources, persistCustomResources } from "./store/persistence.ts";

interface CommonOptions {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: Random;
  readonly log?: ClusterLog | undefined;
  /** Machines from the start, and kept. */
  readonly nodes?: number | undefined;
  readonly zones?: readonly string[] | undefined;
  /** From the launch of a later machine to its node. */
  readonly bootDelayMs?: number | undefined;
  readonly provisioner?: Partial<ProvisionerOptions> | undefined;
  readonly kubelet?: Partial<KubeletOptions> | undefined;
  readonly controlPlane?: Partial<ControlPlaneOptions> | undefined;
  /** By `kindKey`: what is wrong with an object of a kind. */
  readonly validators?: Readonly<Record<string, Validator>> | undefined;
}

export interface EmbeddedClusterOptions extends CommonOptions {
  /** Everything that it writes lies beneath it. */
  readonly dir: string;
  /** 0 (the default) takes any free port. */
  readonly apiPort?: number | undefined;
  readonly adminPort?: number | undefined;
  /** By default each pod has its own address on Linux, and a port of its own elsewhere. */
  readonly addressing?: "own-address" | "own-port" | undefined;
  readonly maxLogBytes?: number | undefined;
}

export interface SimulatedClusterOptions extends CommonOptions {
  readonly runtime: PodRuntime;
}

export interface SimulatedCluster {
  readonly store: ObjectStore;
  readonly api: KubeApi;
  readonly access: ClusterAccess;
  readonly fleet: NodeFleet;
  readonly provisioner: Provisioner;
  /** The uid of the namespace `kube-system`: a new one at each start. */
  readonly uid: string;
  close(): Promise<void>;
}

export interface EmbeddedCluster extends SimulatedCluster {
  readonly runtime: ProcessRuntime;
  /** Of the Kubernetes API. */
  readonly url: string;
  readonly adminUrl: string;
  readonly kubeconfigPath: string;
}

/** Everything but processes and HTTP. Settles when the controllers run and the first machines are ordered; the clock must go for them to come up. */
export async function createSimulatedCluster(options: SimulatedClusterOptions): Promise<SimulatedCluster> {
  return await compose(newStore(options), options, options.runtime);
}

/**
 * Settles when the API answers and the first machines are ordered.
 *
 * Errors: `embedded_dir_in_use` when another embedded cluster lives in the folder; those of binding and of the saved custom resources.
 */
export async function startEmbeddedCluster(options: EmbeddedClusterOptions): Promise<EmbeddedCluster> {
  const dir = resolve(options.dir);
  await refuseDirInUse(dir, options.clock);
  await mkdir(dir, { recursive: true });
  endLeftovers(dir);
  for (const old of ["pods", "logs"]) await rm(join(dir, old), { recursive: true, force: true });
  const { clock, random } = options;
  const addressing = options.addressing ?? (process.platform === "linux" ? "own-address" : "own-port");
  const runtime = new ProcessRuntime({
    dir,
    clock,
    random,
    addressing,
    ...(options.maxLogBytes === undefined ? {} : { maxLogBytes: options.maxLogBytes }),
  });
  const store = newStore(options);
  loadCustomResources(store, dir);
  persistCustomResources(store, dir);
  const server = await startEmbeddedApi({
    store,
    clock,
    port: options.apiPort,
    validators: options.validators,
    podLogs: podLogs(directKubeApi(store), runtime, clock),
  });
  const kubeconfigPath = join(dir, "kubeconfig");
  await writeFile(kubeconfigPath, kubeconfig(server.url), { mode: 0o600 });
  const kubelet = { ...options.kubelet, env: { KUBECONFIG: kubeconfigPath, ...options.kubelet?.env } };
  const cluster = await compose(store, { ...options, kubelet }, runtime);
  const admin = await startAdmin({
    provisioner: cluster.provisioner,
    info: { uid: cluster.uid, apiUrl: server.url, pid: process.pid },
    port: options.adminPort,
  });
  await writeFile(
    join(dir, STATE_FILE),
    `${JSON.stringify({ uid: cluster.uid, pid: process.pid, apiUrl: server.url, adminUrl: admin.url, kubeconfig: kubeconfigPath })}\n`,
  );
  return {
    ...cluster,
    runtime,
    url: server.url,
    adminUrl: admin.url,
    kubeconfigPath,
    async close() {
      await cluster.close();
      await runtime.close();
      await Promise.all([admin.close(), server.close()]);
      await rm(join(dir, STATE_FILE), { force: true });
    },
  };
}

/** Where a running cluster says how it is reached. */
const STATE_FILE = "embedded.json";
const IN_USE_CHECK_MS = 1_000;

function newStore(options: CommonOptions): ObjectStore {
  const { clock, ids, validators } = options;
  // Higher than any that an earlier life of this cluster gave, so that old watches are told that they are too old.
  const store = new ObjectStore({
    clock,
    ids,
    firstResourceVersion: Math.max(1, Math.floor(clock.now())),
    ...(validators === undefined ? {} : { validators }),
  });
  bootstrapCluster(store);
  return store;
}

async function compose(store: ObjectStore, options: CommonOptions, runtime: PodRuntime): Promise<SimulatedCluster> {
  const { clock, ids, random, log = silentLog } = options;
  const api = directKubeApi(store);
  const access = new ClusterAccess({ api, clock, ids, random, log });
  const controlPlane = { ...DEFAULT_CONTROL_PLANE_OPTIONS, ...options.controlPlane };
  const { recordEvents } = controlPlane;
  const fleet = new NodeFleet(access, runtime, { recordEvents, ...(options.kubelet === undefined ? {} : { kubelet: options.kubelet }) });
  const provisioner = new Provisioner(access, fleet, provisionerOptions(options), recordEvents);
  await startControlPlane(access, controlPlane);
  await provisioner.start();
  const uid = store.get({ type: NAMESPACES, name: "kube-system" }).metadata.uid;
  return { store, api, access, fleet, provisioner, uid, close: () => access.close() };
}

function provisionerOptions({ nodes, zones, bootDelayMs, provisioner }: CommonOptions): ProvisionerOptions {
  return {
    ...DEFAULT_PROVISIONER_OPTIONS,
    ...(nodes === undefined ? {} : { minNodes: nodes, maxNodes: Math.max(DEFAULT_PROVISIONER_OPTIONS.maxNodes, nodes * 2) }),
    ...(zones === undefined ? {} : { zones }),
    ...(bootDelayMs === undefined ? {} : { bootDelayMs }),
    ...provisioner,
  };
}

/** Asks whoever the folder names: a file alone may be left over from a crash. */
async function refuseDirInUse(dir: string, clock: Clock): Promise<void> {
  const text = await readFile(join(dir, STATE_FILE), "utf8").catch(() => undefined);
  if (text === undefined) return;
  const state = parseState(text);
  if (state === undefined) return;
  const late = new AbortController();
  const timer = clock.after(IN_USE_CHECK_MS, () => late.abort());
  const answer = await fetch(`${state.adminUrl}/embedded/v1`, { signal: late.signal })
    .then(
      async (response) => (await response.json()) as { readonly uid?: unknown },
      () => undefined,
    )
    .finally(() => timer.cancel());
  if (answer?.uid !== state.uid) return;
  throw new RelevoError("embedded_dir_in_use", "Another embedded cluster lives in this folder.", {
    found: `process ${state.pid}, ${state.apiUrl}`,
    allowed: "one cluster per folder",
    todo: `Use it with KUBECONFIG=${join(dir, "kubeconfig")}, end it, or choose another folder.`,
  });
}

interface SavedState {
  readonly uid: string;
  readonly pid: number;
  readonly apiUrl: string;
  readonly adminUrl: string;
}

function parseState(text: string): SavedState | undefined {
  try {
    const state = JSON.parse(text) as Partial<SavedState>;
    const { uid, pid, apiUrl, adminUrl } = state;
    return typeof uid === "string" && typeof pid === "number" && typeof apiUrl === "string" && typeof adminUrl === "string"
      ? { uid, pid, apiUrl, adminUrl }
      : undefined;
  } catch {
    return undefined; // half written when it died
  }
}

function kubeconfig(server: string): string {
  return `apiVersion: v1
kind: Config
clusters:
- name: relevo
  cluster: {server: "${server}"}
contexts:
- name: relevo
  context: {cluster: relevo, user: relevo, namespace: default}
current-context: relevo
users:
- name: relevo
  user: {}
`;
}
