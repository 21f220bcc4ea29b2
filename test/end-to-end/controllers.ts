/**
 * Several controllers as processes of their own, on one PostgreSQL and one embedded cluster, with gateways and a load. Level of what is shown with it: real
 * processes, a real database.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isReadyMessage } from "../../src/cli/processes/child.ts";
import { LoadClient } from "../../src/cli/demo/load/client.ts";
import { startLedgerProcess } from "../../src/cli/demo/load/client-process.ts";
import type { Mix } from "../../src/cli/demo/load/mix.ts";
import { type EmbeddedCluster, startEmbeddedCluster } from "../../src/embedded/cluster.ts";
import type { ProvisionerOptions } from "../../src/embedded/provisioner/options.ts";
import { systemClock as clock, systemIds as ids, systemRandom as random } from "../../src/kernel/system.ts";
import { httpKubeApi } from "../../src/kube/http-api.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { POOLS } from "../../src/kube/resources.ts";
import type { PoolRows, Store } from "../../src/store/port.ts";
import { openStore } from "../../src/store/store.ts";
import { PostgresCluster } from "../postgres/cluster.ts";
import { type FleetOptions, ordersPool } from "./fleet.ts";
import { History } from "./history.ts";

const ROOT = join(import.meta.dirname, "../..");
const KEY = "0123456789abcdef0123";
const LIMIT_MS = 60_000;
export const NAMESPACE = "default";

export interface ControllersOptions {
  readonly replicas: number;
  /** Names; each has two instances. */
  readonly pools: readonly string[];
  readonly nodes?: number;
  readonly provisioner?: Partial<ProvisionerOptions>;
  readonly gateways?: number;
  /** Of a spot warning, as the controllers are told. */
  readonly spotLeadMs?: number;
  /** What each pool's instances run, and what its document has beside the example's; the example `orders` unless given. */
  readonly pool?: Pick<FleetOptions, "program" | "env" | "spec" | "gracePeriodS">;
}

/** A process of `relevo`. */
export class Relevo {
  readonly name: string;
  readonly facts: Readonly<Record<string, string>>;
  readonly #child: ChildProcess;
  readonly #gone: Promise<void>;

  constructor(name: string, child: ChildProcess, facts: Readonly<Record<string, string>>) {
    this.name = name;
    this.facts = facts;
    this.#child = child;
    this.#gone =
      child.exitCode === null && child.signalCode === null ? new Promise((end) => child.once("exit", () => end())) : Promise.resolve();
  }

  get url(): string {
    return this.facts["controller"] ?? this.facts["gateway"] ?? "";
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Settles when it is gone; at once for a signal that ends nothing. */
  async signal(signal: "SIGKILL" | "SIGTERM" | "SIGSTOP" | "SIGCONT"): Promise<void> {
    this.#child.kill(signal);
    if (signal === "SIGKILL" || signal === "SIGTERM") await this.#gone;
  }
}

export class Controllers {
  readonly cluster: EmbeddedCluster;
  readonly kube: KubeApi;
  /** The test's own look into the store of the controllers. */
  readonly store: Store;
  readonly ledgerUrl: string;
  readonly dir: string;
  readonly history: History;
  readonly gateways: Relevo[] = [];
  readonly replicas = new Map<string, Relevo>();
  /** Of the replica of this name. */
  readonly #storeUrl: (name: string) => string;
  readonly #closing: (() => unknown)[];
  #spotLeadMs = 120_000;
  #service = "";

  private constructor(parts: {
    readonly cluster: EmbeddedCluster;
    readonly kube: KubeApi;
    readonly store: Store;
    readonly storeUrl: (name: string) => string;
    readonly history: History;
    readonly ledgerUrl: string;
    readonly dir: string;
    readonly closing: (() => unknown)[];
  }) {
    this.cluster = parts.cluster;
    this.kube = parts.kube;
    this.store = parts.store;
    this.#storeUrl = parts.storeUrl;
    this.ledgerUrl = parts.ledgerUrl;
    this.dir = parts.dir;
    this.history = parts.history;
    this.#closing = parts.closing;
  }

