/**
 * A real Kubernetes control plane on loopback, as children of this process: they end with it, whatever ends it. Ports are free ones, and all state lies in
 * a temporary folder. `build.sh` compiles the programs.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Agent, request } from "undici";
import { RelevoError } from "../../src/kernel/errors.ts";
import { integerBetween } from "../../src/kernel/random.ts";
import { systemClock as clock, systemRandom } from "../../src/kernel/system.ts";
import {
  commandOf,
  kubeconfigPath,
  kubeconfigText,
  type KubernetesPart,
  type PieceName,
  type Ports,
  type Site,
  tokensText,
} from "./pieces.ts";

export interface KubernetesOptions {
  /** Without: controllers, scheduler, kwok. An empty list is etcd and the API server alone: then pods need no service account. */
  readonly parts?: readonly KubernetesPart[] | undefined;
  /** Out of which kwok gives pods their addresses. Without: some 127.x.0.0/16, so that each is an address of this machine. */
  readonly podCidr?: string | undefined;
  /** Appended to the command lines. */
  readonly flags?: Partial<Record<PieceName, readonly string[]>> | undefined;
}

export interface Pieces {
  names(): readonly PieceName[];
  /** SIGSTOP: it keeps its connections and says nothing. */
  pause(name: PieceName): void;
  resume(name: PieceName): void;
  /** SIGKILL; settles when it is gone. */
  kill(name: PieceName): Promise<void>;
  /** Ends it if it runs, starts it with the same command line, and waits until it is ready. */
  restart(name: PieceName): Promise<void>;
  pid(name: PieceName): number | undefined;
}

export interface Kubernetes {
  readonly kubeconfig: string;
  readonly dir: string;
  readonly url: string;
  /** Plain HTTP; speaks etcd's JSON gateway too (`/v3/kv/compaction`). */
  readonly etcdUrl: string;
  readonly podCidr: string;
  readonly pieces: Pieces;
  /** Ends all of it and removes its folder. */
  stop(): Promise<void>;
}

const DEFAULT_PARTS: readonly KubernetesPart[] = ["controllers", "scheduler", "kwok"];
const READY_LIMIT_MS = 120_000;
const POLL_MS = 100;

export function kubernetesBin(): string {
  return join(process.env["RELEVO_CACHE"] ?? join(homedir(), ".cache", "relevo"), "kubernetes", "bin");
}

/** Rejects with `kubernetes_not_built` when the programs are not there, and with the end of its log when a piece ends while it starts. */
export async function startKubernetes(options: KubernetesOptions = {}): Promise<Kubernetes> {
  const bin = kubernetesBin();
  const parts = options.parts ?? DEFAULT_PARTS;
  const needed = [
    "kube",
    ...(parts.includes("kwok") ? ["kwok"] : []),
    ...(parts.includes("karpenter") ? ["karpenter", "karpenter-crds.yaml"] : []),
  ];
  const missing = needed.filter((file) => !existsSync(join(bin, file)));
  if (missing.length > 0) {
    throw new RelevoError("kubernetes_not_built", "the programs of the real Kubernetes are not there", {
      found: `no ${missing.join(", ")} in ${bin}`,
      todo: "npm run kubernetes:build (about 11 minutes, once)",
    });
  }
  const dir = await mkdtemp(join(tmpdir(), "relevo-kubernetes-"));
  const podCidr = options.podCidr ?? `127.${integerBetween(systemRandom, 128, 250)}.0.0/16`;
  const site: Site = { bin, dir, ports: await freePorts(), podCidr, parts, flags: options.flags ?? {} };
  const control = new ControlPlane(site);
  try {
    await control.start();
  } catch (error) {
    await control.stop();
    throw error;
  }
  return {
    kubeconfig: kubeconfigPath(dir),
    dir,
    url: `https://127.0.0.1:${site.ports.api}`,
    etcdUrl: `http://127.0.0.1:${site.ports.etcd}`,
    podCidr,
    pieces: control,
    stop: () => control.stop(),
  };
}

interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<string>;
  hasEnded: boolean;
}

class ControlPlane implements Pieces {
  readonly #site: Site;
  readonly #running = new Map<PieceName, Running>();
  readonly #agent = new Agent({ connect: { rejectUnauthorized: false } });

  constructor(site: Site) {
    this.#site = site;
  }

