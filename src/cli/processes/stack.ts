/** `relevo up`: the embedded cluster, the controller and the gateway as three processes under one supervisor, and the file by which commands find them. */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock, Timer } from "../../kernel/clock.ts";
import { describeError } from "../../kernel/errors.ts";
import { formatDuration } from "../../kernel/units.ts";
import { removeRunFile, writeRunFile } from "../run-file.ts";
import { type ChildSpec, Supervisor } from "./supervisor.ts";
import { HOLDS_MUCH, SERVES_MUCH } from "./node-flags.ts";

export interface StackOptions {
  /** Where commands look for the run file: the working directory. */
  readonly cwd: string;
  /** Store, cluster, keys and logs lie beneath it. */
  readonly dir: string;
  readonly nodes: number;
  /** Machines on demand that may come beside them; 0: none is offered. */
  readonly onDemand: number;
  readonly zones: readonly string[];
  readonly bootDelayMs: number;
  readonly disruptionIntervalMs: number;
  readonly spotLeadMs: number;
  /** Of the site, where the controller begins to learn it; its own beginning when absent. */
  readonly absorption?: { readonly perSecond: number; readonly burst: number };
  /** A file with the connections from which Pools read their demand; none when absent. */
  readonly connections?: string;
  /** 0 lets the system choose. */
  readonly ports: { readonly gateway: number; readonly controller: number; readonly cluster: number; readonly admin: number };
  readonly logLevel: string;
  /** What the controller's API demands; null: none, which only loopback may. */
  readonly token: string | null;
  readonly clock: Clock;
  readonly onDeath: (name: string, how: string) => void;
  /** Told once for each time that something goes wrong that ends nothing. */
  readonly onTrouble?: (sentence: string) => void;
  /** Told as each process is up. */
  readonly onReady?: (name: string, urls: Readonly<Record<string, string>>) => void;
}

export interface Stack {
  readonly controllerUrl: string;
  readonly gatewayUrl: string;
  readonly gatewayMetricsUrl: string;
  readonly clusterUrl: string;
  readonly adminUrl: string;
  readonly kubeconfig: string;
  readonly webhookSecret: string;
  readonly supervisor: Supervisor;
  stop(): Promise<void>;
}

const RUN_FILE_RETRY_MS = 2_000;

export async function startStack(options: StackOptions): Promise<Stack> {
  const { dir, cwd, ports, clock, logLevel } = options;
  mkdirSync(dir, { recursive: true });
  const webhookSecret = secretIn(join(dir, "webhook.secret"));
  secretIn(join(dir, "gateway.key"));
  let onRestart: () => void = () => undefined;
  let isStopped = false;
  const supervisor = new Supervisor({ clock, logDir: join(dir, "logs"), onDeath: options.onDeath, onReady: () => onRestart() });
  const begin = async (name: string, nodeFlags: readonly string[], args: ChildSpec["args"]) => {
    const env = { NODE_COMPILE_CACHE: join(dir, "compile-cache"), RELEVO_TOKEN: options.token ?? undefined };
    const urls = await supervisor.start({ name, nodeFlags, args, env });
    options.onReady?.(name, urls);
    return urls;
  };

  const log = ["--log-level", logLevel];
  // Each but the first must be told where another one listens; until then it loads its code.
  try {
    const clusterStart = begin("cluster", HOLDS_MUCH, (known) => [
      "cluster",
      ...log,
      ...["--dir", join(dir, "cluster"), "--nodes", String(options.nodes), "--zones", options.zones.join(",")],
      ...["--on-demand", String(options.onDemand)],
      ...["--boot-delay", formatDuration(options.bootDelayMs), "--disruption-interval", formatDuration(options.disruptionIntervalMs)],
      ...["--api-port", portOf(known.cluster, ports.cluster), "--admin-port", portOf(known.admin, ports.admin)],
    ]);
    const controllerStart = begin("controller", HOLDS_MUCH, async (known) => [
      "controller",
      ...log,
      ...["--kubeconfig", (await clusterStart).kubeconfig ?? "", "--store", join(dir, "store.db")],
      ...["--port", portOf(known.controller, ports.controller), "--kube-qps", "0"], // a cluster of our own
      ...["--webhook-secret-file", join(dir, "webhook.secret"), "--spot-lead", formatDuration(options.spotLeadMs)],
      ...absorptionFlags(options),
      ...(options.connections === undefined ? [] : ["--connections", options.connections]),
    ]);
    const gatewayStart = begin("gateway", SERVES_MUCH, async (known) => [
      "gateway",
      ...log,
      ...["--controller", (await controllerStart).controller ?? "", "--key-file", join(dir, "gateway.key")],
      ...["--port", portOf(known.gateway, ports.gateway), "--admin-port", portOf(known.metrics, 0)],
      // The supervisor has seen it end: no seal need wait for it.
      ...(known.replica === undefined ? [] : ["--predecessor", known.replica]),
    ]);
    const [cluster, controller, gateway] = await Promise.all([clusterStart, controllerStart, gatewayStart]);
    const kubeconfig = cluster.kubeconfig ?? "";
    const controllerUrl = controller.controller ?? "";
    const stack: Stack = {
      controllerUrl,
      gatewayUrl: gateway.gateway ?? "",
      gatewayMetricsUrl: gateway.metrics ?? "",
      clusterUrl: cluster.cluster ?? "",
      adminUrl: cluster.admin ?? "",
      kubeconfig,
      webhookSecret,
      supervisor,
      stop: async () => {
        isStopped = true;
        onRestart = () => undefined;
        removeRunFile(cwd);
        await supervisor.stop();
      },
    };
    const tell = () => {
      if (isStopped) return;
      writeRunFile(cwd, {
        controllerUrl,
        token: options.token,
        webhookSecret,
        gatewayUrl: stack.gatewayUrl,
        clusterUrl: stack.clusterUrl,
        adminUrl: stack.adminUrl,
        kubeconfig,
        pids: {
          up: process.pid,
          controller: supervisor.pidOf("controller") ?? 0,
          gateway: supervisor.pidOf("gateway") ?? 0,
          cluster: supervisor.pidOf("cluster") ?? null,
        },
      });
    };
    tell();
    onRestart = keepTelling(tell, clock, options.onTrouble);
    return stack;
  } catch (error) {
    await supervisor.stop();
    throw error;
  }
}

/** A restart is no moment to fail for a file that only commands read: it is written as soon as the disk takes it. */
function keepTelling(tell: () => void, clock: Clock, onTrouble: StackOptions["onTrouble"]): () => void {
  let retry: Timer | undefined;
  const attempt = () => {
    retry?.cancel();
    try {
      tell();
    } catch (error) {
      if (retry === undefined)
        onTrouble?.(`the run file cannot be written, commands may look for processes that ended: ${describeError(error)}`);
      retry = clock.after(RUN_FILE_RETRY_MS, attempt);
      return;
    }
    retry = undefined;
  };
  return attempt;
}

function absorptionFlags({ absorption }: StackOptions): readonly string[] {
  if (absorption === undefined) return [];
  return ["--absorb-per-second", String(absorption.perSecond), "--absorb-at-once", String(absorption.burst)];
}

function portOf(url: string | undefined, otherwise: number): string {
  return url === undefined ? String(otherwise) : new URL(url).port;
}

/** Made once, readable by its owner alone. */
function secretIn(path: string): string {
  if (!existsSync(path)) {
    // On a full disk there is no secret rather than half of one.
    writeFileSync(`${path}.new`, `${randomBytes(32).toString("base64url")}\n`, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }
  return readFileSync(path, "utf8").trim();
}