  static async start(options: ControllersOptions): Promise<Controllers> {
    const { nodes = 4, pools, provisioner = {} } = options;
    const dir = await mkdtemp(join(tmpdir(), "controllers-"));
    const closing: (() => unknown)[] = [() => rm(dir, { recursive: true, force: true })];
    const postgres = await PostgresCluster.start();
    closing.push(() => postgres.stop());
    const cluster = await startEmbeddedCluster({ dir: join(dir, "cluster"), clock, ids, random, nodes, provisioner });
    closing.push(() => cluster.close());
    // Of its own: the test's process has the cluster and the clients, and an instance that waits for the ledger answers 500.
    const ledger = await startLedgerProcess(join(dir, "ledger"));
    closing.push(() => ledger.stop());
    const kube = httpKubeApi({ baseUrl: cluster.url });
    closing.push(() => kube.close());
    const storeUrl = (name: string) => postgres.url("relevo", `&application_name=${name}`);
    const store = await openStore({ path: storeUrl("test") });
    closing.push(() => store.close());
    const history = await History.install(storeUrl("test"));
    closing.push(() => history.close());
    await writeFile(join(dir, "kubeconfig"), kubeconfigOf(cluster.url));
    await writeFile(join(dir, "gateway.key"), KEY, { mode: 0o600 });
    const controllers = new Controllers({ cluster, kube, store, storeUrl, history, ledgerUrl: ledger.url, dir, closing });
    controllers.#spotLeadMs = options.spotLeadMs ?? controllers.#spotLeadMs;
    controllers.#service = await controllers.#startService();
    await controllers.until("the nodes are up", () => cluster.provisioner.nodes().filter(({ isReady }) => isReady).length >= nodes);
    await Promise.all(Array.from({ length: options.replicas }, (_, index) => controllers.replica(`replica-${index + 1}`)));
    const urls = [...controllers.replicas.values()].flatMap(({ url }) => ["--controller", url]);
    for (let index = 0; index < (options.gateways ?? 1); index++)
      controllers.gateways.push(
        await spawnRelevo(dir, `gateway-${index + 1}`, ["gateway", ...urls, "--key-file", join(dir, "gateway.key"), "--port", "0"]),
      );
    for (const name of pools) await controllers.#createPool(name, options.pool);
    return controllers;
  }

  /** Starts the replica of this name, on the port that it had before. */
  async replica(name: string): Promise<Relevo> {
    const port = this.replicas.get(name)?.facts["controller"];
    const args = ["controller", "--kubeconfig", join(this.dir, "kubeconfig"), "--store", this.#storeUrl(name), "--log-level", "info"];
    const places = [
      "--advertise",
      this.#service,
      "--replicas-namespace",
      NAMESPACE,
      "--replica",
      name,
      "--port",
      port === undefined ? "0" : new URL(port).port,
    ];
    const started = await spawnRelevo(this.dir, name, [...args, ...places, "--spot-lead", `${this.#spotLeadMs}ms`]);
    this.replicas.set(name, started);
    return started;
  }

  load(route: string, mix: Mix, gateway = 0): LoadClient {
    const url = this.gateways[gateway]?.url ?? "";
    const client = new LoadClient({ url, http2Url: url, host: `${route}.example`, ledgerUrl: this.ledgerUrl, mix }, { clock, ids, random });
    client.start();
    this.#closing.push(() => client.stop());
    return client;
  }

  rows(pool: string): Promise<PoolRows | undefined> {
    return this.store.readPool(`default/${pool}`);
  }

  /** By pool: who has it, as the store says. */
  async owners(pools: readonly string[]): Promise<ReadonlyMap<string, string | null>> {
    const rows = await Promise.all(pools.map(async (pool) => [pool, (await this.rows(pool))?.owner ?? null] as const));
    return new Map(rows);
  }

  async serving(pool: string): Promise<number> {
    return (await this.rows(pool))?.instances.filter(({ phase }) => phase === "serving").length ?? 0;
  }

  async until(sentence: string, holds: () => boolean | Promise<boolean>, limitMs = LIMIT_MS): Promise<void> {
    const end = clock.monotonic() + limitMs;
    while (!(await holds())) {
      if (clock.monotonic() > end) throw new Error(`not within ${limitMs} ms: ${sentence}\n${await this.#picture()}`);
      await clock.sleep(20);
    }
  }

  /** What a failure is understood by: the rows of each pool, and what each process said last. */
  async #picture(): Promise<string> {
    const pools = await Promise.all(
      (await this.store.listPools()).map(async (pool) => {
        const rows = await this.store.readPool(pool);
        const instances = rows?.instances.map(({ id, phase, trust, failure }) => `${id} ${phase} ${trust} ${failure ?? ""}`);
        const steps = rows?.openSteps.map(({ id, state, attempts, notBefore }) => `${id} ${state} ${attempts} ${notBefore - clock.now()}`);
        const reasons = rows?.reasons.map(({ subject, reason }) => `${subject} ${JSON.stringify(reason)}`);
        return JSON.stringify({ pool, owner: rows?.owner, instances, steps, reasons, failures: rows?.failures }, null, 1);
      }),
    );
    const logs = [...this.replicas.keys()].map((name) => `${name}:\n${readFileSync(join(this.dir, `${name}.log`), "utf8").slice(-6_000)}`);
    return [...pools, JSON.stringify(await this.store.listGateways()), ...logs].join("\n");
  }

