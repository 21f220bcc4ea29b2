/**
 * The processes of pods whose kubelet is simulated: one process listens on every local address, and the address at which a connection arrives says for which pod
 * it is. Each pod has an instance of the SDK of its own: boot id, obligations, drain, close.
 *
 * 1. An instance begins when the pod's container runs, and takes connections after the time that a process needs to start.
 * 2. A restarted container, or another pod at the address, is another instance.
 * 3. A pod that is gone has no process: its connections are cut, as a kill cuts them. The same of all pods of a node that is gone: its machine was taken.
 */
import { createServer as createHttpServer, type RequestListener, type Server } from "node:http";
import { createServer, type Server as NetServer, type Socket } from "node:net";
import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Random } from "../../../kernel/random.ts";
import type { KubeApi } from "../../../kube/api.ts";
import { createInformer, type Informer } from "../../../kube/informer.ts";
import { NODES, PODS } from "../../../kube/resources.ts";
import { INSTANCE_LABEL, type KubePod, parseNode, parsePod } from "../../../kube/types.ts";
import { createInstance, type RelevoInstance, type UpgradeListener } from "../../../sdk/index.ts";

const KEEP_ALIVE_MS = 75_000;

/** What each instance serves. */
export interface StandInRoutes {
  attach(instance: RelevoInstance): void;
  readonly handle: RequestListener;
  readonly upgrade: UpgradeListener;
}

export interface StandInOptions {
  readonly api: KubeApi;
  /** Of every pod; 0 lets the system choose. */
  readonly port: number;
  readonly routes: () => StandInRoutes;
  /** From the start of a container until its process takes connections. */
  readonly startMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly ids: Ids;
}

export interface StandIn {
  readonly port: number;
  /** By name of the instance, of pods that run. */
  instances(): ReadonlyMap<string, RelevoInstance>;
  stop(): Promise<void>;
}

/** Settles once it listens and has seen the pods that are there. */
export async function startStandIn(options: StandInOptions): Promise<StandIn> {
  const processes = new Map<string, PodProcess>();
  const server = createServer({ noDelay: true }, (socket) => {
    const isTaken = [...processes.values()].some((each) => each.address === addressOf(socket) && each.takes(socket));
    if (!isTaken) socket.resetAndDestroy(); // nobody listens there
  });
  const port = await listen(server, options.port);
  const pods = createInformer({ ...options, type: PODS, labelSelector: INSTANCE_LABEL, log: () => undefined, parse: parsePod });
  const nodes = createInformer({ ...options, type: NODES, log: () => undefined, parse: parseNode });
  follow(pods, processes, options);
  nodes.onChange(({ name, after }) => {
    if (after === undefined) for (const each of processes.values()) if (each.node === name) each.kill();
  });
  pods.start();
  nodes.start();
  await Promise.all([pods.whenSynced(), nodes.whenSynced()]);
  return {
    port,
    instances: () => new Map([...processes.values()].map(({ instance }) => [instance.name, instance])),
    async stop() {
      pods.stop();
      nodes.stop();
      for (const each of processes.values()) each.kill();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** One that was killed stays in the map, dead, until its pod goes. */
function follow(informer: Informer<KubePod>, processes: Map<string, PodProcess>, options: StandInOptions): void {
  informer.onChange(({ uid, after }) => {
    const wanted = after && processKeyOf(after);
    const running = processes.get(uid);
    if (running?.key === wanted?.key) return;
    running?.kill();
    processes.delete(uid);
    if (wanted) processes.set(uid, new PodProcess(wanted, options));
  });
}

interface ProcessKey {
  readonly key: string;
  readonly address: string;
  readonly node: string | null;
  readonly instance: string;
}

/** Undefined while no container runs. */
function processKeyOf({ metadata, spec, status }: KubePod): ProcessKey | undefined {
  const [container] = status.containerStatuses;
  const instance = metadata.labels[INSTANCE_LABEL];
  if (status.phase !== "Running" || status.podIP === null || instance === undefined || !container?.state.running) return undefined;
  return {
    key: `${metadata.uid} ${container.containerID} ${container.restartCount}`,
    address: status.podIP,
    node: spec.nodeName,
    instance,
  };
}

class PodProcess {
  readonly key: string;
  readonly address: string;
  readonly node: string | null;
  readonly instance: RelevoInstance;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #clock: Clock;
  readonly #startsAt: number;
  #isDead = false;

  constructor({ key, address, node, instance }: ProcessKey, { routes, ids, clock, startMs }: StandInOptions) {
    this.key = key;
    this.address = address;
    this.node = node;
    this.#clock = clock;
    this.#startsAt = clock.monotonic() + startMs;
    this.#server = createHttpServer({ keepAliveTimeout: KEEP_ALIVE_MS, noDelay: true });
    const served = routes();
    this.instance = createInstance({
      server: this.#server,
      name: instance,
      servesUnadmitted: false,
      env: {},
      handler: served.handle,
      onUpgrade: served.upgrade,
      ids,
      clock,
    });
    served.attach(this.instance);
  }

  takes(socket: Socket): boolean {
    if (this.#isDead || this.#clock.monotonic() < this.#startsAt) return false;
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    this.#server.emit("connection", socket);
    return true;
  }

  kill(): void {
    this.#isDead = true;
    for (const socket of this.#sockets) socket.resetAndDestroy();
    void this.instance.stop();
  }
}

/** Sockets of both families say it alike. */
function addressOf({ localAddress = "" }: Socket): string {
  return localAddress.replace(/^::ffff:/, "");
}

function listen(server: NetServer, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "0.0.0.0", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
}
