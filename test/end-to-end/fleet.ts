/**
 * A whole fleet of real processes for a test: the embedded cluster, a controller with its HTTP API, gateways as processes or within the test, the ledger, and
 * the pool `orders`. Level of what is shown with it: real processes.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer as createTcpServer, connect, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { isReadyMessage } from "../../src/cli/processes/child.ts";
import { composeController, type ComposedController } from "../../src/cli/processes/controller.ts";
import { LoadClient } from "../../src/cli/demo/load/client.ts";
import { Ledger } from "../../src/cli/demo/load/ledger.ts";
import { type LedgerServer, serveLedger } from "../../src/cli/demo/load/ledger-server.ts";
import type { Mix } from "../../src/cli/demo/load/mix.ts";
import { ServiceDriver } from "../../src/drivers/service/service-driver.ts";
import { type EmbeddedCluster, startEmbeddedCluster } from "../../src/embedded/cluster.ts";
import { type Gateway, startGateway } from "../../src/gateway/server.ts";
import { systemClock as clock, systemIds as ids, systemRandom as random } from "../../src/kernel/system.ts";
import type { KubeObjectDraft } from "../../src/kube/api.ts";
import { httpKubeApi } from "../../src/kube/http-api.ts";
import { POOLS } from "../../src/kube/resources.ts";
import type { InstanceRecord } from "../../src/model/instance.ts";
import { HEADERS } from "../../src/model/membership.ts";
import { LeaseTokens } from "../../src/lease/token.ts";
import { createServer } from "../../src/server/app.ts";
import type { ControlPlane } from "../../src/server/control-plane.ts";
import { createLogger } from "../../src/server/log.ts";
import { RENEW_PATH } from "../../src/server/routes/leases.ts";
import { createMetrics } from "../../src/server/metrics.ts";
import { openStore } from "../../src/store/store.ts";

const ROOT = join(import.meta.dirname, "../..");
const KEY = { id: "k1", secret: "0123456789abcdef0123" };
const LIMIT_MS = 30_000;

export interface Fleet {
  readonly cluster: EmbeddedCluster;
  readonly controlPlane: ControlPlane;
  /** Of the controller. */
  readonly url: string;
  serving(): Promise<readonly InstanceRecord[]>;
  instance(id: string): Promise<InstanceRecord>;
  until(sentence: string, holds: () => boolean | Promise<boolean>, limitMs?: number): Promise<void>;
  /** A gateway within the test's process, which reaches the controller through `via`. */
  gateway(via?: string): Promise<Gateway>;
  /** A gateway as a process of its own; port 0 lets the system choose. */
  gatewayProcess(port?: number): Promise<GatewayProcess>;
  load(url: string, mix: Mix): LoadClient;
  /** Stops the controller, does this with its closed SQLite file, and starts another at the same address. */
  restartController(meanwhile: (storePath: string) => Promise<void>): Promise<void>;
  /** SIGKILL to the process of this instance alone. */
  killProcess(record: InstanceRecord): void;
  close(): Promise<void>;
}

export interface GatewayProcess {
  readonly url: string;
  readonly port: number;
  /** SIGKILL; settles when it is gone. */
  kill(): Promise<void>;
}

export interface FleetOptions {
  readonly nodes?: number;
  readonly desired?: number;
  /** How long the objects of a lost machine stay; the provisioner's own unless given. */
  readonly vanishAfterMs?: number;
  /** What each instance runs; the example `orders` unless given. */
  readonly program?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Of the Pool, beside and over what the example has. */
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly gracePeriodS?: number;
  /** The URL of a PostgreSQL database; a file of its own unless given. */
  readonly store?: string;
}