  async close(): Promise<void> {
    for (const each of [...this.gateways, ...this.replicas.values()]) {
      if (!each.isAlive) continue;
      await each.signal("SIGCONT");
      await each.signal("SIGKILL");
    }
    for (const end of this.#closing.toReversed()) await end();
  }

  /** As a Service: each connection leads to one of those that live, each time to another one. Returns its URL. */
  async #startService(): Promise<string> {
    let number = 0;
    const sockets = new Set<Socket>();
    const keep = (socket: Socket, other: () => Socket): void => {
      sockets.add(socket);
      socket.once("close", () => {
        sockets.delete(socket);
        other().destroy();
      });
      socket.on("error", () => undefined); // its end is passed on
    };
    const server = createServer((near) => {
      const living = [...this.replicas.values()].filter(({ isAlive }) => isAlive);
      const chosen = living[number++ % Math.max(1, living.length)];
      if (chosen === undefined) return void near.destroy();
      const far = connect(Number(new URL(chosen.url).port), "127.0.0.1");
      keep(near, () => far);
      keep(far, () => near);
      near.pipe(far).pipe(near);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    this.#closing.push(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  async #createPool(name: string, options: FleetOptions = {}): Promise<void> {
    const pool = await ordersPool(this.ledgerUrl, 2, options);
    const text = JSON.stringify(pool).replaceAll('"app":"orders"', `"app":"${name}"`);
    const draft = JSON.parse(text) as typeof pool & { metadata: { name: string }; spec: Record<string, unknown> };
    draft.metadata.name = name;
    // On a busy machine a candidate may be too late, and the pool is not to wait ten minutes for it.
    draft.spec["disruption"] = { ...(draft.spec["disruption"] as object), candidates: { retries: 20, per: "10m" } };
    draft.spec["traffic"] = { route: name, retry: "idempotent", queue: { limit: 500, wait: "5s" } };
    await this.kube.create(POOLS, draft, { namespace: "default" });
  }
}

/** Settles once it can be used; what it says goes to `NAME.log` in the folder. */
export async function spawnRelevo(
  dir: string,
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Relevo> {
  const log = createWriteStream(join(dir, `${name}.log`), { flags: "a" });
  const options = { stdio: ["ignore", "pipe", "pipe", "ipc"] as ["ignore", "pipe", "pipe", "ipc"], env: { ...process.env, ...env } };
  const child = spawn(process.execPath, [join(ROOT, "src/main.ts"), ...args], options);
  child.stdout?.pipe(log, { end: false });
  child.stderr?.pipe(log, { end: false });
  const facts = await new Promise<Readonly<Record<string, string>>>((resolve, reject) => {
    child.on("message", (message) => {
      if (isReadyMessage(message)) resolve(message.facts);
    });
    child.once("exit", (code) => reject(new Error(`${name} ended with ${code}: see ${dir}/${name}.log`)));
  });
  return new Relevo(name, child, facts);
}

function kubeconfigOf(server: string): string {
  return `apiVersion: v1
kind: Config
clusters: [{ name: here, cluster: { server: "${server}" } }]
users: [{ name: me, user: {} }]
contexts: [{ name: here, context: { cluster: here, user: me } }]
current-context: here
`;
}
