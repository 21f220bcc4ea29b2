/**
 * A real Trino for a test: a coordinator and its workers as processes on loopback, each with a folder of its own. They end with the test's process. A cluster
 * costs about 100 s of CPU and 3 GB: start one per file, and kill its nodes rather than make another.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ACTIVE_WORKERS } from "../../src/model/trino.ts";
import { engineAt } from "../../src/drivers/trino/engine.ts";
import { TrinoHttp } from "../../src/drivers/trino/http.ts";
import { systemClock } from "../../src/kernel/system.ts";
import type { RetryPolicy } from "../../src/model/trino.ts";
import { freePorts } from "../ports.ts";

const SCRIPT = join(import.meta.dirname, "../../tools/peers/trino.sh");
const HOST = "127.0.0.1";
/** Cold, on two busy cores. */
const START_LIMIT_MS = 10 * 60_000;
const LOOK_EVERY_MS = 500;
/** As whom the tests ask. */
export const TRINO_USER = "relevo";

export type Properties = Readonly<Record<string, string>>;

export interface TrinoOptions {
  readonly workers?: number;
  readonly retryPolicy?: RetryPolicy;
  /** For fault tolerance: a folder that all nodes share, or what stands in exchange-manager.properties. */
  readonly exchange?: { readonly folder: string } | { readonly properties: Properties };
  /** By name; without it `tpch` and `memory`. */
  readonly catalogs?: Readonly<Record<string, Properties>>;
  /** Free ones when absent. */
  readonly ports?: { readonly coordinator?: number; readonly workers?: readonly number[] };
  readonly environment?: string;
  /** Whether the workers have an access control that lets `TRINO_USER` change their state; true when absent. */
  readonly mayShutDown?: boolean;
  /** Begun by the launcher, which keeps a file with its process id. */
  readonly launcher?: boolean;
  /** Of `shutdown.grace-period`, in s. */
  readonly graceSeconds?: number;
  /** How long a dead worker goes unseen, in s. */
  readonly errorSeconds?: number;
  /** More lines of config.properties, of all nodes and of the coordinator alone. */
  readonly config?: Properties;
  readonly coordinatorConfig?: Properties;
}

export interface WorkerOptions {
  readonly port?: number;
  readonly environment?: string;
  readonly mayShutDown?: boolean;
  readonly launcher?: boolean;
}

/** One process, which may be begun again at its address. */
export class TrinoNode {
  readonly id: string;
  readonly host = HOST;
  readonly port: number;
  /** `http://host:port`. */
  readonly base: string;
  /** Its working folder: `etc`, `var`, `server.log`. */
  readonly folder: string;
  readonly #command: readonly string[];
  #process: ChildProcess | undefined;

  constructor(id: string, port: number, folder: string, command: readonly string[]) {
    this.id = id;
    this.port = port;
    this.base = `http://${HOST}:${port}`;
    this.folder = folder;
    this.#command = command;
  }

  get pid(): number {
    const pid = this.#process?.pid;
    if (pid === undefined) throw new Error(`${this.id} does not run`);
    return pid;
  }