export async function startFleet(options: FleetOptions = {}): Promise<Fleet> {
  const { nodes = 4, desired = 3, vanishAfterMs } = options;
  const dir = await mkdtemp(join(tmpdir(), "fleet-"));
  const log = createLogger({ level: "silent", name: "fleet", clock });
  const closing: (() => unknown)[] = [() => rm(dir, { recursive: true, force: true })];
  const cluster = await startEmbeddedCluster({
    dir: join(dir, "cluster"),
    clock,
    ids,
    random,
    nodes,
    provisioner: vanishAfterMs === undefined ? {} : { vanishAfterMs },
  });
  closing.push(() => cluster.close());
  const ledger = await startLedger(join(dir, "ledger"));
  closing.push(() => ledger.close());
  const kube = httpKubeApi({ baseUrl: cluster.url });
  closing.push(() => kube.close());
  const storePath = options.store ?? join(dir, "store.db");
  let running = await startController(kube, storePath, log);
  closing.push(() => running.close());
  const { url } = running;

  const until: Fleet["until"] = async (sentence, holds, limitMs = LIMIT_MS) => {
    const end = clock.monotonic() + limitMs;
    while (!(await holds())) {
      if (clock.monotonic() > end)
        throw new Error(`not within ${limitMs} ms: ${sentence}\n${JSON.stringify(await picture(running.composed.controlPlane), null, 1)}`);
      await clock.sleep(25);
    }
  };
  const records = async (): Promise<readonly InstanceRecord[]> =>
    (await running.composed.controlPlane.listInstances({ limit: 1_000 })).map(({ record }) => record);
  const serving = async (): Promise<readonly InstanceRecord[]> => (await records()).filter(({ phase }) => phase === "serving");

  // A pool that comes before its nodes lands on the first of them, all of it.
  await until("the nodes are up", () => cluster.provisioner.nodes().filter(({ isReady }) => isReady).length === nodes);
  await kube.create(POOLS, await ordersPool(ledger.url, desired, options), { namespace: "default" });
  return {
    cluster,
    get controlPlane() {
      return running.composed.controlPlane;
    },
    url,
    serving,
    until,
    async instance(id) {
      const found = (await records()).find((record) => record.id === id);
      if (found === undefined) throw new Error(`no instance ${id}`);
      return found;
    },
    async gateway(via = url) {
      const gateway = await startGateway({ host: "127.0.0.1", port: 0, controllerUrl: via, tokenKeys: [KEY], clock, ids, random, log });
      closing.push(() => gateway.close({ graceMs: 0 }));
      return gateway;
    },
    async restartController(meanwhile) {
      await running.close();
      await meanwhile(storePath);
      running = await startController(kube, storePath, log, Number(new URL(url).port));
    },
    async gatewayProcess(port = 0) {
      const gateway = await spawnGateway(dir, url, port);
      closing.push(() => gateway.kill());
      return gateway;
    },
    load(target, mix) {
      const client = new LoadClient({ url: target, http2Url: target, ledgerUrl: ledger.url, mix }, { clock, ids, random });
      client.start();
      closing.push(() => client.stop());
      return client;
    },
    killProcess({ incarnation: { nodeName, containerId } }) {
      const machine = cluster.fleet.machine(nodeName ?? "");
      if (machine === undefined || containerId === null) throw new Error("it runs nowhere");
      cluster.runtime.signal(machine, containerId.split("://").at(-1) ?? "", "SIGKILL");
    },
    async close() {
      for (const end of closing.toReversed()) await end();
    },
  };
}

async function picture(controlPlane: ControlPlane): Promise<unknown> {
  const instances = await controlPlane.listInstances({ limit: 50 });
  return {
    instances: instances.map(({ record, health }) => `${record.id} ${record.phase} on ${record.incarnation.nodeName}, ${health}`),
    reasons: (await controlPlane.listPools()).flatMap(({ reasons }) => reasons.map(({ subject, reason }) => `${subject} ${reason.code}`)),
    gateways: (await controlPlane.listGateways()).map(({ replica, connected, silent }) => ({ replica, connected, silent })),
  };
}

async function startController(
  kube: ReturnType<typeof httpKubeApi>,
  storePath: string,
  log: ReturnType<typeof createLogger>,
  port = 0,
): Promise<{ readonly composed: ComposedController; readonly url: string; close(): Promise<void> }> {
  const metrics = createMetrics();
  const driver = new ServiceDriver({ clock });
  const leaseTokens = new LeaseTokens(KEY.secret);
  let url = "";
  const leaseDoor = { tokens: leaseTokens, url: () => `${url}${RENEW_PATH}` };
  const store = await openStore({ path: storePath });
  const composed = composeController({ kube, store, driver, clock, random, ids, log, metrics, leaseDoor });
  const { controlPlane } = composed;
  const options = { host: "127.0.0.1", token: null, webhookSecret: null, version: "0.0.0" };
  const server = await createServer({ options, controlPlane, metrics, log, clock, leaseTokens });
  url = await server.listen({ host: "127.0.0.1", port });
  await composed.controller.start();
  return {
    composed,
    url,
    async close() {
      await server.close();
      await composed.close();
      await driver.destroy();
    },
  };
}

async function startLedger(path: string): Promise<LedgerServer> {
  const ledger = await Ledger.open(path);
  const server = await serveLedger(ledger);
  return {
    ...server,
    url: server.url,
    async close() {
      await server.close();
      await ledger.close();
    },
  };
}