  async start(): Promise<void> {
    const { dir, parts, bin } = this.#site;
    await mkdir(join(dir, "certs"));
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    await writeFile(join(dir, "accounts.key"), privateKey.export({ type: "sec1", format: "pem" }));
    await writeFile(join(dir, "tokens.csv"), tokensText());
    await writeFile(kubeconfigPath(dir), kubeconfigText(this.#site));
    await this.#launch("etcd");
    await this.#launch("apiserver");
    for (const part of ["controllers", "scheduler", "kwok"] as const) if (parts.includes(part)) await this.#launch(part);
    if (!parts.includes("karpenter")) return;
    const crds = join(bin, "karpenter-crds.yaml");
    await this.#kubectl("apply", "--server-side", "-f", crds);
    await this.#kubectl("wait", "--for", "condition=Established", "--timeout", "30s", "-f", crds);
    await this.#launch("karpenter");
  }

  names(): readonly PieceName[] {
    return [...this.#running.keys()];
  }

  pid(name: PieceName): number | undefined {
    return this.#running.get(name)?.child.pid;
  }

  pause(name: PieceName): void {
    this.#get(name).child.kill("SIGSTOP");
  }

  resume(name: PieceName): void {
    this.#get(name).child.kill("SIGCONT");
  }

  async kill(name: PieceName): Promise<void> {
    const running = this.#get(name);
    running.child.kill("SIGKILL");
    await running.ended;
  }

  async restart(name: PieceName): Promise<void> {
    await this.kill(name);
    await this.#launch(name);
  }

  /** There is nothing to be saved: the folder goes too. */
  async stop(): Promise<void> {
    for (const name of this.names().toReversed()) await this.kill(name);
    await this.#agent.destroy();
    await rm(this.#site.dir, { recursive: true, force: true });
  }

  #get(name: PieceName): Running {
    const running = this.#running.get(name);
    if (running) return running;
    throw new RelevoError("kubernetes_no_piece", "the control plane has no such piece", { found: name, allowed: this.names().join(", ") });
  }

  async #launch(name: PieceName): Promise<void> {
    const { file, args, env } = commandOf(name, this.#site);
    const log = await open(join(this.#site.dir, `${name}.log`), "a");
    try {
      const [command, ...rest] = [...ENDS_WITH_ITS_PARENT, file, ...args];
      const child = spawn(command ?? file, rest, { stdio: ["ignore", log.fd, log.fd], env: { ...process.env, ...env } });
      const running: Running = { child, hasEnded: false, ended: endOf(child) };
      void running.ended.then(() => (running.hasEnded = true));
      this.#running.set(name, running);
      await this.#untilReady(name, running);
    } finally {
      await log.close();
    }
  }

  async #untilReady(name: PieceName, running: Running): Promise<void> {
    const startedAt = clock.monotonic();
    while (!(await this.#isReady(name))) {
      const isLate = clock.monotonic() - startedAt > READY_LIMIT_MS;
      if (running.hasEnded || isLate) {
        const log = await readFile(join(this.#site.dir, `${name}.log`), "utf8");
        throw new RelevoError("kubernetes_no_start", `${name} ${isLate ? "is not ready in time" : `ended (${await running.ended})`}`, {
          found: log.split("\n").slice(-6).join("\n"),
        });
      }
      await clock.sleep(POLL_MS);
    }
  }

  #isReady(name: PieceName): Promise<boolean> {
    const { api, etcd, karpenterHealth } = this.#site.ports;
    switch (name) {
      case "etcd":
        return this.#answers(`http://127.0.0.1:${etcd}/health`);
      case "apiserver":
        return this.#answers(`https://127.0.0.1:${api}/readyz`);
      case "controllers":
        return this.#answers(`https://127.0.0.1:${api}/api/v1/namespaces/default/serviceaccounts/default`);
      case "karpenter":
        return this.#answers(`http://127.0.0.1:${karpenterHealth}/readyz`);
      case "scheduler":
      case "kwok":
        return Promise.resolve(true); // they serve nothing that could be asked
      default:
        return name satisfies never;
    }
  }

  async #answers(url: string): Promise<boolean> {
    try {
      const options = { dispatcher: this.#agent, headers: { authorization: "Bearer admin-token" }, headersTimeout: 5_000 };
      const { statusCode, body } = await request(url, options);
      await body.dump();
      return statusCode === 200;
    } catch {
      return false; // not yet
    }
  }

  async #kubectl(...args: readonly string[]): Promise<void> {
    await promisify(execFile)("kubectl", ["--kubeconfig", kubeconfigPath(this.#site.dir), ...args], { timeout: 60_000 });
  }
}

/** Linux tells a child when its parent is gone, whatever ended it; elsewhere a parent that is killed leaves its children. */
const ENDS_WITH_ITS_PARENT: readonly string[] = process.platform === "linux" ? ["setpriv", "--pdeathsig", "KILL", "--"] : [];

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve(String(code ?? signal)));
    child.once("error", (error) => resolve(error.message));
  });
}

/** All at the same time, so that none is given twice. */
async function freePorts(): Promise<Ports> {
  const servers = await Promise.all(
    Array.from({ length: 5 }, async () => {
      const server = createServer();
      await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
      return server;
    }),
  );
  const [api = 0, etcd = 0, etcdPeer = 0, karpenterMetrics = 0, karpenterHealth = 0] = servers.map((server) => {
    const address = server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  });
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return { api, etcd, etcdPeer, karpenterMetrics, karpenterHealth };
}