  get isRunning(): boolean {
    return this.#process !== undefined && this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** Begins the process; does not wait for what it does. */
  begin(): void {
    if (this.isRunning) throw new Error(`${this.id} runs already`);
    const log = openSync(join(this.folder, "server.log"), "a");
    // The kernel ends it when this process dies, however it dies.
    this.#process = spawn("/usr/bin/setpriv", ["--pdeathsig", "KILL", ...this.#command], { cwd: this.folder, stdio: ["ignore", log, log] });
    this.#process.once("error", () => undefined); // it does not run then, and its exit says so
    closeSync(log);
  }

  /** Settles when it is gone. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#process;
    if (child === undefined || !this.isRunning) return;
    const gone = once(child, "exit");
    child.kill(signal);
    // One that is stopped hears of nothing else.
    if (signal !== "SIGSTOP" && signal !== "SIGCONT") await gone;
  }

  /** Settles when it has ended by itself. */
  async ended(): Promise<void> {
    if (this.#process !== undefined && this.isRunning) await once(this.#process, "exit");
  }

  log(): string {
    return readFileSync(join(this.folder, "server.log"), "utf8");
  }
}

export interface TrinoCluster {
  readonly coordinator: TrinoNode;
  readonly workers: readonly TrinoNode[];
  readonly folder: string;
  /** One more, begun. */
  addWorker(options?: WorkerOptions): Promise<TrinoNode>;
  /** Settles when so many workers are active; throws with the ends of the logs. */
  untilActive(workers: number): Promise<void>;
  /** Ends and reaps all nodes, and removes the folder. */
  stop(): Promise<void>;
}

/** Settles when all workers are active. */
export async function startTrino(options: TrinoOptions = {}): Promise<TrinoCluster> {
  const folder = mkdtempSync(join(tmpdir(), "relevo-trino-"));
  const workerCount = options.workers ?? 2;
  const ports = await freePorts(1 + workerCount);
  const port = options.ports?.coordinator ?? ports[0] ?? 0;
  const layout: Layout = { folder, server: trino("path"), java: trino("java"), coordinatorPort: port, options };
  const coordinator = makeNode(layout, { id: "c", port, isCoordinator: true });
  const workers: TrinoNode[] = [];
  const nodes = (): TrinoNode[] => [coordinator, ...workers];
  const http = new TrinoHttp(systemClock);

  const cluster: TrinoCluster = {
    coordinator,
    workers,
    folder,
    async addWorker(of = {}) {
      const [free] = await freePorts(1);
      const worker = makeNode(layout, { id: `w${workers.length + 1}`, isCoordinator: false, ...of, port: of.port ?? free ?? 0 });
      workers.push(worker);
      worker.begin();
      return worker;
    },
    untilActive: (count) => untilActive(nodes(), count, http),
    async stop() {
      await Promise.all(nodes().map((node) => node.kill("SIGKILL")));
      await http.destroy();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  coordinator.begin();
  try {
    for (let index = 0; index < workerCount; index++)
      await cluster.addWorker({ port: options.ports?.workers?.[index] ?? ports[index + 1] ?? 0 });
    await cluster.untilActive(workerCount);
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

async function untilActive(nodes: readonly TrinoNode[], count: number, http: TrinoHttp): Promise<void> {
  const [coordinator] = nodes;
  if (coordinator === undefined) return;
  const engine = engineAt({ base: coordinator.base, user: TRINO_USER, clock: systemClock, http });
  const until = systemClock.monotonic() + START_LIMIT_MS;
  let last: unknown;
  while (systemClock.monotonic() < until) {
    if (!coordinator.isRunning) break;
    try {
      const info = await engine.info();
      last = info.isStarting ? "starting" : (await engine.gauges([ACTIVE_WORKERS])).get(ACTIVE_WORKERS);
      if (last === count) return;
    } catch (error) {
      last = error;
    }
    await systemClock.sleep(LOOK_EVERY_MS);
  }
  const logs = nodes.map((node) => `${node.id}: ${node.isRunning ? "runs" : "has ended"}\n${node.log().slice(-3_000)}`);
  throw new Error(`no ${count} active workers; last: ${String(last)}\n${logs.join("\n")}`);
}

interface Layout {
  readonly folder: string;
  readonly server: string;
  readonly java: string;
  readonly coordinatorPort: number;
  readonly options: TrinoOptions;
}

interface NodeSetup extends WorkerOptions {
  readonly id: string;
  readonly port: number;
  readonly isCoordinator: boolean;
}

function makeNode({ folder, server, java, coordinatorPort, options }: Layout, setup: NodeSetup): TrinoNode {
  const home = join(folder, setup.id);
  const etc = join(home, "etc");
  mkdirSync(join(etc, "catalog"), { recursive: true });
  symlinkSync(join(server, "plugin"), join(home, "plugin"));
  const node: Properties = {
    "node.environment": setup.environment ?? options.environment ?? "test",
    "node.id": setup.id,
    "node.data-dir": home,
    "node.internal-address": HOST,
    "node.bind-ip": HOST,
  };
  write(join(etc, "node.properties"), node);
  write(join(etc, "config.properties"), configOf(options, setup, coordinatorPort));
  write(join(etc, "log.properties"), { "io.trino": "INFO", "io.airlift": "WARN" });
  writeFileSync(join(etc, "jvm.config"), `${JVM.join("\n")}\n`);
  const exchange = exchangeOf(options);
  if (exchange !== undefined) write(join(etc, "exchange-manager.properties"), exchange);
  for (const [name, properties] of Object.entries(options.catalogs ?? CATALOGS))
    write(join(etc, "catalog", `${name}.properties`), properties);
  if (!setup.isCoordinator && (setup.mayShutDown ?? options.mayShutDown ?? true)) writeAccess(etc);
  const command = (setup.launcher ?? options.launcher) ? launched(server, java, home) : started(server, java, node);
  return new TrinoNode(setup.id, setup.port, home, command);
}

function configOf(options: TrinoOptions, { port, isCoordinator }: NodeSetup, coordinatorPort: number): Properties {
  const errorDuration = `${options.errorSeconds ?? 10}s`;
  return {
    coordinator: String(isCoordinator),
    "http-server.http.port": String(port),
    "discovery.uri": `http://${HOST}:${coordinatorPort}`,
    "catalog.management": "static",
    "query.max-memory": "600MB",
    "query.max-memory-per-node": "300MB",
    "memory.heap-headroom-per-node": "200MB",
    "shutdown.grace-period": `${options.graceSeconds ?? 5}s`,
    "query.remote-task.max-error-duration": errorDuration,
    "exchange.max-error-duration": errorDuration,
    ...(options.retryPolicy === undefined ? {} : { "retry-policy": options.retryPolicy }),
    ...(isCoordinator ? { "node-scheduler.include-coordinator": "false", "http-server.process-forwarded": "true" } : {}),
    ...(isCoordinator ? { "fault-tolerant-execution-task-memory": "128MB" } : {}),
    ...options.config,
    ...(isCoordinator ? options.coordinatorConfig : {}),
  };
}

const CATALOGS: Readonly<Record<string, Properties>> = { tpch: { "connector.name": "tpch" }, memory: { "connector.name": "memory" } };

/** The least that it runs with; the first compiler alone starts it with a third less CPU. */
const JVM = [
  "-server",
  "-Xmx1g",
  "-XX:InitialRAMPercentage=5",
  "-XX:+UseG1GC",
  "-XX:G1HeapRegionSize=4M",
  "-XX:+ExitOnOutOfMemoryError",
  "-XX:ReservedCodeCacheSize=128M",
  "-XX:TieredStopAtLevel=1",
  "-Djdk.attach.allowAttachSelf=true",
  "--enable-native-access=ALL-UNNAMED",
  "--add-modules=jdk.incubator.vector",
];

function exchangeOf({ exchange }: TrinoOptions): Properties | undefined {
  if (exchange === undefined) return undefined;
  if ("properties" in exchange) return exchange.properties;
  return { "exchange-manager.name": "filesystem", "exchange.base-directories": exchange.folder };
}

/** On the worker itself: what the coordinator allows does not count there. */
function writeAccess(etc: string): void {
  const rules = join(etc, "rules.json");
  write(join(etc, "access-control.properties"), { "access-control.name": "file", "security.config-file": rules });
  writeFileSync(rules, JSON.stringify({ system_information: [{ user: TRINO_USER, allow: ["read", "write"] }] }));
}

function started(server: string, java: string, node: Properties): readonly string[] {
  const properties = Object.entries(node).map(([name, value]) => `-D${name}=${value}`);
  const files = ["-Dconfig=etc/config.properties", "-Dlog.levels-file=etc/log.properties"];
  return [join(java, "bin/java"), ...JVM, ...properties, ...files, "-cp", join(server, "lib/*"), "io.trino.server.TrinoServer"];
}

/** It begins Java in its own place, so that its process id is the server's. */
function launched(server: string, java: string, home: string): readonly string[] {
  return [join(server, "bin/launcher"), "--etc-dir", join(home, "etc"), "--data-dir", home, "--jvm-dir", java, "run"];
}

function write(path: string, properties: Properties): void {
  const lines = Object.entries(properties).map(([name, value]) => `${name}=${value}\n`);
  writeFileSync(path, lines.join(""));
}

function trino(what: "path" | "java"): string {
  const found = execFileSync("bash", [SCRIPT, what], { encoding: "utf8" }).trim();
  if (what === "path" && !existsSync(join(found, "complete")))
    throw new Error(`there is no Trino in ${found}: get it once by tools/peers/trino.sh fetch`);
  return found;
}