/** The example as it is published, with this Node, this ledger and this size. */
export async function ordersPool(ledgerUrl: string, desired: number, options: FleetOptions): Promise<KubeObjectDraft> {
  const pool = poolDocument.parse(parse(await readFile(join(ROOT, "examples/orders/pool.yaml"), "utf8")));
  const { program = join(ROOT, "examples/orders/orders.mjs"), env = {}, gracePeriodS } = options;
  const added = Object.entries({ LEDGER_URL: ledgerUrl, ...env }).map(([name, value]) => ({ name, value }));
  for (const { spec } of pool.spec.blueprint.objects.map((object) => object.spec.template)) {
    if (gracePeriodS !== undefined) spec["terminationGracePeriodSeconds"] = gracePeriodS;
    for (const container of spec.containers) {
      container.command = [process.execPath, program];
      container.env = [...container.env, ...added];
    }
  }
  return { ...pool, spec: { ...pool.spec, size: { desired, floor: 1, max: desired * 2 }, ...options.spec } };
}

const containers = z.array(
  z.looseObject({ command: z.array(z.string()), env: z.array(z.object({ name: z.string(), value: z.string() })) }),
);
const lead = z.looseObject({ spec: z.looseObject({ template: z.looseObject({ spec: z.looseObject({ containers }) }) }) });
const poolDocument = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({ blueprint: z.looseObject({ objects: z.array(lead) }) }),
});

async function spawnGateway(dir: string, controllerUrl: string, port: number): Promise<GatewayProcess> {
  const keyFile = join(dir, "gateway.key");
  await writeFile(keyFile, KEY.secret, { mode: 0o600 });
  const args = ["gateway", "--controller", controllerUrl, "--key-file", keyFile, "--port", String(port), "--admin-port", "0"];
  const child = spawn(process.execPath, [join(ROOT, "src/main.ts"), ...args], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const url = await readyUrl(child);
  return {
    url,
    port: Number(new URL(url).port),
    async kill() {
      child.kill("SIGKILL");
      await gone;
    },
  };
}

function readyUrl(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.on("message", (message) => {
      if (isReadyMessage(message)) resolve(message.facts["gateway"] ?? "");
    });
    child.once("exit", (code) => reject(new Error(`the gateway ended with ${code}`)));
  });
}

/** A wire that can be cut: bytes go both ways until then, and from then on nothing does, without a word. */
export class Wire {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;

  private constructor(server: Server) {
    this.#server = server;
  }

  get url(): string {
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  }

  static async to(target: string): Promise<Wire> {
    const { hostname, port } = new URL(target);
    const server = createTcpServer();
    const wire = new Wire(server);
    server.on("connection", (near) => {
      wire.#keep(near);
      if (wire.#isCut) return void near.pause();
      const far = connect(Number(port), hostname);
      wire.#keep(far);
      near.pipe(far);
      far.pipe(near);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return wire;
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.unpipe().pause();
  }

  /** What was under way is gone; new connections get through. */
  mend(): void {
    this.#isCut = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy()); // either side may go at any time: that is what the wire is for
    socket.on("close", () => this.#sockets.delete(socket));
  }
}

/** One transaction of `orders`, step by step, by any gateway that its token leads through. */
export class Transaction {
  readonly #url: string;
  readonly #id: string;
  readonly #token: string;
  readonly instance: string;

  private constructor(url: string, id: string, token: string, instance: string) {
    this.#url = url;
    this.#id = id;
    this.#token = token;
    this.instance = instance;
  }

  static async begin(url: string): Promise<Transaction> {
    const id = ids.next("tx");
    const answer = await fetch(`${url}/tx`, { method: "POST", body: JSON.stringify({ id, ttlMs: 30_000 }) });
    if (!answer.ok) throw new Error(`no transaction: ${answer.status} ${await answer.text()}`);
    const { by } = (await answer.json()) as { readonly by: string };
    return new Transaction(url, id, answer.headers.get(HEADERS.token) ?? "", by);
  }

  addItem(): Promise<Response> {
    return this.#post("items", { id: `${this.#id}.i1` });
  }

  commit(): Promise<Response> {
    return this.#post("commit", {});
  }

  #post(verb: string, body: unknown): Promise<Response> {
    const headers = { [HEADERS.token]: this.#token, "content-type": "application/json" };
    return fetch(`${this.#url}/tx/${this.#id}/${verb}`, { method: "POST", headers, body: JSON.stringify(body) });
  }
}
